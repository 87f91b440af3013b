package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/kvtest"
)

// silentMember is a member that falls silent: before its snapshot begins, or
// once it has given what has come.
type silentMember struct {
	clientv3.Maintenance
	begins bool
	come   string
}

func (m silentMember) SnapshotWithVersion(ctx context.Context) (*clientv3.SnapshotResponse, error) {
	if !m.begins {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	silence := readUntilDone{ctx}
	return &clientv3.SnapshotResponse{Snapshot: struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(m.come), silence), silence}}, nil
}

type readUntilDone struct{ ctx context.Context }

func (r readUntilDone) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, r.ctx.Err()
}

func (readUntilDone) Close() error { return nil }

// TestBackupOfSilentMember ends, and says what was wrong: "context canceled"
// would tell the operator that it was he.
func TestBackupOfSilentMember(t *testing.T) {
	for name, member := range map[string]silentMember{
		"from the first":   {},
		"after some bytes": {begins: true, come: "some bytes"},
	} {
		var got bytes.Buffer
		err := copySnapshot(t.Context(), member, &got, 100, 10*time.Millisecond, nil)
		if err == nil || err.Error() != "nothing came for 10ms" || got.String() != member.come {
			t.Errorf("silent %s: got %q, error %v", name, got.String(), err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := copySnapshot(canceled, member, io.Discard, 100, time.Hour, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("silent %s, and canceled: error %v", name, err)
		}
	}
}

// TestBackupKnowsWhenItsFileIsTaken: between opening and
// locking it, another process may have made a finished backup of it.
func TestBackupKnowsWhenItsFileIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.db.new")
	file := kvtest.Must(lockNew(path))(t)
	defer file.Close()
	if !isAt(file.File, path) {
		t.Error("a file that is there is taken for gone")
	}
	if _, err := lockNew(path); err == nil || !strings.Contains(err.Error(), "another process is writing") {
		t.Errorf("a second one: got error %v", err)
	}
	if err := os.Rename(path, strings.TrimSuffix(path, ".new")); err != nil {
		t.Fatal(err)
	}
	if isAt(file.File, path) {
		t.Error("a file that has another name is taken for there")
	}
	next := kvtest.Must(lockNew(path))(t)
	defer next.Close()
	if isAt(file.File, path) || !isAt(next.File, path) {
		t.Error("the next file is taken for the one before")
	}
}
