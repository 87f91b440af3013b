package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node/store"
)

func testWorkers(d deliveries) {
	stores := []DeliveryStore{d.open(d.t), d.open(d.t)}
	w, stop := d.work(stores[0])
	other, _ := d.work(stores[1])
	both := []store.Incarnation{w.Self(), other.Self()}
	up := func() (up []store.Incarnation) {
		workers, err := other.Workers(d.context())
		if err != nil {
			d.t.Fatal(err)
		}
		for _, by := range workers {
			if slices.Contains(both, by) {
				up = append(up, by)
			}
		}
		return up
	}
	if got := up(); len(got) != 2 {
		d.t.Errorf("the workers are %v, want %v", got, both)
	}
	d.acquire(w)
	stop()
	if got := up(); !slices.Equal(got, both[1:]) {
		d.t.Errorf("the workers are %v, want %v", got, both[1:])
	}
	d.acquire(other)
	failed := errors.New("failed")
	if err := stores[0].Work(d.context(),
		func(context.Context, store.DeliveryWorker) error { return failed }); !errors.Is(err, failed) {
		d.t.Errorf("Work gives %v", err)
	}
}

func testHolders(d deliveries) {
	first, _ := d.work(d.open(d.t))
	second, _ := d.work(d.open(d.t))
	lease := d.acquire(first)
	d.resume(lease)
	d.checkpoint(lease, store.Checkpoint{Progress: store.DeliveryProgress{Place: "pos_1"}})
	for _, w := range []store.DeliveryWorker{first, second} {
		if _, ok, err := w.Acquire(d.context(), d.owner, d.endpoint); ok || err != nil {
			d.t.Errorf("it is leased twice: %v, %v", ok, err)
		}
		leases, err := w.Leases(d.context())
		if err != nil || leases[d.endpoint] != first.Self() {
			d.t.Errorf("the leases are %v, %v", leases, err)
		}
	}
	d.release(lease)
	if leases, err := second.Leases(d.context()); err != nil || leases[d.endpoint] != (store.Incarnation{}) {
		d.t.Errorf("after the release the leases are %v, %v", leases, err)
	}
	next := d.acquire(second)
	if err := lease.Checkpoint(d.context(),
		store.Checkpoint{Progress: store.DeliveryProgress{Place: "pos_stale"}}); !errors.Is(err, store.ErrLeaseLost) {
		d.t.Errorf("who has released it writes: %v", err)
	}
	if state := d.resume(next); state.Progress.Place != "pos_1" {
		d.t.Errorf("it resumes at %q", state.Progress.Place)
	}
	if _, ok, err := first.Acquire(d.context(), d.owner, d.newEndpoint()); ok || err != nil {
		d.t.Errorf("an endpoint that is not there is leased: %v, %v", ok, err)
	}
	if _, ok, err := first.Acquire(d.context(), d.fixture.owner(), d.endpoint); ok || err != nil {
		d.t.Errorf("an endpoint of another owner is leased: %v, %v", ok, err)
	}
}

func testHeldEndpoint(d deliveries) {
	w, _ := d.work(d.open(d.t))
	lease := d.acquire(w)
	var last int64
	read := func(what string, want licensing.Endpoint, found bool) {
		d.t.Helper()
		var jobs store.EndpointAt
		resumed := d.resume(lease).Endpoint
		d.again(func() (err error) { _, jobs, err = lease.Jobs(d.context()); return err })
		for _, at := range []store.EndpointAt{resumed, jobs} {
			if at.Revision < last {
				d.t.Errorf("%s: it is of revision %d, after %d", what, at.Revision, last)
			}
			last, at.Revision = at.Revision, 0
			d.equal(what, at, store.EndpointAt{Endpoint: want, Found: found})
		}
	}
	endpoint := licensing.Endpoint{ID: d.endpoint, URL: "https://shop.example/hook"}
	read("at first", endpoint, true)
	endpoint.URL, endpoint.ResetAt = "https://shop.example/moved", created
	endpoint.Types = []licensing.EventType{licensing.EventOrderPaid}
	d.put(d.t, d.owner, []licensing.Endpoint{{ID: d.newEndpoint()}, endpoint})
	read("after a change", endpoint, true)
	d.put(d.t, d.owner, nil)
	read("after it is gone", licensing.Endpoint{}, false)
}

func testCheckpoint(d deliveries) {
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	if state := d.resume(lease); state.Found || len(state.Pending) > 0 {
		d.t.Errorf("a new endpoint resumes at %+v", state)
	}
	if found, err := s.Progresses(d.context(), d.endpoint); err != nil || len(found) > 0 {
		d.t.Errorf("it has %+v, %v", found, err)
	}
	at := func(n int) time.Time { return created.Add(time.Duration(n) * time.Hour) }
	progress := store.DeliveryProgress{
		Place: "evt_0somewhere", SeenAt: at(1), Failures: 7, FailingSince: at(2), SinceInDoubt: true,
		NextProbe: at(3), LastSuccess: at(4), SkippedAt: at(5), Behind: true, Pending: 99, Dead: 99,
	}
	d.checkpoint(lease, store.Checkpoint{
		Progress: progress, Pending: []store.Delivery{message(1, 1),
			message(2, 2)}, Dead: []store.Delivery{message(3, 10)},
		Delivered: []store.Delivery{message(4, 1)},
	})
	progress.Pending, progress.Dead = 2, 1
	found, err := s.Progresses(d.context(), d.endpoint, "we_none")
	if err != nil {
		d.t.Fatal(err)
	}
	d.equal("the progress", found, map[string]store.DeliveryProgress{d.endpoint: progress})
	d.release(lease)
	w, _ = d.work(d.open(d.t))
	lease = d.acquire(w)
	resumed := d.resume(lease)
	resumed.Endpoint = store.EndpointAt{} // see testHeldEndpoint
	d.equal("what is resumed", resumed,
		store.DeliveryState{Found: true, Progress: progress, Pending: []store.PendingDelivery{
			{EventID: message(1, 0).EventID, Attempts: 1, Next: message(1, 0).Next}, {EventID: message(2, 0).EventID,
				Attempts: 2, Next: message(2, 0).Next},
		}})
	var pending, dead []store.Delivery
	d.again(func() (err error) {
		pending, err = lease.Pending(d.context(), message(2, 0).EventID, "evt_none", message(3, 0).EventID)
		return err
	})
	d.equal("what is pending", pending, []store.Delivery{as(store.DeliveryPending, message(2, 2))})
	d.again(func() (err error) { dead, err = lease.Dead(d.context(), "", 10); return err })
	d.equal("what is dead", dead, []store.Delivery{as(store.DeliveryDead, message(3, 10))})
	d.again(func() (err error) { dead, err = lease.Dead(d.context(), message(3, 0).EventID, 10); return err })
	d.equal("what is dead after that", dead, []store.Delivery(nil))
}

// testCheckpoints makes checkpoints at random, and compares each with a model.
func testCheckpoints(d deliveries) {
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	d.resume(lease)
	random := rand.New(rand.NewPCG(7, 7))
	stands := make(map[string]store.Delivery)
	var delivered []store.Delivery
	for round := range 40 {
		var done store.Checkpoint
		for _, n := range random.Perm(30)[:random.IntN(12)] {
			m := message(n, 1+random.IntN(4))
			switch random.IntN(3) {
			case 0:
				done.Pending = append(done.Pending, m)
				stands[m.EventID] = as(store.DeliveryPending, m)
			case 1:
				done.Dead = append(done.Dead, m)
				stands[m.EventID] = as(store.DeliveryDead, m)
			default:
				done.Delivered = append(done.Delivered, m)
				delivered = append(delivered, asDelivered(m))
				delete(stands, m.EventID)
			}
		}
		done.Progress.Place = store.FeedPosition(fmt.Sprint("evt_", round))
		d.checkpoint(lease, done)
		if random.IntN(5) == 0 {
			d.release(lease)
			lease = d.acquire(w)
			if random.IntN(2) == 0 {
				d.resume(lease)
			}
		}
		want := store.DeliveryProgress{Place: done.Progress.Place}
		var all []store.Delivery
		for _, status := range []store.DeliveryStatus{store.DeliveryPending, store.DeliveryDead} {
			var those []store.Delivery
			for _, m := range stands {
				if m.Status == status {
					those = append(those, m)
				}
			}
			slices.SortFunc(those, byEvent)
			all = append(all, those...)
			if status == store.DeliveryPending {
				want.Pending = len(those)
			} else {
				want.Dead = len(those)
			}
		}
		for _, m := range slices.Backward(delivered) {
			all = append(all, m)
		}
		var found map[string]store.DeliveryProgress
		d.again(func() (err error) { found, err = s.Progresses(d.context(), d.endpoint); return err })
		d.equal("the progress", found[d.endpoint], want)
		d.equal("all", d.all(s, "", 7+random.IntN(90)), all)
	}
}

func testLargeCheckpoint(d deliveries) {
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	d.resume(lease)
	var done store.Checkpoint
	var want []store.Delivery
	answer := strings.Repeat("é", 512)
	for n := range 900 {
		m := message(n, 3)
		m.Answer = answer
		switch {
		case n < 300:
			done.Pending = append(done.Pending, m)
			want = append(want, as(store.DeliveryPending, m))
		case n < 600:
			done.Dead = append(done.Dead, m)
			want = append(want, as(store.DeliveryDead, m))
		default:
			done.Delivered = append(done.Delivered, m)
		}
	}
	for _, m := range slices.Backward(done.Delivered) {
		want = append(want, asDelivered(m))
	}
	done.Progress.Place = "evt_9"
	done.PutJobs = []store.Replay{{ID: ulid.Make().String(), Dead: true}}
	d.checkpoint(lease, done)
	d.equal("all", d.all(s, "", 100), want)
	d.release(lease)
	lease = d.acquire(w)
	state := d.resume(lease)
	if len(state.Pending) != 300 || state.Progress.Pending != 300 || state.Progress.Dead != 300 ||
		state.Progress.Place != "evt_9" {
		d.t.Errorf("it resumes with %d pending, %+v", len(state.Pending), state.Progress)
	}
	// All of them come through.
	done.Delivered = slices.Concat(done.Pending, done.Dead)
	done.EndJobs = []string{done.PutJobs[0].ID}
	done.Pending, done.Dead, done.PutJobs = nil, nil, nil
	d.checkpoint(lease, done)
	if state := d.resume(lease); len(state.Pending) != 0 || state.Progress.Pending != 0 || state.Progress.Dead != 0 {
		d.t.Errorf("then it resumes with %d pending, %+v", len(state.Pending), state.Progress)
	}
	if jobs, _, err := lease.Jobs(d.context()); err != nil || len(jobs) > 0 {
		d.t.Errorf("there are replays %+v, %v", jobs, err)
	}
}
