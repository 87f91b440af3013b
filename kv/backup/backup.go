package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/embedded"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
)

const (
	newSuffix      = ".new"
	checksumSuffix = ".sha256"
	// snapshotBlock divides the size of etcd's database file. In a snapshot, a checksum follows the database.
	snapshotBlock = 512
	// pieceTimeout bounds the wait for the next piece of a snapshot.
	pieceTimeout = 30 * time.Second
	// firstTimeout bounds the two requests before the snapshot. A busy member may take longer than a node would wait.
	firstTimeout = 10 * time.Second
)

// Config says which etcd to back up.
type Config = etcd.Config

// Info describes a new backup.
type Info struct {
	Endpoint string // the member that was copied
	Revision int64  // the backup has every change up to it; later changes may be in it
	Bytes    int64
	SHA256   string // of the file, in hex
}

// Progress receives how many bytes are done, of an estimated total.
type Progress func(done, total int64)

// Make writes a snapshot of the store to a file, and the snapshot's checksum to a second file beside it. The file
// appears complete and checked, or not at all. Make replaces an existing file.
//
// The snapshot is one member's. It contains every change that was acknowledged
// before the call, since that member must answer a linearizable read first.
func Make(ctx context.Context, cfg Config, path string, progress Progress) (Info, error) {
	temporary := path + newSuffix
	file, err := lockNew(temporary)
	if err != nil {
		return Info{}, err
	}
	info, err := Info{}, file.Chmod(embedded.PrivateFile) // the file may be left from a killed process
	if err == nil {
		info, err = writeSnapshot(ctx, cfg, file, progress)
	}
	if err == nil {
		err = putInPlace(file, temporary, path, info.SHA256)
	}
	if err != nil {
		return Info{}, errors.Join(err, removeAny(temporary), file.Close())
	}
	return info, file.Close()
}

// lockNew opens a file for this process alone.
func lockNew(path string) (*fileutil.LockedFile, error) {
	file, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, embedded.PrivateFile)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, errWriting(path)
	case err != nil:
		return nil, err
	case !isAt(file.File, path):
		// Another process finished the file after it was opened here, and before it was locked: the file is a finished
		// backup now.
		return nil, errors.Join(errWriting(path), file.Close())
	}
	return file, nil
}

func errWriting(path string) error { return fmt.Errorf("another process is writing %s", path) }

// isAt reports whether an open file still has this name.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// writeSnapshot takes the snapshot of the first member that sends one.
func writeSnapshot(ctx context.Context, cfg Config, file *fileutil.LockedFile, progress Progress) (Info, error) {
	var failures []error
	for _, endpoint := range cfg.Endpoints {
		if err := errors.Join(file.Truncate(0), rewind(file)); err != nil {
			return Info{}, err
		}
		one := cfg
		one.Endpoints = []string{endpoint}
		info, err := copyMember(ctx, one, file, progress)
		if err == nil {
			return info, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", endpoint, err))
		if ctx.Err() != nil {
			break
		}
	}
	return Info{}, errors.Join(failures...)
}

func rewind(file io.Seeker) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// copyMember copies the snapshot of the only endpoint to a file, and checks the file as it is on disk.
func copyMember(ctx context.Context, cfg Config, file *fileutil.LockedFile, progress Progress) (info Info, err error) {
	info.Endpoint = cfg.Endpoints[0]
	s, err := etcd.Open(ctx, cfg)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	// A linearizable read: the snapshot has everything that the member has after the read.
	first, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	read, err := s.Native.Get(first, keyspace.CheckKey, clientv3.WithKeysOnly())
	if err != nil {
		return info, err
	}
	info.Revision = read.Header.Revision
	status, err := s.Native.Status(first, info.Endpoint)
	if err != nil {
		return info, err
	}

	if err := copySnapshot(ctx, s.Native, file, status.DbSize, pieceTimeout, progress); err != nil {
		return info, fmt.Errorf("copy the snapshot: %w", needsRoot(err))
	}
	if err := file.Sync(); err != nil {
		return info, err
	}
	info.Bytes, info.SHA256, err = checkSnapshot(ctx, file.File, nil)
	return info, err
}

// needsRoot adds to etcd's refusal of a user which user may do it.
func needsRoot(err error) error {
	if errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		return fmt.Errorf("%w: use the certificate of the user root", err)
	}
	return err
}

// copySnapshot copies a member's snapshot. It gives up if no piece arrives for as long as patience says.
func copySnapshot(
	ctx context.Context, member clientv3.Maintenance, to io.Writer, size int64, patience time.Duration,
	progress Progress,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stalled := time.AfterFunc(patience, func() { stop(fmt.Errorf("nothing came for %v", patience)) })
	defer stalled.Stop()
	snapshot, err := member.SnapshotWithVersion(ctx)
	if err == nil {
		defer snapshot.Snapshot.Close()
		_, err = io.Copy(to, &counter{reader: snapshot.Snapshot, total: size, progress: progress,
			alive: func() { stalled.Reset(patience) }})
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// counter passes bytes on and counts them.
type counter struct {
	reader      io.Reader
	done, total int64
	progress    Progress // or nil
	alive       func()   // or nil; called for each piece
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.done, max(c.done, c.total))
	}
	if c.alive != nil {
		c.alive()
	}
	return n, err
}

// stoppable reads until its context ends.
type stoppable struct {
	ctx    context.Context
	reader io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.reader.Read(p)
}

// putInPlace gives a finished backup its name. It first removes the checksum of the replaced backup: a wrong checksum
// would be worse than none.
func putInPlace(file *fileutil.LockedFile, temporary, path, sum string) error {
	if err := removeAny(path + checksumSuffix); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	line := sum + "  " + filepath.Base(path) + "\n" // as sha256sum writes and reads it
	if err := os.WriteFile(path+checksumSuffix, []byte(line), embedded.PrivateFile); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// removeAny removes a file if it exists.
func removeAny(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// checkSnapshot compares a snapshot with the checksum at its end. It returns the size and the SHA-256 of the whole
// file.
func checkSnapshot(ctx context.Context, file *os.File, progress Progress) (size int64, sum string, err error) {
	stat, err := file.Stat()
	if err != nil {
		return 0, "", err
	}
	size = stat.Size()
	if size <= sha256.Size || size%snapshotBlock != sha256.Size {
		return size, "", fmt.Errorf("not a snapshot, or cut off: %d bytes", size)
	}
	if err := rewind(file); err != nil {
		return size, "", err
	}
	content, whole := sha256.New(), sha256.New()
	source := &counter{reader: stoppable{ctx, file}, total: size, progress: progress}
	if _, err := io.CopyN(io.MultiWriter(content, whole), source, size-sha256.Size); err != nil {
		return size, "", err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(source, want); err != nil {
		return size, "", err
	}
	if !bytes.Equal(content.Sum(nil), want) {
		return size, "", errors.New("damaged: the checksum inside does not match")
	}
	whole.Write(want)
	return size, hex.EncodeToString(whole.Sum(nil)), nil
}

// checkBeside compares a file's checksum with the checksum in the file beside it, if that file exists.
func checkBeside(path, sum string) error {
	line, err := os.ReadFile(path + checksumSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if want, _, _ := strings.Cut(string(line), " "); want != sum {
		return fmt.Errorf("the SHA-256 is %s, and %s has another SHA-256", sum, path+checksumSuffix)
	}
	return nil
}
