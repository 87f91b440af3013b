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
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// Exit codes, as those of licet.
const (
	exitOK     = 0
	exitFailed = 1 // also where ledger and service differ
	exitUsage  = 2
)

func main() { rig.Main(command) }

// command is the whole program but for what belongs to the process.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseConfig(args, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "shopday:", err)
		return exitUsage
	}
	progress := rig.NewProgress(stderr)
	began := time.Now()
	r, err := play(ctx, cfg, progress)
	progress.Clear()
	if err != nil {
		fmt.Fprintln(stderr, "shopday: FAILED:", err)
		return exitFailed
	}
	r.took = time.Since(began)
	if err := r.print(stdout); err != nil {
		fmt.Fprintln(stderr, "shopday:", err)
		return exitFailed
	}
	if len(r.problems) > 0 {
		return exitFailed
	}
	return exitOK
}
