package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"licet/kv/embedded"
	"licet/kv/internal/keyspace"
)

// Restored describes a restored backup.
type Restored struct {
	Bytes  int64
	SHA256 string // of the backup, in hex
}

// Restore makes a data directory out of a backup, for one embedded etcd. The directory must not exist, or be empty. If
// Restore fails or ctx ends, it leaves nothing behind.
//
// Revisions continue far above the backup's, and the history before is marked as compacted, so that a watch from before
// begins again. Authentication is off.
func Restore(ctx context.Context, path, dir string, progress Progress) (Restored, error) {
	info, err := checkBackup(ctx, path, progress)
	if err != nil {
		return Restored{}, fmt.Errorf("%s: %w", path, err)
	}
	fresh, err := vacant(dir)
	if err != nil {
		return Restored{}, err
	}
	lock, err := embedded.LockDir(dir)
	if err != nil {
		return Restored{}, err
	}
	if err := Unpack(ctx, path, dir, keyspace.RevisionBump); err != nil {
		err = errors.Join(err, removeAny(filepath.Join(dir, embedded.LockName)), lock.Close())
		if fresh {
			err = errors.Join(err, os.Remove(dir))
		}
		return Restored{}, err
	}
	return info, lock.Close()
}

func checkBackup(ctx context.Context, path string, progress Progress) (info Restored, err error) {
	file, err := os.Open(path)
	if err != nil {
		return info, err
	}
	defer file.Close()
	if info.Bytes, info.SHA256, err = checkSnapshot(ctx, file, progress); err != nil {
		return info, err
	}
	return info, checkBeside(path, info.SHA256)
}

// vacant demands that a directory does not exist or is empty. fresh reports that it does not exist.
func vacant(dir string) (fresh bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look into the data directory: %w", err)
	case len(entries) > 0:
		return false, fmt.Errorf("%s is not empty: a backup is restored into a new directory", dir)
	}
	return false, nil
}

// Unpack puts the store into a locked data directory, completely or not at all.
func Unpack(ctx context.Context, path, dir string, bump uint64) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) != 1 { // the lock
		return fmt.Errorf("%s is not empty any more", dir)
	}
	unfinished := filepath.Join(dir, embedded.StoreDir+newSuffix)
	defer func() {
		if p := recover(); p != nil { // etcd panics if it can't open a database
			err = fmt.Errorf("not an etcd database: %v", p)
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(unfinished))
		}
	}()
	member := embedded.ConfigureMember(embed.NewConfig())
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:        path,
		Name:                member.Name,
		OutputDataDir:       unfinished,
		PeerURLs:            []string{embedded.PeerURL},
		InitialCluster:      member.InitialCluster,
		InitialClusterToken: member.InitialClusterToken,
		RevisionBump:        bump,
		MarkCompacted:       bump > 0,
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	if err := ctx.Err(); err != nil { // etcd's restore checks no context
		return err
	}
	if err := disableAuthentication(datadir.ToBackendFileName(unfinished)); err != nil {
		return err
	}
	if err := os.Chmod(unfinished, embedded.PrivateDir); err != nil {
		return err
	}
	if err := syncTree(unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, filepath.Join(dir, embedded.StoreDir)); err != nil {
		return err
	}
	return syncDir(dir)
}

// disableAuthentication turns authentication off in a database that no etcd uses. The clients of an embedded etcd have
// no certificates, and so no users.
func disableAuthentication(path string) error {
	cfg := backend.DefaultBackendConfig(zap.NewNop())
	cfg.Path = path
	database := backend.New(cfg)
	users := schema.NewAuthBackend(zap.NewNop(), database)
	users.CreateAuthBuckets()
	tx := users.BatchTx()
	tx.Lock()
	tx.UnsafeSaveAuthEnabled(false)
	tx.Unlock()
	return database.Close() // Close commits
}

// syncTree syncs everything below a directory to the disk.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return syncDir(path)
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}
