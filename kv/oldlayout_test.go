package kv

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
)

// TestOpenRefusesOldLayout opens an empty store, and the same store after a build of the layout before has written it.
func TestOpenRefusesOldLayout(t *testing.T) {
	t.Parallel()
	server := embeddedtest.Start(t, t.TempDir())
	open := func() error {
		s, err := Open(t.Context(), Config{Endpoints: server.Endpoints(), Metrics: kvtest.Metrics(),
			Log: zerolog.Nop()})
		if err != nil {
			return err
		}
		return s.Close()
	}
	if err := open(); err != nil {
		t.Fatalf("an empty store: %v", err)
	}
	if _, err := embeddedtest.Dial(t, server).Put(t.Context(), keyspace.OldCheckKey, "x"); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, etcd.ErrOldLayout) {
		t.Errorf("a store of the layout before: %v", err)
	}
}
