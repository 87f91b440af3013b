package handlers_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// tell records the events of a write. The caller must hold the lock.
func (s *memStore) tell(w store.Write) {
	for _, e := range w.Record.Events {
		id := fmt.Sprintf("evt_%026d", len(s.events)+1)
		event := store.RecordedEvent{ID: id, Revision: s.revision, Rank: id, Event: e}
		switch {
		case e.Webhook != nil, e.License == nil && e.Order == nil:
			event.Owner = w.Ref.Owner
		case e.License != nil:
			l := *e.License
			event.Owner, l.StateReason, event.License = l.Owner, "", &l
		default:
			o := *e.Order
			o.Description, o.BuyerEmail, o.Metadata, o.SuccessURL, o.StateReason = "", "", "", "", ""
			event.Owner, event.Order = o.Owner, &o
		}
		s.events = append(s.events, event)
	}
}

// at returns the number of events before a position.
func (s *memStore) at(owner licensing.Owner, position store.FeedPosition) (int, bool) {
	if position == "" {
		return 0, true
	}
	if behind, isCursor := strings.CutPrefix(string(position), "pos_"); isCursor {
		n, err := strconv.Atoi(behind)
		return n, err == nil && n <= len(s.events)
	}
	i := slices.IndexFunc(s.events,
		func(e store.RecordedEvent) bool { return e.ID == string(position) && e.Owner == owner })
	return i + 1, i >= 0
}

// ReadEvents returns events as soon as they are written.
func (s *memStore) ReadEvents(_ context.Context, owner licensing.Owner, page store.FeedPage) (store.Feed, error) {
	defer s.read()()
	if s.fail != nil {
		return store.Feed{}, s.fail
	}
	at, ok := s.at(owner, page.After)
	if !ok {
		return store.Feed{}, store.ErrBadPosition
	}
	var feed store.Feed
	for ; at < len(s.events) && len(feed.Events) < page.Limit; at++ {
		if e := s.events[at]; e.Owner == owner && (page.Types == nil || slices.Contains(page.Types, e.Type)) {
			feed.Events = append(feed.Events, e)
		}
	}
	feed.Next, feed.More = store.FeedPosition(fmt.Sprint("pos_", at)), at < len(s.events)
	return feed, nil
}

func (s *memStore) EventsNow(context.Context, licensing.Owner) (store.FeedPosition, error) {
	defer s.read()()
	return store.FeedPosition(fmt.Sprint("pos_", len(s.events))), s.fail
}

func (s *memStore) Event(_ context.Context, owner licensing.Owner, id string) (*store.RecordedEvent, error) {
	defer s.read()()
	if at, ok := s.at(owner, store.FeedPosition(id)); ok && strings.HasPrefix(id, "evt_") && s.fail == nil {
		found := s.events[at-1]
		return &found, nil
	}
	return nil, s.fail
}

func (s *memStore) History(_ context.Context, ref licensing.Ref, page store.HistoryPage) (store.History, error) {
	defer s.read()()
	var history store.History
	before, err := strconv.Atoi(string(page.Before))
	if page.Before == "" {
		before, err = len(s.events), nil
	}
	if err != nil || before > len(s.events) {
		return history, store.ErrBadPosition
	}
	for i := before - 1; i >= 0; i-- {
		e := s.events[i]
		of := ref.Kind == licensing.KindOrder && e.Order != nil && e.Order.OrderNo == ref.ID ||
			ref.Kind == licensing.KindLicense && e.License != nil && licensing.LicenseRef(e.License.Key) == ref
		switch {
		case !of:
		case len(history.Events) == page.Limit:
			history.Next = store.HistoryPosition(strconv.Itoa(i + 1))
			return history, s.fail
		default:
			history.Events = append(history.Events, e)
		}
	}
	return history, s.fail
}

// SweepEvents removes nothing.
func (*memStore) SweepEvents(context.Context, time.Time, store.EventRetention) (int, error) {
	return 0, nil
}

// NewEvents never closes the channel: this store reports all events at once.
func (*memStore) NewEvents() <-chan struct{} { return nil }
