package deliveries

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv"
	"licet/kv/internal/kvtest"
	"licet/metrics"
	"licet/node/store"
)

// openDeliveries opens the deliveries of a node of its own.
func openDeliveries(t *testing.T) *Store {
	t.Helper()
	return deliveriesCountedBy(t, kvtest.Metrics())
}

func deliveriesCountedBy(t *testing.T, m *metrics.Metrics) *Store {
	t.Helper()
	return New(openRecords(t, m))
}

// openRecords opens the store of records of a node of its own.
func openRecords(t *testing.T, m *metrics.Metrics) *kv.Store {
	t.Helper()
	s, err := kv.Open(t.Context(),
		kv.Config{Endpoints: own.Endpoints, Metrics: m, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// faultyDeliveries opens deliveries whose writes meet faults.
func faultyDeliveries(t *testing.T, next func() kvtest.Fault) *Store {
	t.Helper()
	s := openDeliveries(t)
	faulty := &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: next}
	s.etcd.Remote, s.etcd.KV = faulty, clientv3.NewKVFromKVClient(faulty, s.etcd.Native)
	return s
}

// asWorker runs do as the worker that a node's deliveries are.
func asWorker(t *testing.T, s *Store, do func(ctx context.Context, w *worker)) {
	t.Helper()
	err := s.Work(t.Context(), func(ctx context.Context, w store.DeliveryWorker) error {
		do(ctx, w.(*worker))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
