package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// spec describes a command that calls a service.
type spec struct {
	use, short, long string
	example          string
	route            string // as docs/reference/api.md has it, or two with "and" between; empty: it is made of others
	scope            string // that the API key needs, or two with "and" between; empty: no API key needed
	noOutput         bool   // the command has no flag --output
	resumes          bool   // repeating an interrupted command resumes it
	resumeHint       string // says so in messages about unknown outcomes; empty: run says so itself
	flags            func(*cobra.Command)
	run              func(*session, []string) error
}

// scopes names the scopes that the API key needs.
func (is *spec) scopes() string {
	if strings.Contains(is.scope, " and ") {
		return "scopes " + is.scope
	}
	return "scope " + is.scope
}

// routeNote is the annotation with the route of a command.
const routeNote = "route"

// command returns the command of a spec, with the flags that all commands share.
func (s Setup) command(is spec) *cobra.Command {
	var settings Service
	var output string
	long := is.short + "."
	if is.long != "" {
		long = is.long
	}
	if is.scope != "" {
		long += "\n\nThe command needs an API key with the " + is.scopes() + "."
	} else {
		long += "\n\nThe command needs no API key. With an API key, it finds only licenses of the key's account and " +
			"mode."
	}
	cmd := &cobra.Command{
		Use:         is.use,
		Short:       is.short,
		Long:        long,
		Example:     is.example,
		Args:        Arguments,
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
	s.completeFromService(cmd, &settings, is)
	return cmd
}

// run finds the service and runs the command of a spec.
func (s Setup) run(cmd *cobra.Command, settings *Service, output string, is spec, args []string) error {
	c, err := s.open(cmd, settings, output, is)
	if err != nil {
		return err
	}
	defer c.close()
	return c.explain(is.run(c, args))
}

// group returns a command that only contains subcommands.
func group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := Group(use, commands...)
	cmd.Short, cmd.Long, cmd.Example = short, short+".", example
	return cmd
}

// Group returns a command that only contains subcommands: alone it prints its help.
func Group(use string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:  use,
		Args: Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// onceFlag adds the flag for an Idempotency-Key.
func onceFlag(fs *pflag.FlagSet) {
	fs.String("idempotency-key", "",
		"`text` that identifies this change: repeating the command with the same text within 24 hours has no further "+
			"effect")
}
