package trial

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// Options are the flags that every load test with a verdict has. The values before NewFlags are the defaults. Zero
// means that the scenario decides.
type Options struct {
	rig.Setup
	Seed    uint64
	Members int // of etcd
	Nodes   int // of licet
	Kills   int // how often a node is killed
}

// NewFlags begins the flags of a program. seed says what the seed decides, and kills when nodes are killed. The program
// adds its own flags, and then calls Parse.
func (o *Options) NewFlags(program string, stderr io.Writer, seed, kills string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(program, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.Uint64Var(&o.Seed, "seed", 1, seed)
	flags.IntVar(&o.Members, "members", o.Members, "members of etcd"+unless(o.Members))
	flags.IntVar(&o.Nodes, "nodes", o.Nodes, "nodes of licet; at least 2 where nodes are killed"+unless(o.Nodes))
	flags.IntVar(&o.Kills, "kills", o.Kills, "how often a node is killed and started again"+kills+unless(o.Kills))
	return flags
}

// unless returns the words about a default that the scenario decides.
func unless(value int) string {
	if value > 0 {
		return ""
	}
	return " (default: the scenario's)"
}

// Check checks the values of these flags. There is at most one kill for four of so many operations.
func (o *Options) Check(operations int) error {
	least := 1
	if o.Kills > 0 {
		least = 2
	}
	return cmp.Or(Between("members", o.Members, 1, 7), Between("kills", o.Kills, 0, operations/4),
		Between("nodes", o.Nodes, least, 100))
}

// Between returns an error unless the value of a flag is within bounds.
func Between(flag string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("--%s is %d: it must be from %d to %d", flag, value, least, most)
	}
	return nil
}

// Parse adds the flags of the setup, and reads the command line.
func (o *Options) Parse(flags *pflag.FlagSet, args []string) error {
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}
