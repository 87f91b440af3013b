package deliveries

import (
	"slices"
	"testing"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/node/store"
)

// TestUnreadableProgress damages the progress of an endpoint and a page of its log. The endpoint's deliveries begin
// where those of a new endpoint do, with the right counts, and other endpoints show their progress as before.
func TestUnreadableProgress(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	neighbor, other := ownEndpoint(t)
	m := kvtest.Metrics()
	s := deliveriesCountedBy(t, m)
	w := newWorker(t, s)
	ctx := t.Context()
	hold, next := holdOf(t, w, owner, endpoint), holdOf(t, w, neighbor, other)
	for _, done := range []store.Checkpoint{
		{Progress: store.DeliveryProgress{Place: "evt_000002", Failures: 3}, Delivered: messages(0, 2)},
		{Delivered: messages(2, 4), Pending: messages(4, 7), Dead: messages(7, 9)},
		{Delivered: messages(9, 10)},
	} {
		if err := hold.Checkpoint(ctx, done); err != nil {
			t.Fatal(err)
		}
	}
	reached := store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_000001"}}
	if err := next.Checkpoint(ctx, reached); err != nil {
		t.Fatal(err)
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := own.Client.Put(ctx, key, value); err != nil {
			t.Fatal(err)
		}
	}
	put(keyspace.ProgressKey(endpoint), "?")
	put(keyspace.PageKey(endpoint, 1), "?")

	progress := kvtest.Must(s.Progresses(ctx, endpoint, other))(t)
	if len(progress) != 1 || progress[other].Place != "evt_000001" {
		t.Errorf("the progress of both is %+v", progress)
	}
	if n := len(kvtest.Must(s.Deliveries(ctx, endpoint, store.DeliveryPage{Limit: 100}))(t).Items); n != 5 {
		t.Errorf("%d messages are listed, want the 5 that are pending or dead", n)
	}
	// A holder whose progress was damaged loses its lease, and the next holder begins anew.
	if err := hold.Checkpoint(ctx, store.Checkpoint{Delivered: messages(10, 11)}); err == nil {
		t.Error("a checkpoint went on over a progress that it did not write")
	}
	hold = holdOf(t, w, owner, endpoint)
	state := kvtest.Must(hold.Resume(ctx))(t)
	if state.Found || state.Progress != (store.DeliveryProgress{Pending: 3, Dead: 2}) || len(state.Pending) != 3 {
		t.Errorf("the state is %+v", state)
	}
	done := store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_000003"},
		Delivered: append(messages(4, 5), messages(7, 8)...)}
	if err := hold.Checkpoint(ctx, done); err != nil {
		t.Fatal(err)
	}
	var logged []string
	for _, d := range kvtest.Must(s.Deliveries(ctx, endpoint,
		store.DeliveryPage{Limit: 100, Status: store.DeliveryDelivered}))(t).Items {
		logged = append(logged, d.EventID)
	}
	want := []string{"evt_000007", "evt_000004", "evt_000009", "evt_000001", "evt_000000"}
	if !slices.Equal(logged, want) {
		t.Errorf("logged are %v, want %v without the page that can't be read", logged, want)
	}
	if n := kvtest.Counted(t, m.EventValuesUnreadable); n != 2 {
		t.Errorf("%v values are counted, want 2", n)
	}
	// Its count was lost too, so that the page is as it was counted then.
	put(keyspace.PageKey(endpoint, 1), string(layout.PagesOf(messages(2, 3))[0].Value))
	if kept, _ := keptOf(t, endpoint); kept == nil || !kept.Begun || kept.Progress.Pending != 2 ||
		kept.Progress.Dead != 1 {
		t.Errorf("kept is %+v", kept)
	}
}

// TestUnreadableReplay damages one of two replays: the other one goes on.
func TestUnreadableReplay(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	s := openDeliveries(t)
	ctx := t.Context()
	for _, id := range []string{"1", "2"} {
		if err := s.AddReplay(ctx, owner, endpoint, store.Replay{ID: id, Dead: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := own.Client.Put(ctx, keyspace.ReplayKey(endpoint, "1"), "?"); err != nil {
		t.Fatal(err)
	}
	jobs, _, err := holdOf(t, newWorker(t, s), owner, endpoint).Jobs(ctx)
	if err != nil || len(jobs) != 1 || jobs[0].ID != "2" {
		t.Errorf("the replays are %+v, %v", jobs, err)
	}
}
