package kv

import (
	"context"
	"fmt"
	"testing"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"licet/internal/depth"
	"licet/internal/etcdtest"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/etcd"
	"licet/kv/internal/kvtest"
	"licet/metrics"
	"licet/node/store"
	"licet/node/store/storetest"
)

// server is the etcd of all tests of the package.
var server embeddedtest.Etcd

func TestMain(m *testing.M) {
	etcdtest.Main()
	wal.SegmentSizeBytes = 1 << 20 // otherwise each etcd allocates 128 MB for its log
	depth.CollectLess()
	depth.Parallel(8) // tests with an etcd of their own mostly wait
	embeddedtest.Main(m, func(_ context.Context, e embeddedtest.Etcd) error {
		server = e
		return nil
	})
}

// patience is how long stores of tests wait for an answer of etcd: the race detector and other tests make etcd slow.
const patience = 5 * etcd.CallTimeout

// openStore opens a store as a node does.
func openStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Endpoints: server.Endpoints, Metrics: kvtest.Metrics(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	learn(t, s)
	s.moveEvery, s.etcd.CallTimeout = 0, patience
	return s
}

// storeOn returns a store that can only read, through asked.
func storeOn(asked clientv3.KV) *Store {
	return &Store{core: &core{etcd: &etcd.Client{KV: asked, CallTimeout: patience}}}
}

// learn makes a store read which owners listen to activations, as a node does at its start. Some tests subscribe owners
// on the etcd of all tests.
func learn(t *testing.T, s *Store) {
	t.Helper()
	if err := s.learnListening(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// faultyStore opens a store whose writes meet faults.
func faultyStore(t *testing.T, next func() kvtest.Fault) *Store {
	t.Helper()
	s, err := storeOver(&kvtest.FaultyKV{KVClient: clientv3.RetryKVClient(server.Client), Next: next}, server.Client,
		kvtest.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	s.etcd.Native = server.Client // watches meet no faults
	learn(t, s)
	s.moveEvery = 0
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openStore(t) })
	storetest.RunListings(t, func(t *testing.T) store.Store { return openStore(t) })
	storetest.RunClaims(t, func(t *testing.T) store.Store { return openStore(t) })
	storetest.RunKeys(t, func(t *testing.T) storetest.KeyedStore { return openStore(t) })
}

func TestEventsConformance(t *testing.T) {
	open := func(t *testing.T, recordActivations bool) storetest.EventfulStore {
		s := openStore(t)
		s.recordActivations = recordActivations
		return s
	}
	storetest.RunEvents(t, open)
	storetest.RunSubscriptions(t, open)
}

// TestConformanceUnderFaults runs the same suite while every second write
// fails: applied or not, at once or late. Commit must resolve all outcomes.
func TestConformanceUnderFaults(t *testing.T) {
	for seed := range depth.Of[uint64](1, 3) {
		open := func(t *testing.T, recordActivations bool) storetest.EventfulStore {
			s := faultyStore(t, kvtest.Storm(seed))
			s.recordActivations = recordActivations
			return s
		}
		storetest.RunClaims(t, func(t *testing.T) store.Store { return faultyStore(t, kvtest.Storm(seed)) })
		storetest.RunSubscriptions(t, open)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store { return faultyStore(t, kvtest.Storm(seed)) })
			storetest.RunListings(t, func(t *testing.T) store.Store { return faultyStore(t, kvtest.Storm(seed)) })
			storetest.RunKeys(t, func(t *testing.T) storetest.KeyedStore { return faultyStore(t, kvtest.Storm(seed)) })
			storetest.RunEvents(t, open)
		})
	}
}

// openAt opens a store at the endpoints.
func openAt(t *testing.T, ctx context.Context, endpoints ...string) (*Store, error) {
	t.Helper()
	s, err := Open(ctx,
		Config{Endpoints: endpoints, Metrics: kvtest.Metrics(), Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

// storeOver returns a store that sends reads and transactions through remote.
func storeOver(remote etcdserverpb.KVClient, native *clientv3.Client, m *metrics.Metrics) (*Store, error) {
	return newStore(etcd.New(remote, native, m, zerolog.Nop()), m, zerolog.Nop(), 0)
}
