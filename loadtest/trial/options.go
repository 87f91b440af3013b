package trial

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// Options are the flags that every trial has.
type Options struct {
	rig.Setup
	Seed     uint64
	Members  int    // of etcd
	KeepLogs string // directory; empty: they are not kept
}

// NewFlags begins the flags of a program; seed says what the seed decides. The program
// adds its own flags, and then calls Parse.
func (o *Options) NewFlags(program string, stderr io.Writer, seed string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(program, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.Uint64Var(&o.Seed, "seed", 1, seed)
	return flags
}

// Parse adds the flags that every trial has, and reads the command line.
func (o *Options) Parse(flags *pflag.FlagSet, args []string) error {
	flags.IntVar(&o.Members, "members", 3, "members of etcd")
	flags.StringVar(&o.KeepLogs, "keep-logs", "", "directory for the nodes' logs (default: they are not kept)")
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.Members < 1:
		return fmt.Errorf("--members is %d: it must be at least 1", o.Members)
	}
	return nil
}

// Stage starts etcd and nodes for a trial. more are flags of the nodes.
func (o *Options) Stage(
	ctx context.Context, progress *rig.Progress, program string, nodes int, more ...string,
) (*stage.Stage, error) {
	progress.Step("building licet, starting etcd (members: %d) and licet (nodes: %d); the seed is %d", o.Members, nodes,
		o.Seed)
	return stage.New(ctx, &stage.Config{Setup: o.Setup, Name: program, Members: o.Members, Nodes: nodes,
		Flags: append(stage.BehindBalancer(), more...)})
}
