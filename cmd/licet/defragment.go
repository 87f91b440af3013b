package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"licet/kv"
)

func newDefragmentCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg storeConfig
	cmd := &cobra.Command{
		Use:   "defragment",
		Short: "Give back to the disk what etcd's databases do not need any more",
		Long: `Give back to the disk what compaction has freed in etcd's databases: one member after
the other, the leader last and after it has handed its part on, and no further once a
member is not well. A member with less than a tenth to give back, or less than a MiB,
is left alone.

A member serves nobody while it is worked on, some seconds for a gigabyte; nodes ask the
others meanwhile. All members must be named.`,
		Example: `  licet defragment --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet defragment --data-dir ./licet-data    of a stopped licet dev`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.settle(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return runDefragment(cmd.Context(), cfg, stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	nameVariables(cmd.Flags())
	return cmd
}

func runDefragment(ctx context.Context, cfg storeConfig, stdout, stderr io.Writer) (err error) {
	store, leave, err := cfg.reach(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return kv.Defragment(ctx, store, func(d kv.Defragmented) {
		if d.Done {
			fmt.Fprintf(stdout, "%s: %d bytes, %d before\n", d.Endpoint, d.After, d.Before)
			return
		}
		fmt.Fprintf(stdout, "%s: %d bytes, with too little to give back\n", d.Endpoint, d.Before)
	})
}
