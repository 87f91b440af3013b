package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/kv"
	"licet/kv/backup"
)

func newDefragmentCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg storeConfig
	cmd := &cobra.Command{
		Use:   "defragment",
		Short: "Return free space in the databases of etcd to the disk",
		Long: `Return the space that compaction has freed in the databases of etcd to the disk. The command
defragments one member after the other. The leader comes last, after it has transferred its
leadership. The command stops if a member is unhealthy. It skips members that would return
less than a tenth of their database, or less than 1 MiB.

A member serves no requests while it is defragmented: some seconds for a gigabyte. Nodes use
the other members meanwhile. --etcd-endpoints must name all members. If etcd has users, the
command needs the certificate of the user root.`,
		Example: `  licet store defragment --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet store defragment --data-dir ./licet-data    a stopped licet dev`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return runDefragment(cmd.Context(), cfg, stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	nameVariables(cmd.Flags())
	return cmd
}

func runDefragment(ctx context.Context, cfg storeConfig, stdout, stderr io.Writer) error {
	return cfg.use(ctx, stderr, func(ctx context.Context, store kv.Config) error {
		return backup.Defragment(ctx, store.Etcd(), func(d backup.Defragmented) {
			if d.Done {
				fmt.Fprintf(stdout, "%s: %d bytes, %d before\n", d.Endpoint, d.After, d.Before)
				return
			}
			fmt.Fprintf(stdout, "%s: %d bytes, skipped: too little free space\n", d.Endpoint, d.Before)
		})
	})
}
