package trial

import (
	"context"
	"fmt"
	"io"
	"time"

	"licet/loadtest/rig"
)

// Program is a trial as a command. C is its parsed command line.
type Program[C any] struct {
	Name  string
	Parse func(args []string, stderr io.Writer) (C, error)
	Run   func(context.Context, C, *rig.Progress) (*Report, error)
}

// Command runs the program, and returns its exit code. A trial fails if it can't be
// carried through, and if its report has a problem.
func (p *Program[C]) Command(ctx context.Context, args []string, stdout, stderr io.Writer) (exitCode int) {
	cfg, err := p.Parse(args, stderr)
	if err != nil {
		return rig.UsageError(stderr, p.Name, err)
	}
	progress := rig.NewProgress(stderr)
	began := time.Now()
	r, err := p.Run(ctx, cfg, progress)
	progress.Clear()
	if err != nil {
		fmt.Fprintf(stderr, "%s: FAILED: %v\n", p.Name, err)
		return rig.ExitFailed
	}
	if err := r.Print(stdout, time.Since(began)); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return rig.ExitFailed
	}
	if len(r.Problems) > 0 {
		return rig.ExitFailed
	}
	return rig.ExitOK
}
