package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// EventView is an event with the fields that only its record contains, at their current values. An event
// does not store these fields, since they can be redacted.
type EventView struct {
	store.RecordedEvent
	Metadata licensing.Metadata // of a license
	Entitled licensing.Entitled // of a license
}

// EventFeed is a page of a feed.
type EventFeed struct {
	Events []EventView
	Next   store.FeedPosition
	More   bool // see Feed
	// Endpoint is the endpoint that page.Endpoint named, as of the page's revision.
	Endpoint store.EndpointAt
}

// EventHistory is a page of a record's events, the newest first.
type EventHistory struct {
	Events []EventView
	Next   store.HistoryPosition
}

// FeedWait says how long Feed waits for events if a page has none.
type FeedWait struct {
	For  time.Duration
	Stop <-chan struct{} // closing Stop ends the wait early
	// Key is the API key of the caller. If the key is revoked or expires, the wait ends with
	// ErrKeyEnded. nil: the wait does not depend on a key.
	Key *licensing.APIKey
	// NotifyGone starts to monitor the client's connection. It returns a channel that is closed when the
	// client has disconnected, which ends the wait. Feed calls stop at the end. nil: Feed does not
	// monitor the client.
	NotifyGone func() (gone <-chan struct{}, stop func())
}

// Feed reads a page of an owner's events. If the page has no events, Feed waits for events and may
// still return an empty page. While it waits, it holds no admission place, but one of maxFeedWaits.
func (e *Events) Feed(
	ctx context.Context, owner licensing.Owner, page store.FeedPage, wait FeedWait,
) (EventFeed, error) {
	news := e.cfg.Events.NewEvents()
	got, err := e.readFeed(ctx, owner, page)
	if err != nil || len(got.Events) > 0 || wait.For <= 0 {
		return got, err
	}
	if !e.feed.waits.TryEnter(owner) {
		e.waitsShed.Inc()
		return EventFeed{}, licensing.ErrOverloaded
	}
	defer e.feed.waits.Leave(owner)
	timeout := time.NewTimer(wait.For)
	defer timeout.Stop()
	key, err := e.monitorKey(ctx, wait.Key)
	if err != nil {
		return EventFeed{}, err
	}
	defer key.stop()
	var gone <-chan struct{}
	if wait.NotifyGone != nil {
		var stop func()
		gone, stop = wait.NotifyGone()
		defer stop()
	}
	for len(got.Events) == 0 {
		page.After = got.Next
		if goOn, err := wait.goOn(ctx, got.More, news, gone, e.feed.ended, timeout.C, key); err != nil {
			return EventFeed{}, err
		} else if !goOn || e.engine.Draining() {
			return got, nil
		}
		news = e.cfg.Events.NewEvents()
		if got, err = e.readAwaited(ctx, owner, page); err != nil {
			return EventFeed{}, err
		}
	}
	// The events are only for a key that is still valid.
	if err := key.check(ctx); err != nil {
		return EventFeed{}, err
	}
	return got, nil
}

// readAwaited reads a page after a wait. Only feedReadsAtOnce callers do so at the same time, since a
// new epoch wakes all callers that wait.
func (e *Events) readAwaited(ctx context.Context, owner licensing.Owner, page store.FeedPage) (EventFeed, error) {
	if e.feed.reading.Enter(ctx, owner) != nil {
		return EventFeed{}, licensing.ErrUnavailable
	}
	defer e.feed.reading.Leave(owner)
	return e.readFeed(ctx, owner, page)
}

func (e *Events) readFeed(ctx context.Context, owner licensing.Owner, page store.FeedPage) (got EventFeed, err error) {
	return admittedToList(ctx, e.core, owner, func() (got EventFeed, err error) {
		return e.viewPage(ctx, owner, page)
	})
}

// EventsNow returns the feed position after all events recorded before the call.
func (e *Events) EventsNow(ctx context.Context, owner licensing.Owner) (at store.FeedPosition, err error) {
	return admitted(ctx, e.core, owner, func(node.Place) (at store.FeedPosition, err error) {
		return e.cfg.Events.EventsNow(ctx, owner)
	})
}

// Event returns an event of an owner by its id.
func (e *Events) Event(ctx context.Context, owner licensing.Owner, id string) (view EventView, err error) {
	return admitted(ctx, e.core, owner, func(node.Place) (view EventView, err error) {
		found, err := e.viewEvent(ctx, owner, id)
		if err != nil {
			return view, err
		}
		if found == nil {
			return view, licensing.ErrEventNotFound
		}
		return *found, nil
	})
}

// LicenseEvents reads a page of a license's history.
func (e *Events) LicenseEvents(
	ctx context.Context, owner licensing.Owner, key licensing.LicenseKey, page store.HistoryPage,
) (EventHistory, error) {
	return e.history(ctx, owner, licensing.LicenseRef(key), page, func() error {
		view, err := e.cfg.Queries.ReadLicense(ctx, key, store.DevicePage{Owner: owner})
		if err != nil {
			return err
		}
		return visible(view, owner, key)
	})
}

// OrderEvents reads a page of an order's history.
func (e *Events) OrderEvents(
	ctx context.Context, owner licensing.Owner, orderNo string, page store.HistoryPage,
) (got EventHistory, err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return got, licensing.ErrOrderNotFound
	}
	return e.history(ctx, owner, licensing.OrderRef(owner, orderNo), page, func() error {
		_, err := e.readOrder(ctx, owner, orderNo)
		return err
	})
}

// history reads a page of a record's history. allowed returns an error if the owner must not see the
// record.
func (e *Events) history(
	ctx context.Context, owner licensing.Owner, ref licensing.Ref, page store.HistoryPage, allowed func() error,
) (got EventHistory, err error) {
	return admittedToList(ctx, e.core, owner, func() (got EventHistory, err error) {
		if err := allowed(); err != nil {
			return got, err
		}
		read, err := e.cfg.Events.History(ctx, ref, page)
		if err != nil {
			return got, err
		}
		got.Next = read.Next
		got.Events, err = e.viewEvents(ctx, owner, read.Events)
		return got, err
	})
}

// viewPage reads a page of an owner's feed with views of its events. The caller holds a place to read.
func (e *Events) viewPage(
	ctx context.Context, owner licensing.Owner, page store.FeedPage,
) (got EventFeed, err error) {
	read, err := e.cfg.Events.ReadEvents(ctx, owner, page)
	if err != nil {
		return got, err
	}
	got.Next, got.More, got.Endpoint = read.Next, read.More, read.Endpoint
	got.Events, err = e.viewEvents(ctx, owner, read.Events)
	return got, err
}

// viewEvent returns the view of an event; nil if there is no such event. The caller holds a place to
// read.
func (e *Events) viewEvent(ctx context.Context, owner licensing.Owner, id string) (*EventView, error) {
	event, err := e.cfg.Events.Event(ctx, owner, id)
	if err != nil || event == nil {
		return nil, err
	}
	views, err := e.viewEvents(ctx, owner, []store.RecordedEvent{*event})
	if err != nil {
		return nil, err
	}
	return &views[0], nil
}

// viewEvents adds to events of an owner the fields that only their records contain. It reads the records
// in batches, so the number of requests stays small.
func (e *Events) viewEvents(
	ctx context.Context, owner licensing.Owner, events []store.RecordedEvent,
) ([]EventView, error) {
	views := make([]EventView, len(events))
	licenses, orders := make(map[licensing.LicenseKey]*store.LicenseView), make(map[string]*licensing.Order)
	var keys []licensing.LicenseKey
	var wants []store.Want
	for i := range events {
		views[i].RecordedEvent = events[i]
		if key := keyOf(&events[i]); !key.IsZero() {
			if _, known := licenses[key]; !known {
				licenses[key], keys = nil, append(keys, key)
			}
		}
		if o := events[i].Order; o != nil {
			if _, known := orders[o.OrderNo]; !known {
				orders[o.OrderNo], wants = nil, append(wants, store.Want{Ref: licensing.OrderRef(owner, o.OrderNo)})
			}
		}
	}
	err := eachReadable(e.core, keys, func(some []licensing.LicenseKey) error {
		read, err := e.cfg.Queries.ReadLicenses(ctx, some, 0)
		for i := range read {
			if visible(read[i], owner, some[i]) == nil {
				licenses[some[i]] = read[i]
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := e.showEntitled(ctx, owner, slices.Collect(maps.Values(licenses))...); err != nil {
		return nil, err
	}
	err = eachReadable(e.core, wants, func(some []store.Want) error {
		read, err := e.cfg.Records.Load(ctx, some...)
		for i := range read {
			orders[some[i].Ref.ID] = read[i].Record.Order
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range views {
		if l := views[i].License; l != nil {
			views[i].addLicense(licenses[l.Key])
		} else if o := views[i].Order; o != nil {
			views[i].addOrder(orders[o.OrderNo], licenses[o.LicenseKey])
		}
	}
	return views, nil
}

// keyOf returns the key of the license that an event shows; zero if it shows none.
func keyOf(e *store.RecordedEvent) licensing.LicenseKey {
	switch {
	case e.License != nil:
		return e.License.Key
	case e.Order != nil:
		return e.Order.LicenseKey
	}
	return licensing.LicenseKey{}
}

// eachReadable reads records, at most MaxReadLicenses in a batch. A record that the store can't read
// must not hold up the events or orders of other records: eachReadable finds the record by halving the batch and
// leaves it out, as if the record were gone.
func eachReadable[K any](c *core, keys []K, read func(some []K) error) error {
	for some := range slices.Chunk(keys, store.MaxReadLicenses) {
		err := read(some)
		if !errors.Is(err, licensing.ErrInternal) {
			if err != nil {
				return err
			}
			continue
		}
		if len(some) == 1 {
			if c.cfg.Metrics.EventValuesUnreadable.CountOnce(fmt.Sprint("record ", some[0])) {
				c.cfg.Log.Error().Err(err).
					Msg("can't read a record: its events and orders lack its data; run licet store verify")
			}
			continue
		}
		for half := range slices.Chunk(some, (len(some)+1)/2) {
			if err := eachReadable(c, half, read); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLicense adds the fields that the license has now. The reason for the state is added only to an
// event of the same state. nil: the license is gone or unreadable.
func (v *EventView) addLicense(now *store.LicenseView) {
	if now == nil {
		return
	}
	l := *v.License
	v.Metadata, v.Entitled = now.Metadata, now.Entitled
	l.Reissues = now.License.Reissues // so that the event shows the key that can be used
	if l.SuspendedAt.Equal(now.License.SuspendedAt) && l.RevokedAt.Equal(now.License.RevokedAt) {
		l.StateReason = now.License.StateReason
	}
	v.License = &l
}

// addOrder adds the fields that the order has now, and the key that its license has now. nil: the order or the
// license is gone or unreadable.
func (v *EventView) addOrder(now *licensing.Order, license *store.LicenseView) {
	o := *v.Order
	if v.Order = &o; license != nil {
		o.LicenseKey = license.License.CurrentKey()
	}
	if now == nil {
		return
	}
	o.Description, o.BuyerEmail = now.Description, now.BuyerEmail
	o.Metadata, o.SuccessURL, o.PayHash, o.PaySeed = now.Metadata, now.SuccessURL, now.PayHash, now.PaySeed
	if o.CanceledAt.Equal(now.CanceledAt) && o.RefundedAt.Equal(now.RefundedAt) && o.RefundDue == now.RefundDue {
		o.StateReason = now.StateReason
	}
}
