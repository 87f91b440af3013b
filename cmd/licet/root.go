package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
)

// newRoot returns the command line with args. It sets started as soon as cobra has accepted the flags and arguments: an
// error before that is a usage error.
func newRoot(args []string, stdout, stderr io.Writer, started *bool) *cobra.Command {
	build := readBuild()
	root := &cobra.Command{
		Use:   "licet",
		Short: "A licensing and order service",
		Long: `Licet sells licenses and activates them on devices. It serves an HTTP API and stores its data
in etcd.

A paid order issues a license key. The license key is activated on a limited number of
devices; removing a device frees its slot.`,
		Example: `  licet dev                          run a complete service on this machine, without installing anything else
  licet dev --listen 127.0.0.1:9000  listen on another port
  . licet-data/dev.env               set the URL and the API key for the commands below
  licet orders create --product-id editor --price 49.00 --currency USD
  licet licenses list --status activated
  licet profile set --help           save the URL and the API key of a service
  licet serve --help                 run a node on an etcd cluster
  licet store keys create --help     create the first API key of an account
  licet store verify --help          check a store for contradictions
  licet store backup --help          back up a store
  licet doctor                       check a service, its etcd and the settings
  licet version
  licet completion bash              print completions for a shell: bash, zsh, fish or powershell`,
		Args:          cli.Subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       build.version,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// Cobra checks these only after this function.
			if err := cli.CheckFlags(cmd); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(cli.FlagProblem)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if misnamed(cmd) == nil { // else run reports it
			help(cmd, args)
		}
	})
	setup := cli.Setup{Version: build.version, Lookup: os.LookupEnv, ConfigDir: os.UserConfigDir,
		DevEnv: filepath.Join(defaultDataDir, envFile)}
	addGroup(root, "Run a service:", newDevCommand(build, setup, args, stdout, stderr),
		newServeCommand(build, stderr), newPaymentsCommand(stdout))
	addGroup(root, "Call a service:", cli.Commands(setup)...)
	addGroup(root, "Work on a store:", newStoreCommand(stdout, stderr))
	addGroup(root, "Other commands:", newDoctorCommand(setup, stdout, stderr), cli.OfflineCommands(),
		newVersion(build, stdout))
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, args []string) error {
			if cmd, rest, err := root.Find(args); err != nil || cmd.HasSubCommands() {
				return errors.Join(err, cli.Subcommand(cmd, rest))
			}
			return nil
		}
	}
	root.SetHelpCommandGroupID("Other commands:")
	root.SetCompletionCommandGroupID("Other commands:")
	return root
}

// misnamed returns the error of a command line that asks for the help of a command that does not exist: cobra looks for
// --help before it checks the arguments.
func misnamed(cmd *cobra.Command) error {
	if !cmd.HasSubCommands() {
		return nil
	}
	return cli.Subcommand(cmd, cmd.Flags().Args())
}

// addGroup adds commands to root under a title in its help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

func newVersion(build build, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the revision and the version of Go",
		Args:  cli.Arguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, build)
			return err
		},
	}
}

func newDevCommand(build build, setup cli.Setup, args []string, stdout, stderr io.Writer) *cobra.Command {
	var cfg devConfig
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a complete service on this machine",
		Long: `Run a complete service on this machine: the API, sandbox payments and etcd. The first
start creates an account with one test key pair.

When the service is ready, it writes its URL, the API key and the API secret to
DATA-DIR/dev.env, and prints commands to try. SIGTERM or Ctrl-C stops the service. You may
also kill the service at any time: it keeps every acknowledged change. After a crash,
DATA-DIR/crash.txt has the trace.`,
		Example: `  licet dev
  licet dev --listen 127.0.0.1:0 --data-dir /tmp/licet    listen on a free port, with its own data
  licet dev --metrics-listen 127.0.0.1:9090               serve Prometheus metrics
  LICET_LOG_FORMAT=json licet dev                         set a flag by its environment variable`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if err := cfg.validate(); err != nil {
				return err
			}
			if !supervised() {
				return supervise(cmd.Context(), childService, cfg.DataDir, args, stdout, stderr, stderr)
			}
			cfg.ProfileInUse = setup.ProfileInUse()
			return runDev(cmd.Context(), cfg, build, stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}
