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

// privateFile is the mode of all files of this package: they contain license keys.
const privateFile fs.FileMode = 0o600

var errLocked = errors.New("another process is using the file")

// LockFile opens a file, or creates it, and locks it for this process. The kernel releases the lock when the process
// ends.
func LockFile(path string) (*os.File, error) {
	file, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, privateFile)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("%s: %w: wait for that process, or stop it", path, errLocked)
	case err != nil:
		return nil, err
	case !isAt(file.File, path):
		// Another process replaced the file after it was opened here and before it was locked.
		return nil, errors.Join(fmt.Errorf("%s: %w", path, errLocked), file.Close())
	}
	if err := file.Chmod(privateFile); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.File, nil
}

// BrokenOffError reports an interrupted import or export. Repeating the call continues it.
type BrokenOffError struct {
	Where string
	Cause error
}

// Error implements error.
func (e *BrokenOffError) Error() string {
	return "interrupted " + e.Where + "; repeat the command to continue: " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *BrokenOffError) Unwrap() error { return e.Cause }

// isAt reports whether path still names an open file.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// ReplaceFile writes a file atomically.
func ReplaceFile(path string, write func(io.Writer) error) error {
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

// putInPlace renames a file that is on disk to its final name.
func putInPlace(temporary, path string) error {
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncFolder(path)
}

// syncFolder writes the name of a file to disk.
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
