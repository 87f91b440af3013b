package trial

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// Options are the flags that every trial has.
type Options struct {
	rig.Setup
	Seed     uint64
	Members  int    // of etcd
	KeepLogs string // directory; empty: they are not kept
	// Of trials with KillFlags:
	Kills int // how often a node is killed
	Nodes int // of licet
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

// KillFlags adds the flags of a trial that kills nodes: kills is how often it does so, and about says when.
func (o *Options) KillFlags(flags *pflag.FlagSet, kills int, about string) {
	flags.IntVar(&o.Kills, "kills", kills, "how often a node is killed and started again"+about)
	flags.IntVar(&o.Nodes, "nodes", 3, "nodes of licet; at least 2, so that some are up while others are not")
}

// CheckKills checks the values of these flags. There is at most one kill for four of so many operations.
func (o *Options) CheckKills(operations int) error {
	return cmp.Or(Between("kills", o.Kills, 0, operations/4), Between("nodes", o.Nodes, 2, 100))
}

// Between returns an error unless the value of a flag is within bounds.
func Between(flag string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("--%s is %d: it must be from %d to %d", flag, value, least, most)
	}
	return nil
}

// Parse adds the flags that every trial has, and reads the command line.
func (o *Options) Parse(flags *pflag.FlagSet, args []string) error {
	flags.IntVar(&o.Members, "members", 3, "members of etcd")
	flags.StringVar(&o.KeepLogs, "keep-logs", "", "directory for the nodes' logs (default: they are not kept)")
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return Between("members", o.Members, 1, 7)
}
