package embeddedtest

import (
	"os"
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"licet/kv/embedded"
)

// Start starts a server with the settings of [Quick], and closes it with the test.
func Start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	return StartTuned(t, dir, Quick)
}

// Dir returns a data directory, and removes it with the test. A server that starts again in this directory keeps its
// endpoint. In t.TempDir, which contains the test's name, the path of the socket may be too long, and each start then
// chooses another path.
func Dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "licet-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Quick turns fsync off, since no test makes the machine fail, and lets the server become the leader soon, since it is
// alone.
func Quick(cfg *embed.Config) {
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 10, 100
}

// StartTuned starts a server with a change of its settings, and closes it with the test.
func StartTuned(t *testing.T, dir string, tune func(*embed.Config)) *embedded.Server {
	t.Helper()
	e, err := embedded.StartTuned(t.Context(), dir, zerolog.New(zerolog.NewTestWriter(t)), tune)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// Dial returns a client of a server, and closes it with the test.
func Dial(t *testing.T, e *embedded.Server) *clientv3.Client {
	t.Helper()
	client, err := connect(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func connect(e *embedded.Server) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: e.Endpoints(), Logger: zap.NewNop()})
}
