package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"licet/kv/internal/kvtest"
)

// startServed starts a server as the program does.
func startServed(t *testing.T, dir string) *Server {
	t.Helper()
	e, err := Start(t.Context(), dir, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func dialServed(t *testing.T, e *Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: e.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func putEmbedded(t *testing.T, e *Server, key, value string) {
	t.Helper()
	if _, err := dialServed(t, e).Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedKeepsAcknowledgedWrites(t *testing.T) {
	dir := t.TempDir()
	e := startServed(t, dir)
	putEmbedded(t, e, "key", "value")
	e.Close()
	e.Close() // once more does no harm

	e = startServed(t, dir)
	got, err := dialServed(t, e).Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("after a restart key has %v", got.Kvs)
	}
	select {
	case err := <-e.Err():
		t.Errorf("a running server reports %v", err)
	default:
	}
}

func TestEmbeddedIsClosedToOtherUsers(t *testing.T) {
	dir := t.TempDir()
	e := startServed(t, dir)
	if want := "unix://" + filepath.Join(dir, "run", "etcd.sock"); e.Endpoints()[0] != want {
		t.Errorf("it listens on %v, want %s", e.Endpoints(), want)
	}
	for _, name := range []string{"run", "etcd"} {
		kvtest.WantMode(t, filepath.Join(dir, name), 0o700)
	}
	if listeners := len(e.etcd.Clients) + len(e.etcd.Peers); listeners != 1 {
		t.Errorf("%d listeners, want the socket alone", listeners)
	}
}

// A socket can't have a long path or, as clients read addresses, an odd one.
func TestEmbeddedInDirectoryThatNoSocketFits(t *testing.T) {
	for name, below := range map[string]string{
		"long": strings.Repeat("d", maxSocketPath),
		"odd":  "100% äöü",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), below)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", kvtest.ShortTempDir(t))
			e := startServed(t, dir)
			putEmbedded(t, e, "key", "value")
			sockets := e.sockets.path
			if strings.HasPrefix(sockets, dir) {
				t.Errorf("the socket is in %s", sockets)
			}
			kvtest.WantMode(t, sockets, 0o700)
			e.Close()
			kvtest.WantGone(t, sockets)
			kvtest.WantGone(t, filepath.Join(dir, "run"))
		})
	}
}

func TestEmbeddedClearsUpAfterKilledProcess(t *testing.T) {
	t.Run("socket in the data directory", func(t *testing.T) {
		dir := t.TempDir()
		leaveSocket(t, filepath.Join(dir, "run"))
		putEmbedded(t, startServed(t, dir), "key", "value")
	})
	t.Run("socket elsewhere", func(t *testing.T) {
		dir, elsewhere := t.TempDir(), filepath.Join(kvtest.ShortTempDir(t), "x")
		leaveSocket(t, elsewhere)
		if err := os.Symlink(elsewhere, filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		putEmbedded(t, startServed(t, dir), "key", "value")
		kvtest.WantGone(t, elsewhere)
	})
	t.Run("socket elsewhere, gone since", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		putEmbedded(t, startServed(t, dir), "key", "value")
	})
}

// leaveSocket creates a directory with a socket without a listener.
func leaveSocket(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedReportsItsFailure(t *testing.T) {
	e := startServed(t, t.TempDir())
	e.etcd.Server.HardStop()
	select {
	case err := <-e.Err():
		if err == nil || !strings.Contains(err.Error(), "embedded etcd") {
			t.Errorf("got error %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a dead server was not reported")
	}
}

func TestEmbeddedStartGivesUpWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, dir, zerolog.Nop()); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want the context's", err)
	}
	startServed(t, dir) // nothing of the first try is in its way
}

func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kvtest.WantMode(t, dir, 0o700)
	kvtest.WantMode(t, filepath.Join(dir, "lock"), 0o600)

	_, err = LockDir(dir)
	if err == nil || !strings.Contains(err.Error(), dir+" is in use by another licet process") {
		t.Fatalf("a second lock: got error %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err = LockDir(dir)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	_ = lock.Close()
}

func TestLockDirClosesDirectoryToOthers(t *testing.T) {
	f := func(name string, files []string, allowed bool) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		lock, err := LockDir(dir)
		if !allowed {
			if err == nil || !strings.Contains(err.Error(), "choose an empty directory") {
				t.Errorf("%s: got error %v", name, err)
			}
			kvtest.WantMode(t, dir, 0o755)
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kvtest.WantMode(t, dir, 0o700)
		_ = lock.Close()
	}
	f("empty", nil, true)
	f("ours", []string{"lock", "dev.env"}, true)
	f("foreign", []string{"notes.txt"}, false)
}

func TestEtcdLogPassesOnMessageAndErrorOnly(t *testing.T) {
	var out bytes.Buffer
	bridge := newEtcdLog(zerolog.New(&out))
	log := bridge.zap()

	log.Error("while it starts") // the start returns the error
	bridge.level.SetLevel(zapcore.WarnLevel)
	log.Error("broken", zap.Error(errors.New("the reason")), zap.String("request", "SECRET"))
	log.Info("an info")
	log.Warn("slow", zap.String("error", "SECRET"), zap.Strings("keys", []string{"SECRET"}))
	log.With(zap.String("key", "SECRET"), zap.Error(errors.New("from with"))).Named("SECRET").Warn("later")

	log.Error("failed to update storage version",
		zap.Error(errors.New("cannot detect storage schema version: missing term information")))
	log.Error("unexpected error during readonly txn",
		zap.Error(fmt.Errorf("applyTxn: failed Range: %w", context.Canceled)))

	want := `{"level":"error","component":"etcd","error":"the reason","message":"broken"}
{"level":"warn","component":"etcd","message":"slow"}
{"level":"warn","component":"etcd","error":"from with","message":"later"}
{"level":"debug","component":"etcd","error":"cannot detect storage schema version: missing term information","message":"failed to update storage version"}
{"level":"debug","component":"etcd","error":"applyTxn: failed Range: context canceled","message":"unexpected error during readonly txn"}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
