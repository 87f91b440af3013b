package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// closeEpoch returns once all recorded events are in the feeds, and demands that the store announces new events.
func (f fixture) closeEpoch(events EventfulStore) {
	f.t.Helper()
	news := events.NewEvents()
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := events.CloseEpoch(f.context())
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the events are not closed: %v", err)
		}
	}
	select {
	case <-news:
	default:
		f.t.Error("new events woke no reader")
	}
}

// readFeed reads an owner's feed, some events at a time.
func (f fixture) readFeed(
	events store.Events, owner licensing.Owner, after store.FeedPosition, limit int,
) []store.RecordedEvent {
	f.t.Helper()
	var all []store.RecordedEvent
	page := store.FeedPage{After: after, Limit: limit}
	for {
		feed, err := events.ReadEvents(f.context(), owner, page)
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, feed.Events...)
		page.After = feed.Next
		if !feed.More {
			return all
		}
	}
}

// testEvents makes changes, some of which lose their swap. Then it reads the events: one of each change that landed,
// in order, without the data that only the record has.
func testEvents(t *testing.T, f fixture, events EventfulStore, activations bool) {
	owner := f.owner()
	order := f.order(owner)
	ref := licensing.OrderRef(owner, order.OrderNo)
	f.mustLand(store.Write{Ref: ref, Record: licensing.NewOrder(order, "key_shop")})
	if f.commit(store.Write{Ref: ref, Record: licensing.NewOrder(order, "key_other")}).Landed {
		t.Error("the order was made twice")
	}
	stale, key := f.load(ref), f.key(owner)
	f.step(ref, licensing.PayOrder{Payment: "p1", Terms: order.Terms, Key: key}, created.Add(time.Second))
	if _, err := licensing.Apply(&stale.Record, licensing.CancelOrder{By: "key_shop"}, created); err != nil {
		t.Fatal(err)
	}
	if f.commit(store.Write{Ref: ref, Token: stale.Token, Record: stale.Record}).Landed {
		t.Error("a paid order was canceled")
	}
	licenseRef := licensing.LicenseRef(key)
	if snapshot := f.load(licenseRef); snapshot.Record.Listening != activations {
		t.Errorf("a snapshot says that its owner listens: %v", snapshot.Record.Listening)
	}
	f.closeEpoch(events)
	f.activate(f.load(licenseRef).Record.License, created.Add(2*time.Second), "a", "b")
	f.remove(f.load(licenseRef).Record.License, "a")
	f.step(licenseRef, licensing.SuspendLicense{Target: licensing.Target{Key: key, Caller: owner, By: "key_shop"},
		Reason: "chargeback"}, created.Add(3*time.Second))
	f.closeEpoch(events)

	want := []string{"1 order.created key_shop", "2 order.paid provider", "1 license.issued provider"}
	if activations {
		want = append(want, "2 license.activated system", "3 device.bound system", "4 device.bound system",
			"5 device.removed system")
	}
	want = append(want, fmt.Sprintf("%d license.suspended key_shop", len(want)-1))
	all := f.readFeed(events, owner, "", 100)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%d %s %s", e.Sequence, e.Type, e.Actor))
		if e.Order != nil && (e.Order.BuyerEmail != "" || e.Order.Metadata != "" || e.Order.Description != "") ||
			e.License != nil && e.License.StateReason != "" {
			t.Errorf("%s tells what only the record has: %+v %+v", e.Type, e.Order, e.License)
		}
	}
	// Events of one transaction are in any order of their records.
	if len(got) > 3 {
		slices.Sort(got[1:3])
		slices.Sort(want[1:3])
	}
	f.equal("the feed", got, want)
	for i := range all[1:] {
		if first, second := &all[i], &all[i+1]; !first.Before(second) || second.Before(first) || first.Before(first) {
			t.Errorf("the feed has %+v before %+v", first, second)
		}
	}
	for limit := 1; limit < len(all)+2; limit++ {
		f.equal(fmt.Sprintf("the feed, %d at a time", limit), f.readFeed(events, owner, "", limit), all)
	}
	for i, e := range all {
		f.equal("what follows an event", f.readFeed(events, owner, store.FeedPosition(e.ID), 2), all[i+1:])
		found, err := events.Event(f.context(), owner, e.ID)
		if err != nil || found == nil {
			t.Fatalf("event %s: %v, %v", e.ID, found, err)
		}
		f.equal("the event by its id", *found, e)
	}
	now, err := events.EventsNow(f.context(), owner)
	if err != nil || len(f.readFeed(events, owner, now, 10)) > 0 {
		t.Errorf("after %q there are events, or %v", now, err)
	}
	for _, of := range []licensing.Ref{ref, licenseRef} {
		var back []store.RecordedEvent
		for _, e := range slices.Backward(all) {
			if (e.Order != nil) == (of.Kind == licensing.KindOrder) {
				back = append(back, e)
			}
		}
		for limit := 1; limit < 5; limit++ {
			var history []store.RecordedEvent
			page := store.HistoryPage{Limit: limit}
			for {
				got, err := events.History(f.context(), of, page)
				if err != nil {
					t.Fatal(err)
				}
				history = append(history, got.Events...)
				if page.Before = got.Next; page.Before == "" {
					break
				}
			}
			f.equal("the history", history, back)
		}
	}
}
