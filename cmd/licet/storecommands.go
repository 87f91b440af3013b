package main

import (
	"io"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
)

// newStoreCommand returns licet store, whose commands work on a store without a service.
func newStoreCommand(stdout, stderr io.Writer) *cobra.Command {
	cmd := cli.Group("store", newStoreKeysCommand(stdout, stderr), newMasterKeyCommand(stdout, stderr),
		newVerifyCommand(stdout, stderr), newBackupCommand(stdout, stderr), newRestoreCommand(stdout, stderr),
		newDefragmentCommand(stdout, stderr), newUsersCommand(stdout), newRunEtcdCommand(stdout, stderr))
	cmd.Short = "Work on a store: first API key, master keys, backups"
	cmd.Long = `Work on the store of a service: the etcd cluster of its nodes, or the data directory of
licet dev. These commands call no service, so they work before a service runs and after a
disaster.

Set --etcd-endpoints to all members of the cluster, or --data-dir to the data directory of a
stopped licet dev. For a running licet dev, set --etcd-endpoints to the socket of its etcd.`
	cmd.Example = `  licet store master-key add --master-key-file master.keys
  licet store keys create --help
  licet store verify --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet store backup store.db --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet store backup store.db --data-dir ./licet-data                                  a stopped licet dev
  licet store backup store.db --etcd-endpoints unix://$PWD/licet-data/run/etcd.sock    a running licet dev`
	// These commands were at the top level: cobra suggests licet store for them.
	cmd.SuggestFor = []string{"verify", "backup", "restore", "defragment", "master-key"}
	return cmd
}
