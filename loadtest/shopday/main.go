// Shopday plays a whole day of a shop against two nodes before one etcd, and then
// compares the shop's own ledger with what the service says, thing by thing and
// sum by sum. Orders are made and paid as buyers do, some of them twice, late or
// after they were canceled; licenses are activated, moved, suspended, renewed and
// refunded; API keys and the master key are replaced; products change their terms.
// One node is killed in the middle, and both are restarted one after the other,
// while all this goes on. See the README one folder up.
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
		return rig.UsageError(stderr, "shopday", err)
	}
	progress := rig.NewProgress(stderr)
	began := time.Now()
	r, err := play(ctx, cfg, progress)
	progress.Clear()
	if err != nil {
		fmt.Fprintln(stderr, "shopday: FAILED:", err)
		return rig.ExitFailed
	}
	r.took = time.Since(began)
	if err := r.print(stdout); err != nil {
		fmt.Fprintln(stderr, "shopday:", err)
		return rig.ExitFailed
	}
	if len(r.problems) > 0 {
		return rig.ExitFailed
	}
	return rig.ExitOK
}
