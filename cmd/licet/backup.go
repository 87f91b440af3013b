package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/terminal"
	"licet/kv"
)

// backupConfig is the settings of licet backup.
type backupConfig struct {
	storeConfig
	Keep int // 0: the argument is a file
}

func (c *backupConfig) addFlags(fs *pflag.FlagSet) {
	c.storeConfig.addFlags(fs)
	fs.IntVar(&c.Keep, "keep", 0, "take FILE for a directory of backups, named by their times, and remove the oldest until this `number` is left")
	nameVariables(fs)
}

func (c *backupConfig) validate() error {
	if c.Keep < 0 {
		return badUsage("--keep is %d: it must be at least 1, or 0 for a single file", c.Keep)
	}
	return c.storeConfig.validate()
}

func newBackupCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg backupConfig
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a snapshot of a store to a file",
		Long: `Write a snapshot of a store to FILE, and its SHA-256 to FILE.sha256. FILE is there
whole and checked or not at all; an earlier one is replaced. It holds every change
that was acknowledged before the command began. A service may go on meanwhile.

That it ended well is noted in the store, for the nodes' metrics. Where the store takes
no writes, the backup is as good, and a warning says so.

With --keep, FILE is a directory that exists: the snapshot becomes licet-<UTC time>.db
in it, and of those that are called so the oldest others are removed once it is made.

FILE holds license keys: keep it like a secret. The master keys are not in the
store; keep those too, and somewhere else.`,
		Example: `  licet backup store.db --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet backup /backups --keep 48 --etcd-endpoints 10.0.0.1:2379                 two days of them, if made each hour
  licet backup store.db --data-dir ./licet-data                                  of a stopped licet dev
  licet backup store.db --etcd-endpoints unix://$PWD/licet-data/run/etcd.sock    of a running one`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cfg.settle(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return runBackup(cmd.Context(), cfg, args[0], stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

func runBackup(ctx context.Context, cfg backupConfig, path string, stdout, stderr io.Writer) (err error) {
	store, leave, err := cfg.reach(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	begun := time.Now()
	if cfg.Keep > 0 {
		path = kv.BackupPath(path, begun)
	}
	bar := terminal.NewMeter(stderr, "backup", true)
	info, err := kv.Backup(ctx, store, path, bar.Set)
	bar.Clear()
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := kv.RecordBackup(ctx, store, begun); err != nil {
		// The file is whole, so this is no failure of the command.
		fmt.Fprintf(stderr, "warning: the backup is good, but the store could not note it, so licet_backup_last_success_timestamp_seconds does not show it: %v\n", err)
	}
	if cfg.Keep > 0 {
		if err := kv.PruneBackups(path, cfg.Keep); err != nil {
			return fmt.Errorf("%s is a good backup, but of the older ones some could not be removed: %w", path, err)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s: %d bytes, every change up to revision %d\nSHA-256 %s\n",
		path, info.Bytes, info.Revision, info.SHA256)
	return err
}

// restoreConfig is the settings of licet restore.
type restoreConfig struct{ DataDir string }

func (c *restoreConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.DataDir, "data-dir", "", "`directory` to restore into, which must not exist or be empty")
	nameVariables(fs)
}

func newRestoreCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg restoreConfig
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory out of a backup",
		Long: `Make a data directory for licet dev out of a backup. FILE is compared with the
checksum inside it, and with FILE.sha256 if there is one. Where anything is wrong,
nothing is made.

Revisions go on far above those of the lost store, so that a node that remembers
some of them can do no harm. How a cluster is restored is in docs/guides/backup.md.`,
		Example: `  licet restore store.db --data-dir ./restored
  cp licet-data/master.keys licet-data/dev-key.json ./restored/    or your copies of them
  licet verify --data-dir ./restored
  licet dev --data-dir ./restored`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if cfg.DataDir == "" {
				return badUsage("--data-dir must name the directory to restore into")
			}
			return runRestore(cmd.Context(), cfg, args[0], stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

func runRestore(ctx context.Context, cfg restoreConfig, path string, stdout, stderr io.Writer) error {
	bar := terminal.NewMeter(stderr, "check", true)
	info, err := kv.Restore(ctx, path, cfg.DataDir, bar.Set)
	bar.Clear()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d bytes of %s restored\nSHA-256 %s\n", cfg.DataDir, info.Bytes, path, info.SHA256)
	return err
}
