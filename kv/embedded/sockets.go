package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

const (
	socketName = "etcd.sock"
	// maxSocketPath is the maximum length of a socket's path: 104 bytes on macOS and 108 on Linux, with the zero byte
	// at the end.
	maxSocketPath = 100
)

// socketDir is the directory of the server's socket: dir/run. If that path is too long, or can't be written as an
// address, it is a private temporary directory, and dir/run is a link to it, so that the next start finds and removes
// the remains of a killed process.
type socketDir struct {
	path string // absolute
	link string // dir/run if that is a link; else empty
}

func openSocketDir(dir string) (*socketDir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	run := filepath.Join(dir, "run")
	if err := removeStaleSocket(run); err != nil {
		return nil, fmt.Errorf("remove the socket of an earlier process: %w", err)
	}
	here := &socketDir{path: run}
	if here.addressable() {
		if err := os.Mkdir(run, PrivateDir); err != nil {
			return nil, fmt.Errorf("make the socket directory: %w", err)
		}
		return here, nil
	}
	temporary, err := os.MkdirTemp("", "licet-") // 0700
	if err != nil {
		return nil, fmt.Errorf("make the socket directory: %w", err)
	}
	if err := os.Symlink(temporary, run); err != nil {
		return nil, errors.Join(fmt.Errorf("note the socket directory: %w", err), os.Remove(temporary))
	}
	there := &socketDir{path: temporary, link: run}
	if !there.addressable() {
		return nil, errors.Join(
			fmt.Errorf("the path of the socket %s/%s is too long or has odd characters; use another data directory, "+
				"or set TMPDIR to a short one", temporary, socketName),
			there.Close())
	}
	return there, nil
}

// addressable reports whether the socket's path fits into a socket address, and into a URL without escapes: clients
// differ in how they unescape a path.
func (d *socketDir) addressable() bool {
	u := d.url()
	path := filepath.Join(d.path, socketName)
	return len(path) <= maxSocketPath && u.EscapedPath() == path
}

func (d *socketDir) url() url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(d.path, socketName)}
}

// Close removes the directory and its content.
func (d *socketDir) Close() error {
	var err error
	if d.link != "" {
		err = os.Remove(d.link)
	}
	return errors.Join(err, os.RemoveAll(d.path))
}

// removeStaleSocket removes the socket of a killed process at run. Behind a link it removes only what such a process
// creates, and nothing if anything is unexpected: the temporary directory may be gone by now, and another program may
// use its name.
func removeStaleSocket(run string) error {
	target, err := os.Readlink(run)
	if err != nil { // no link: a directory, or nothing
		return os.RemoveAll(run)
	}
	err = errors.Join(os.Remove(filepath.Join(target, socketName)), os.Remove(target))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return os.Remove(run)
}
