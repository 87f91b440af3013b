package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// eventList is a page of events.
type eventList struct {
	Events []event `json:"events"`
	Next   *string `json:"next_cursor"`
}

// eventFeed is a page of the feed. Its cursor is always there, since there will be
// more.
type eventFeed struct {
	eventList
	More bool `json:"has_more"`
}

const (
	// maxEventWait is how many seconds a page of the feed is waited for. It is less
	// than what proxies bear with.
	maxEventWait = 25
	// fromNow, in place of an event's id, stands for the end of the feed.
	fromNow = "now"
)

// listEvents reads the caller's feed.
func (s *Server) listEvents(r *request) (any, error) {
	var bad problems
	page := store.FeedPage{Limit: bad.limit(r.query, defaultListPage, store.MaxListPage), Types: bad.eventTypes(r.query)}
	wait := bad.eventWait(r.query)
	after := bad.feedPosition(r.query)
	if err := bad.err(); err != nil {
		return nil, err
	}
	page.After = after.at
	if after.now {
		var err error
		if page.After, err = s.cfg.Node.EventsNow(r.ctx, r.callerOwner()); err != nil {
			return nil, err
		}
	}
	ctx := r.ctx
	if wait > 0 {
		// A request's usual time is for its work. This one's is mostly waiting.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), wait+s.cfg.RequestTimeout)
		defer cancel()
	}
	feed, err := s.cfg.Node.Feed(ctx, r.callerOwner(), page, service.FeedWait{
		For: wait, Stop: s.life.Done(), Key: r.caller, Watch: r.watcher(),
	})
	if errors.Is(err, service.ErrKeyEnded) {
		return nil, errUnauthenticated
	}
	if errors.Is(err, store.ErrBadPosition) {
		bad.add(after.from, "must be "+after.kind+": there is no such place in the feed")
		return nil, bad.err()
	}
	if err != nil {
		return nil, err
	}
	return eventFeed{eventList{answers(feed.Events, s.eventAnswer), optional(string(feed.Next))}, feed.More}, nil
}

// feedPlace is where a caller wants to read on.
type feedPlace struct {
	at         store.FeedPosition
	now        bool
	from, kind string // which parameter said so, and what that must be
}

// feedPosition reads after or cursor. What there is can only be seen in the store.
func (p *problems) feedPosition(query string) feedPlace {
	after, hasAfter, plainAfter := queryValue(query, "after")
	cursor, hasCursor, plainCursor := queryValue(query, "cursor")
	place := feedPlace{from: "cursor", kind: problemCursorOfFeed}
	switch {
	case hasAfter && hasCursor:
		p.add("cursor", "must not be given along with after")
	case hasAfter:
		place = feedPlace{at: store.FeedPosition(after), from: "after", kind: "an event's id, or " + fromNow}
		if place.now = after == fromNow; !plainAfter || !place.now && !strings.HasPrefix(after, eventIDPrefix) || len(after) > maxListCursor {
			p.add("after", "must be "+place.kind)
		}
	case hasCursor:
		place.at = store.FeedPosition(cursor)
		if !plainCursor || cursor == "" || len(cursor) > maxListCursor {
			p.add("cursor", "must be "+place.kind)
		}
	}
	return place
}

const (
	eventIDPrefix       = "evt_"
	problemCursorOfFeed = "a next_cursor as an earlier page gave it"
)

// eventTypes reads which kinds of events are wanted; nil: all.
func (p *problems) eventTypes(query string) []licensing.EventType {
	value, given, ok := queryValue(query, "types")
	if !given {
		return nil
	}
	var types []licensing.EventType
	for name := range strings.SplitSeq(value, ",") {
		kind := licensing.EventType(name)
		if !ok || !slices.Contains(licensing.EventTypes(), kind) || slices.Contains(types, kind) {
			p.add("types", "must be kinds of events, each once, with commas between: "+strings.Join(words(licensing.EventTypes()), ", "))
			return nil
		}
		types = append(types, kind)
	}
	return types
}

// eventWait reads how long an empty page is waited for.
func (p *problems) eventWait(query string) time.Duration {
	value, given, ok := queryValue(query, "wait")
	if !given {
		return 0
	}
	seconds, err := strconv.ParseUint(value, 10, 32)
	if !ok || err != nil || seconds > maxEventWait {
		p.add("wait", fmt.Sprintf("must be a number of seconds from 0 to %d", maxEventWait))
	}
	return time.Duration(seconds) * time.Second
}

// getEvent looks an event up.
func (s *Server) getEvent(r *request) (any, error) {
	view, err := s.cfg.Node.Event(r.ctx, r.callerOwner(), r.value("event_id"))
	if err != nil {
		return nil, err
	}
	return s.eventAnswer(&view), nil
}

// listLicenseEvents pages through what has happened to a license.
func (s *Server) listLicenseEvents(r *request) (any, error) {
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	return s.listHistory(r, "events of license", string(key), func(page store.HistoryPage) (service.EventHistory, error) {
		return s.cfg.Node.LicenseEvents(r.ctx, r.callerOwner(), key, page)
	})
}

// listOrderEvents pages through what has happened to an order.
func (s *Server) listOrderEvents(r *request) (any, error) {
	orderNo := r.value("order_no")
	return s.listHistory(r, "events of order", orderNo, func(page store.HistoryPage) (service.EventHistory, error) {
		return s.cfg.Node.OrderEvents(r.ctx, r.callerOwner(), orderNo, page)
	})
}

// listHistory reads a page of one record's events. Its cursors are good for that
// record alone.
func (s *Server) listHistory(r *request, kind, of string, read func(store.HistoryPage) (service.EventHistory, error)) (any, error) {
	q := newListQuery(kind, r)
	q.asked = append(q.asked, of)
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	got, err := read(store.HistoryPage{Before: store.HistoryPosition(page.Before), Limit: page.Limit})
	if errors.Is(err, store.ErrBadPosition) {
		q.bad.add("cursor", problemCursor)
		return nil, q.bad.err()
	}
	if err != nil {
		return nil, err
	}
	return eventList{answers(got.Events, s.eventAnswer), q.formatCursor(store.Position(got.Next))}, nil
}
