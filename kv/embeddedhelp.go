package kv

import (
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startEmbedded starts one that tests of something else stand on.
func startEmbedded(t *testing.T, dir string) *Embedded {
	t.Helper()
	return startTunedBy(t, dir, quick)
}

// quick has a server not wait for the disk, since no test makes the machine fail, and
// become the leader soon, since it is alone.
func quick(cfg *embed.Config) {
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 10, 100
}

func startTunedBy(t *testing.T, dir string, tune func(*embed.Config)) *Embedded {
	t.Helper()
	e, err := startTuned(t.Context(), dir, zerolog.New(zerolog.NewTestWriter(t)), tune)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func dialEmbedded(t *testing.T, e *Embedded) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: e.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
