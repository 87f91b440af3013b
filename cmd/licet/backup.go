package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/cli"
	"licet/cmd/licet/internal/terminal"
	"licet/kv"
	"licet/kv/backup"
	"licet/licensing/keyring"
)

// backupConfig contains the settings of licet store backup.
type backupConfig struct {
	storeConfig
	Keep int // how many backups to keep in the directory; 0: the argument is a file
}

func (c *backupConfig) addFlags(fs *pflag.FlagSet) {
	c.storeConfig.addFlags(fs)
	fs.IntVar(&c.Keep, "keep", 0,
		"treat FILE as a directory of backups, and keep this `number` of them: remove the oldest")
	nameVariables(fs)
}

func (c *backupConfig) validate() error {
	if c.Keep < 0 {
		return badUsage("--keep is %d: write at least 1, or 0 for a single file", c.Keep)
	}
	return c.storeConfig.validate()
}

func newBackupCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg backupConfig
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a store to a file",
		Long: `Write a snapshot of a store to FILE, and its SHA-256 to FILE.sha256. The command checks the
snapshot before it puts FILE in place: FILE is complete or absent, and replaces an earlier
FILE. The snapshot has every change that was acknowledged before the command started. A
service may run meanwhile.

The command records its success in the store, for the metrics of the nodes. If the store
accepts no writes, the backup is still good, and the command prints a warning.

With --keep, FILE is an existing directory. The command writes licet-<UTC time>.db there,
and then removes the oldest files of that form.

FILE has customer data: keep it secret. The master keys are not in the store: keep a copy of
them in another place. Without the master keys, Licet can't derive license keys and API secrets
from a backup. If etcd has users, the command needs the certificate of the user root.`,
		Example: `  licet store backup store.db --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet store backup /backups --keep 48 --etcd-endpoints 10.0.0.1:2379                 hourly, for two days
  licet store backup store.db --data-dir ./licet-data                                  a stopped licet dev
  licet store backup store.db --etcd-endpoints unix://$PWD/licet-data/run/etcd.sock    a running licet dev`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return runBackup(cmd.Context(), cfg, args[0], stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

func runBackup(ctx context.Context, cfg backupConfig, path string, stdout, stderr io.Writer) error {
	return cfg.use(ctx, stderr, func(ctx context.Context, store kv.Config) error {
		return cfg.make(ctx, store, path, stdout, stderr)
	})
}

// make makes a backup of a store.
func (c *backupConfig) make(ctx context.Context, store kv.Config, path string, stdout, stderr io.Writer) error {
	begun := time.Now()
	if c.Keep > 0 {
		path = backup.Path(path, begun)
	}
	bar := terminal.NewMeter(stderr, "backup", true)
	info, err := backup.Make(ctx, store.Etcd(), path, bar.Set)
	bar.Clear()
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := backup.Record(ctx, store.Etcd(), begun); err != nil {
		// The backup itself is good, so the command succeeds.
		fmt.Fprintf(stderr, "warning: the backup is good, but licet_backup_last_success_timestamp_seconds will not "+
			"show it: recording the backup in the store failed: %v\n", err)
	}
	if c.Keep > 0 {
		if err := backup.Prune(path, c.Keep); err != nil {
			return fmt.Errorf("%s is a good backup, but removing older backups failed: %w", path, err)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s: %d bytes, every change up to revision %d\nSHA-256 %s\n",
		path, info.Bytes, info.Revision, info.SHA256)
	return err
}

// restoreConfig contains the settings of licet store restore.
type restoreConfig struct {
	DataDir       string
	MasterKeyFile string
}

func (c *restoreConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.DataDir, "data-dir", "", "data `directory` to create; it must not exist, or be empty")
	fs.StringVar(&c.MasterKeyFile, "master-key-file", "",
		"`file` with the master keys of the nodes, to check that they open the backup (optional)")
	nameVariables(fs)
}

func newRestoreCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg restoreConfig
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create a data directory from a backup",
		Long: `Create a data directory for licet dev from a backup. The command compares FILE with the
checksum inside FILE, and with FILE.sha256 if that exists. If anything is wrong, the command
creates nothing.

With --master-key-file the command then checks that the master keys open the restored store, and
copies the file into the data directory. If the master keys do not open the store, the restored
directory stays. Without master keys no service can use the store.

The revisions of the restored store continue far above those of the lost store, so a node
that remembers lost revisions does no harm. To restore a cluster, see docs/guides/backup.md.`,
		Example: `  licet store restore store.db --data-dir ./restored --master-key-file licet-data/master.keys
  cp licet-data/dev-key.json ./restored/                           or your copies of these files
  licet store verify --data-dir ./restored
  licet dev --data-dir ./restored`,
		Args: cli.Arguments,
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
	var ring keyring.MasterRing
	if cfg.MasterKeyFile != "" {
		var err error
		if ring, err = readMasterRing(cfg.MasterKeyFile); err != nil {
			return err
		}
	}
	bar := terminal.NewMeter(stderr, "check", true)
	info, err := backup.Restore(ctx, path, cfg.DataDir, bar.Set)
	bar.Clear()
	if err != nil {
		return err
	}
	if cfg.MasterKeyFile != "" {
		if err := cfg.addRing(ctx, ring, stderr); err != nil {
			return fmt.Errorf("%s is restored, without master keys: %w", cfg.DataDir, err)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s: %d bytes of %s restored\nSHA-256 %s\n", cfg.DataDir, info.Bytes, path,
		info.SHA256)
	return err
}

// addRing checks that the ring has all master keys of the restored store, and copies the ring's file into the data
// directory.
func (c *restoreConfig) addRing(ctx context.Context, ring keyring.MasterRing, stderr io.Writer) error {
	restored := storeConfig{DataDir: c.DataDir}
	err := restored.withStore(ctx, stderr, func(ctx context.Context, store *kv.Store) error {
		if err := store.CheckRing(ctx, ring); err != nil {
			return err
		}
		_, err := store.ReadLicenseKeys(ctx, ring)
		return err
	})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.MasterKeyFile)
	if err != nil {
		return fmt.Errorf("master keys: %w", err)
	}
	return writeFile(filepath.Join(c.DataDir, masterFile), text)
}
