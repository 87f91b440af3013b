package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
)

// newRoot makes the command line. It sets parsed as soon as flags and
// arguments were found good: cobra gives no other sign of whose fault an error
// is.
func newRoot(stdout, stderr io.Writer, parsed *bool) *cobra.Command {
	build := readBuild()
	root := &cobra.Command{
		Use:   "licet",
		Short: "A licensing and order service",
		Long: `Licet sells licenses and activates them on devices, over HTTP, with etcd behind it.

An order is created and paid; that issues a license key. The key is activated
on a limited number of devices, looked up, and taken off a device again.`,
		Example: `  licet dev                          a whole service on this machine, nothing else installed
  licet dev --listen 127.0.0.1:9000  on another port
  . licet-data/dev.env               its address and API key, for the commands below
  licet orders create --product-id editor --amount 4900 --currency USD
  licet licenses list --status activated
  licet profile set --help           keep a service and its API key
  licet serve --help                 a node of a service, on an etcd cluster
  licet keys create --help           the first API key
  licet verify --help                prove that a store does not contradict itself
  licet backup --help                and licet restore, licet defragment
  licet version
  licet completion bash              completion for a shell, also zsh, fish, powershell`,
		Version:       build.version,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// Cobra asks for these only later.
			if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return err
			}
			*parsed = true
			return nil
		},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	setup := cli.Setup{Version: build.version, Lookup: os.LookupEnv, ConfigDir: os.UserConfigDir}
	root.AddCommand(newDevCommand(build, stdout, stderr), newServeCommand(build, stderr), newVerifyCommand(stdout, stderr),
		newBackupCommand(stdout, stderr), newRestoreCommand(stdout, stderr), newDefragmentCommand(stdout, stderr),
		newKeysCommand(setup, stdout, stderr), newMasterKeyCommand(stdout, stderr), newVersion(build, stdout))
	root.AddCommand(cli.Commands(setup)...)
	return root
}

func newVersion(build build, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the revision and Go's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, build)
			return err
		},
	}
}

func newDevCommand(build build, stdout, stderr io.Writer) *cobra.Command {
	var cfg devConfig
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole service on this machine",
		Long: `Run a whole service on this machine: the API, sandbox payments and an etcd, all in
this process. At the first start it makes an account with one test key pair.

Once it is ready, and not before, DATA-DIR/dev.env has its address, the API key and
the API secret, and stdout has commands to try it with. SIGTERM or Ctrl-C stops it;
it may also be killed at any moment: whatever it has acknowledged is kept.`,
		Example: `  licet dev
  licet dev --listen 127.0.0.1:0 --data-dir /tmp/licet    any free port, other data
  licet dev --metrics-listen 127.0.0.1:9090               Prometheus metrics
  LICET_LOG_FORMAT=json licet dev                         each flag has a variable`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if err := cfg.validate(); err != nil {
				return err
			}
			return runDev(cmd.Context(), cfg, build, stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}
