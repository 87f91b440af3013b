package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	// PrivateDir and PrivateFile are the modes of directories and files that no other user may enter or read.
	PrivateDir  fs.FileMode = 0o700
	PrivateFile fs.FileMode = 0o600

	// LockName is the file whose lock locks a data directory.
	LockName = "lock"
)

// LockDir makes a data directory if there is none, closed to other users, and
// takes it for this process until the lock is closed. The kernel frees the
// lock if the process dies.
//
// A directory that other users may enter is refused unless it is empty or has
// been a data directory before; then it is closed to them.
func LockDir(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, PrivateDir); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	if err := closeToOthers(dir); err != nil {
		return nil, err
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, PrivateFile)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("the data directory %s is in use by another licet process: stop that process, or "+
			"choose another directory", dir)
	case err != nil:
		return nil, fmt.Errorf("lock the data directory %s: %w", dir, err)
	}
	return lock, nil
}

func closeToOthers(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if info.Mode().Perm()&^PrivateDir == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look into the data directory: %w", err)
	}
	ours := len(entries) == 0
	for _, entry := range entries {
		ours = ours || entry.Name() == LockName
	}
	if !ours {
		return fmt.Errorf("%s contains other files and is open to other users: choose an empty directory for the data",
			dir)
	}
	if err := os.Chmod(dir, PrivateDir); err != nil {
		return fmt.Errorf("close the data directory to other users: %w", err)
	}
	return nil
}

// HasStore reports whether a data directory contains a store.
func HasStore(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, StoreDir))
	return err == nil && info.IsDir()
}
