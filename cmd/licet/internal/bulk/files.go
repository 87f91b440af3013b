package bulk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// privateFile is the mode of all files that are made here: they hold license
// keys.
const privateFile fs.FileMode = 0o600

var errLocked = errors.New("another process is at work on it")

// lockFile opens a file for this process alone, and makes it if there is none.
// The kernel frees the lock if the process dies.
func lockFile(path string) (*os.File, error) {
	file, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, privateFile)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("%s: %w; wait for that one, or stop it", path, errLocked)
	case err != nil:
		return nil, err
	case !isAt(file.File, path):
		// Another process was done with it after it was opened here and before it
		// was locked.
		return nil, errors.Join(fmt.Errorf("%s: %w", path, errLocked), file.Close())
	}
	if err := file.Chmod(privateFile); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.File, nil
}

// BrokenOffError tells that something has ended before it was done, and that the
// same call goes on.
type BrokenOffError struct {
	Where string
	Cause error
}

// Error implements error.
func (e *BrokenOffError) Error() string {
	return "it broke off " + e.Where + "; the same command goes on from there: " + e.Cause.Error()
}

// Unwrap gives the cause.
func (e *BrokenOffError) Unwrap() error { return e.Cause }

// isAt tells whether an open file still has that name.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// replaceFile makes a file anew. It appears whole, or the one that was there
// stays.
func replaceFile(path string, write func(io.Writer) error) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, privateFile)
	if err != nil {
		return err
	}
	err = errors.Join(file.Chmod(privateFile), write(file))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = putInPlace(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// putInPlace gives a file that is on disk its name.
func putInPlace(temporary, path string) error {
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncFolder(path)
}

// syncFolder makes sure that the name of a file is on disk.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(fileutil.Fsync(folder), folder.Close())
}

func removeAny(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
