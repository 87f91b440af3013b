package kv

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// moved returns the values of a metric other than 0, by the metric's one label.
func moved(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	all := make(chan prometheus.Metric, 100)
	c.Collect(all)
	close(all)
	values := make(map[string]float64)
	for metric := range all {
		var m dto.Metric
		if err := metric.Write(&m); err != nil {
			t.Fatal(err)
		}
		if value := m.GetCounter().GetValue(); value != 0 {
			values[m.GetLabel()[0].GetValue()] = value
		}
	}
	return values
}

// countsOwner is the owner of createOrder.
var countsOwner = licensing.Owner{AccountID: "acct_counts", Mode: licensing.Test}

// createOrder stores an unpaid order and returns it as read.
func createOrder(t *testing.T, s *Store) (licensing.Ref, store.Snapshot) {
	t.Helper()
	owner := countsOwner
	record := licensing.NewOrder(&licensing.Order{
		OrderNo: licensing.NewOrderNo(owner, ulid.Make().String()), Owner: owner, ProductID: "pro",
		OrderPayment: licensing.OrderPayment{Amount: 100, Currency: "USD"},
		PayHash:      keyring.HashPayToken("token"), Terms: licensing.DefaultTerms(), CreatedAt: kvtest.Time,
		ExpiresAt: kvtest.Time.Add(time.Hour),
	}, licensing.System)
	ref := licensing.OrderRef(owner, record.Order.OrderNo)
	outcome, err := s.Commit(t.Context(),
		store.Change{Writes: []store.Write{{Ref: ref, Record: record}}})
	if err != nil || !outcome.Landed {
		t.Fatalf("create: %+v, %v", outcome, err)
	}
	return ref, loadOne(t, s, ref)
}

// changed returns the change of an order by a command.
func changed(t *testing.T, ref licensing.Ref, from store.Snapshot, cmd licensing.Command) store.Change {
	t.Helper()
	record := from.Record.Clone()
	if _, err := licensing.Apply(&record, cmd, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	return store.Change{Writes: []store.Write{{Ref: ref, Token: from.Token, Record: record}}}
}

func pay(t *testing.T) licensing.PayOrder {
	return licensing.PayOrder{Payment: "p", Terms: licensing.DefaultTerms(), Key: newKeyOf(t, countsOwner)}
}

// TestSwapCounts: a swap counts once, by its outcome, however often it was sent. Its events count once, and only if it
// landed.
func TestSwapCounts(t *testing.T) {
	lost := rpctypes.ErrTimeout
	created := map[string]float64{"order.created": 1}
	paid := map[string]float64{"order.created": 1, "order.paid": 1, "license.issued": 1}
	for _, c := range []struct {
		name   string
		faults []kvtest.Fault
		rival  bool
		swaps  map[string]float64 // the order's creation too
		resent float64
		events map[string]float64
	}{
		{name: "no fault", swaps: map[string]float64{"won": 2}, events: paid},
		{name: "its answer is lost", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}},
			swaps: map[string]float64{"won": 2}, resent: 1, events: paid},
		{name: "it is lost twice", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost},
			{Apply: kvtest.AppliedLate, Tell: lost}}, swaps: map[string]float64{"won": 2}, resent: 2, events: paid},
		{name: "refused", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
			swaps: map[string]float64{"won": 1}, events: created},
		{name: "in doubt, then refused", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost},
			{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
			swaps: map[string]float64{"won": 1, "unknown": 1}, resent: 1, events: created},
		{name: "another was first", rival: true, swaps: map[string]float64{"won": 1, "lost": 1}, events: created},
		{name: "another was first, and its answer is lost", rival: true,
			faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}},
			swaps:  map[string]float64{"won": 1, "lost": 1}, resent: 1, events: created},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := faultyStore(t, kvtest.Script())
			ref, snapshot := createOrder(t, s)
			if c.rival {
				rival := faultyStore(t, kvtest.Script())
				if _, err := rival.Commit(t.Context(),
					changed(t, ref, loadOne(t, rival, ref), licensing.CancelOrder{})); err != nil {
					t.Fatal(err)
				}
				if got, want := moved(t, rival.metrics.Orders), map[string]float64{"canceled": 1}; !maps.Equal(got,
					want) {
					t.Errorf("the rival's orders: %v, want %v", got, want)
				}
			}
			s.etcd.Remote.(*kvtest.FaultyKV).Next = kvtest.Script(c.faults...)
			_, _ = s.Commit(t.Context(), changed(t, ref, snapshot, pay(t)))
			if got := moved(t, s.metrics.Swaps); !maps.Equal(got, c.swaps) {
				t.Errorf("swaps: %v, want %v", got, c.swaps)
			}
			if got := kvtest.Counted(t, s.metrics.SwapsReissued); got != c.resent {
				t.Errorf("%v were sent again, want %v", got, c.resent)
			}
			if got := moved(t, s.metrics.EventsRecorded); !maps.Equal(got, c.events) {
				t.Errorf("events: %v, want %v", got, c.events)
			}
			orders := map[string]float64{"created": 1}
			if c.events["order.paid"] > 0 {
				orders["paid"] = 1
			}
			if got := moved(t, s.metrics.Orders); !maps.Equal(got, orders) {
				t.Errorf("orders: %v, want %v", got, orders)
			}
		})
	}
}

// TestSharedBatchCounts: each change that shares a request counts by itself, also if the request is sent again because
// of one of them.
func TestSharedBatchCounts(t *testing.T) {
	for losers := range 3 {
		t.Run(fmt.Sprint(losers, " lose"), func(t *testing.T) {
			s, _ := countedStore(t, kvtest.Script())
			var changes []store.Change
			for i := range 3 {
				ref, snapshot := createOrder(t, s)
				changes = append(changes, changed(t, ref, snapshot, pay(t)))
				if i < losers {
					rival := faultyStore(t, kvtest.Script())
					if _, err := rival.Commit(t.Context(),
						changed(t, ref, loadOne(t, rival, ref), licensing.CancelOrder{})); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := moved(t, s.metrics.Swaps)["won"]
			batched(t, s, changes...)
			won := float64(len(changes) - losers)
			swaps := moved(t, s.metrics.Swaps)
			// Two more swaps are won: by the writer in front of the others.
			if swaps["lost"] != float64(losers) || swaps["won"]-before != won+2 || swaps["unknown"] != 0 {
				t.Errorf("swaps: %v, and %v won before", swaps, before)
			}
			if got := moved(t, s.metrics.Orders); got["paid"] != won {
				t.Errorf("orders: %v, want %v paid", got, won)
			}
			if got := moved(t, s.metrics.EventsRecorded); got["order.paid"] != won || got["license.issued"] != won {
				t.Errorf("events: %v", got)
			}
			if n := kvtest.Counted(t, s.metrics.StoreInFlight); n != 0 {
				t.Errorf("%v requests in flight", n)
			}
		})
	}
}

// heldKV holds back every transaction until the test releases it.
type heldKV struct {
	etcdserverpb.KVClient
	arrived, free chan struct{}
}

func (h *heldKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	h.arrived <- struct{}{}
	<-h.free
	return h.KVClient.Txn(ctx, request, opts...)
}

// TestRequestsInFlight: the gauge counts the requests in flight.
func TestRequestsInFlight(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	ref, _ := createStored(t, s)
	held := &heldKV{KVClient: clientv3.RetryKVClient(server.Client), arrived: make(chan struct{}),
		free: make(chan struct{})}
	s.etcd.Remote = held
	done := make(chan error, 2)
	for want := 1; want <= 2; want++ {
		go func() {
			_, err := s.Load(t.Context(), store.Want{Ref: ref})
			done <- err
		}()
		<-held.arrived
		if got := kvtest.Counted(t, s.metrics.StoreInFlight); got != float64(want) {
			t.Errorf("%v in flight, want %d", got, want)
		}
	}
	close(held.free)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := kvtest.Counted(t, s.metrics.StoreInFlight); got != 0 {
		t.Errorf("%v in flight at the end", got)
	}
}

// TestLookupCounts: the store remembers a license after the first look-up, and counts the next look-up as a hit.
func TestLookupCounts(t *testing.T) {
	maker := faultyStore(t, kvtest.Script())
	ref, _ := createStored(t, maker)
	s := faultyStore(t, kvtest.Script())
	recall := func() { _, _, _ = s.Recall(store.Want{Ref: ref}) }
	recall()
	if got := s.metrics.RecordsResident.Value(); got != 0 {
		t.Errorf("%v remembered before the first look-up", got)
	}
	loadOne(t, s, ref)
	recall()
	recall()
	if got, want := moved(t, s.metrics.RecordLookups), (map[string]float64{"miss": 1, "hit": 2}); !maps.Equal(got,
		want) {
		t.Errorf("lookups: %v, want %v", got, want)
	}
	if got := s.metrics.RecordsResident.Value(); got != 1 {
		t.Errorf("%v remembered", got)
	}
}

// TestEventSeriesFromTheStart: the series of each kind of event exists before the first event.
func TestEventSeriesFromTheStart(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	all := make(chan prometheus.Metric, 100)
	s.metrics.EventsRecorded.Collect(all)
	if len(all) != len(licensing.EventTypes()) {
		t.Errorf("%d series for %d kinds", len(all), len(licensing.EventTypes()))
	}
}
