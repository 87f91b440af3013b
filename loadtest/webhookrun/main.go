// Webhookrun has a shop's orders, activations and removals told to webhook endpoints
// by three nodes, which are killed and started again all the time, and then proves
// that every event was delivered and none was made up. One endpoint is well, one
// fails a fifth of the calls, and one hangs. See the README one folder up.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"licet/loadtest/rig"
)

func main() { rig.Main(command) }

// command is the whole program but for what belongs to the process.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseConfig(args, stderr)
	if err != nil {
		return rig.UsageError(stderr, "webhookrun", err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.limit)
	defer cancel()
	progress := rig.NewProgress(stderr)
	began := time.Now()
	r, err := run(ctx, cfg, progress)
	progress.Clear()
	if err != nil {
		fmt.Fprintln(stderr, "webhookrun: FAILED:", err)
		return rig.ExitFailed
	}
	r.took = time.Since(began)
	if err := r.print(stdout); err != nil {
		fmt.Fprintln(stderr, "webhookrun:", err)
		return rig.ExitFailed
	}
	if len(r.problems) > 0 {
		return rig.ExitFailed
	}
	return rig.ExitOK
}
