package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// spec is one command that calls a service.
type spec struct {
	use, short, long string
	example          string
	args             cobra.PositionalArgs
	route            string // as docs/reference/api.md has it; empty: it is made of others
	scope            string // of the API key, or both with "and" between; empty: an end user may
	noOutput         bool   // it prints in one form alone
	goesOn           bool   // whatever came of it, the same command again goes on from there
	rest             string // what is said of that where something is in doubt; empty: run says it
	flags            func(*cobra.Command)
	run              func(*session, []string) error
}

// scopes names what the API key must have.
func (is *spec) scopes() string {
	if strings.Contains(is.scope, " and ") {
		return "scopes " + is.scope
	}
	return "scope " + is.scope
}

// routeNote is the annotation that has a command's route.
const routeNote = "route"

// command makes the command of a spec, with all that the commands share.
func (s Setup) command(is spec) *cobra.Command {
	var settings Service
	var output string
	long := is.short + "."
	if is.long != "" {
		long = is.long
	}
	if is.scope != "" {
		long += "\n\nIt needs an API key with the " + is.scopes() + "."
	} else {
		long += "\n\nIt needs no API key; with one, only licenses of the key's account and mode are found."
	}
	cmd := &cobra.Command{
		Use:         is.use,
		Short:       is.short,
		Long:        long,
		Example:     is.example,
		Args:        is.args,
		Annotations: map[string]string{routeNote: is.route},
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd, &settings, output, is, args)
		},
	}
	cmd.Flags().SortFlags = false
	if is.flags != nil {
		is.flags(cmd)
	}
	if is.noOutput {
		output = outputs[0]
	} else {
		addOutput(cmd, &output)
	}
	settings.AddFlags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("profile", s.completeProfiles)
	return cmd
}

// run finds the service, and does what a command is for.
func (s Setup) run(cmd *cobra.Command, settings *Service, output string, is spec, args []string) error {
	c, err := s.open(cmd, settings, output, is)
	if err != nil {
		return err
	}
	defer c.close()
	return c.explain(is.run(c, args))
}

// group makes a command that has others below it.
func group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    short + ".",
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// names wants an argument for each name, such as LICENSE_KEY.
func names(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return BadUsage("it takes %s, and was given %d arguments", strings.Join(names, " and "), len(args))
		}
		for i, arg := range args {
			if arg == "" {
				return BadUsage("%s is empty", names[i])
			}
		}
		return nil
	}
}

// some wants one argument or more.
func some(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return BadUsage("it takes one %s or more", name)
		}
		for _, arg := range args {
			if arg == "" {
				return BadUsage("%s is empty", name)
			}
		}
		return nil
	}
}

// onceFlag adds the flag for an Idempotency-Key.
func onceFlag(fs *pflag.FlagSet) {
	fs.String("idempotency-key", "", "`text` that stands for this one thing: the same command again under it, within 24 hours, does it no second time")
}
