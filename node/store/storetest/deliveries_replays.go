package storetest

import (
	"errors"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node/store"
)

func testReplays(d deliveries) {
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	var want []store.Replay
	add := func(r store.Replay) error { return s.AddReplay(d.context(), d.owner, d.endpoint, r) }
	jobs := func() (jobs []store.Replay) {
		d.again(func() (err error) { jobs, _, err = lease.Jobs(d.context()); return err })
		return jobs
	}
	changed := func() (changed int64) {
		for webhooks, err := range s.AllWebhooks(d.context()) {
			if err != nil {
				d.t.Fatal(err)
			}
			if webhooks.Owner == d.owner {
				changed = webhooks.Changed
			}
		}
		return changed
	}
	mark := func() (mark int64) {
		d.again(func() (err error) { mark, err = s.WebhooksMark(d.context()); return err })
		return mark
	}
	for n := range store.MaxReplays {
		r := store.Replay{ID: ulid.MustNew(uint64(1000+n), nil).String()}
		switch n % 3 {
		case 0:
			r.EventID = "evt_1"
		case 1:
			r.After, r.Until = "evt_1", "evt_2"
		default:
			r.Dead = true
		}
		before, record := mark(), changed()
		for range 2 { // a repeated request is one request
			d.again(func() error { return add(r) })
		}
		if mark() <= before {
			d.t.Error("a replay does not move the mark")
		}
		if changed() <= record {
			d.t.Error("a replay does not show in what is read of its owner")
		}
		want = append(want, r)
	}
	d.equal("the replays", jobs(), want)
	for {
		err := add(store.Replay{ID: ulid.Make().String(), Dead: true})
		if errors.Is(err, licensing.ErrUnavailable) {
			continue
		}
		if !errors.Is(err, store.ErrTooManyReplays) {
			d.t.Errorf("one more is %v", err)
		}
		break
	}
	want[1].Place = "evt_15"
	// A replay may come on several times, and to its end, in one checkpoint.
	before := want[1]
	before.Place = "evt_11"
	d.checkpoint(lease, store.Checkpoint{
		PutJobs: []store.Replay{want[0], before, want[1], want[4]}, EndJobs: []string{want[0].ID, want[4].ID,
			want[4].ID},
	})
	want = slices.Delete(slices.Delete(want, 4, 5), 0, 1)
	d.equal("the replays", jobs(), want)
	for _, of := range []struct {
		owner    licensing.Owner
		endpoint string
	}{{d.fixture.owner(), d.endpoint}, {d.owner, d.newEndpoint()}} {
		d.again(func() error {
			err := s.AddReplay(d.context(), of.owner, of.endpoint, store.Replay{ID: "x", Dead: true})
			if errors.Is(err, licensing.ErrWebhookNotFound) {
				return nil
			}
			return cmpErr(err)
		})
	}
}

// testReplayClaims sends different requests under one Idempotency-Key at once: one of them
// is stored.
func testReplayClaims(d deliveries) {
	const requests = 4
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	id := ulid.Make()
	claim := store.Write{Ref: licensing.ClaimRef(d.owner, string(id[:]))}
	errs := make([]error, requests)
	var group sync.WaitGroup
	for i := range errs {
		replay, mine := store.Replay{ID: ulid.Make().String(), Dead: true}, claim
		mine.Record.Claim = &licensing.Claim{Fingerprint: [32]byte{byte(i)}, CreatedAt: created, EndpointID: d.endpoint}
		group.Go(func() { errs[i] = s.AddReplay(d.context(), d.owner, d.endpoint, replay, mine) })
	}
	group.Wait()
	made, unknown := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown:
			unknown++
		case !errors.Is(err, store.ErrClaimTaken) && !licensing.NotExecuted(err):
			d.t.Errorf("a replay: %v", err)
		}
	}
	var jobs []store.Replay
	d.again(func() (err error) { jobs, _, err = lease.Jobs(d.context()); return err })
	if len(jobs) > 1 || made > len(jobs) || made+unknown < len(jobs) {
		d.t.Errorf("%d replays wait; the requests were answered %v", len(jobs), errs)
	}
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("it is taken")
	}
	return err
}

func testSweepEndpoint(d deliveries) {
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	d.resume(lease)
	var pending []store.Delivery
	for n := range 600 {
		pending = append(pending, message(n, 1))
	}
	d.checkpoint(lease, store.Checkpoint{Pending: pending, Delivered: pending[:3], Dead: pending[4:7],
		PutJobs: []store.Replay{{ID: "1", Dead: true}}})
	d.put(d.t, d.owner, nil, d.endpoint)
	lost := func(what string) {
		d.t.Helper()
		if err := lease.Checkpoint(d.context(), store.Checkpoint{Pending: pending[:1]}); !errors.Is(err,
			store.ErrLeaseLost) {
			d.t.Errorf("%s its holder writes: %v", what, err)
		}
	}
	lost("while the endpoint is swept")
	d.again(func() error {
		for {
			if n, err := s.SweepWebhooks(d.context()); n == 0 || err != nil {
				return err
			}
		}
	})
	lost("after that")
	if found, err := s.Progresses(d.context(), d.endpoint); err != nil || len(found) > 0 {
		d.t.Errorf("there is %+v, %v", found, err)
	}
	if all := d.all(s, "", 100); len(all) > 0 {
		d.t.Errorf("%d deliveries are left", len(all))
	}
	if leases, err := w.Leases(d.context()); err != nil || leases[d.endpoint] != (store.Incarnation{}) {
		d.t.Errorf("the leases are %v, %v", leases, err)
	}
	if _, ok, err := w.Acquire(d.context(), d.owner, d.endpoint); ok || err != nil {
		d.t.Errorf("it is leased: %v, %v", ok, err)
	}
}
