package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/kv/users"
)

func newUsersCommand(stdout io.Writer) *cobra.Command {
	var cfg etcdConfig
	cmd := &cobra.Command{
		Use:   "users",
		Short: "Create the users of etcd, and turn authentication on",
		Long: `Create the users of an etcd cluster with their roles, and turn etcd's authentication on. The
user "licet" reads and writes keys: nodes and most commands need its certificate. The user
"root" may do everything: licet store backup, licet store defragment and this command need
its certificate. The command creates only missing users and roles, so you may repeat it.

etcd takes the user from the CommonName of the client certificate. Start every member with
--client-cert-auth, and give nodes a certificate with the CommonName "licet" first.
--etcd-endpoints must name all members. If a member refuses the user root after authentication
is on, the command turns authentication off again.`,
		Example: `  licet store users --etcd-endpoints etcd-0.etcd:2379,etcd-1.etcd:2379,etcd-2.etcd:2379 \
    --etcd-ca ca.crt --etcd-cert root.crt --etcd-key root.key`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if err := cfg.validate(); err != nil {
				return err
			}
			return runUsers(cmd.Context(), cfg, stdout)
		},
	}
	cmd.Flags().SortFlags = false
	cfg.addFlags(cmd.Flags())
	nameVariables(cmd.Flags())
	return cmd
}

func runUsers(ctx context.Context, cfg etcdConfig, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	changes, err := users.Secure(ctx, users.Config{Endpoints: cfg.Endpoints, TLS: cfg.store().TLS})
	for _, change := range changes {
		fmt.Fprintln(stdout, change)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "authentication is on")
	return err
}
