package client

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Event is one change of an order or a license, or tells that a webhook endpoint was
// disabled.
type Event struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"` // such as order.paid
	Timestamp time.Time `json:"timestamp"`
	Sequence  uint64    `json:"sequence"` // counts the events of the order or the license, without a gap
	Revision  int64     `json:"revision"` // of the change, in the service's store
	Actor     string    `json:"actor"`    // an API key's id, end_user, provider or system
	Data      EventData `json:"data"`

	// Raw is the event as the service has sent it, with all members, also those that this version of the client does
	// not know. It is nil for an event that did not come from a service. Marshaling an event leaves it out.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads an event and keeps a copy of it in Raw.
func (e *Event) UnmarshalJSON(text []byte) error {
	type plain Event // without this method
	var read plain
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*e = Event(read)
	e.Raw = bytes.Clone(text)
	return nil
}

// EventUnreadable is the type of a placeholder: the service has an event there that it can't read at present, because
// its stored value is damaged, or because the node that answers is older than the node that recorded the event. Data is
// empty, Sequence may be 0, and Timestamp may be the zero time. Look such an event up by its id later: once all nodes
// are of the newer version, the service may return the event itself.
const EventUnreadable = "event.unreadable"

// EventData is what was changed, as it was right after that: an order, a license or a
// webhook endpoint.
// What may be redacted is as it is now.
type EventData struct {
	Order   *Order   `json:"order"`
	License *License `json:"license"` // without its devices
	Device  *Device  `json:"device"`  // that is meant, if one is
	Webhook *Webhook `json:"webhook"` // of webhook.disabled: the endpoint
}

// Now, as the After of an [EventFilter], stands for the end of the feed.
const Now = "now"

// EventFilter says which events to read.
type EventFilter struct {
	After string   // an event's id, or [Now]; empty: from the oldest that is kept
	Types []string // empty: all
}

func (f EventFilter) query(page Page) url.Values {
	if page.Cursor != "" {
		f.After = ""
	}
	return page.query("after", f.After, "types", strings.Join(f.Types, ","))
}

// EventPage is a page of the feed, the oldest event first.
type EventPage struct {
	Items []Event
	// NextCursor leads on from here, also where there is nothing more by now.
	NextCursor string
	HasMore    bool // there is more by now, though perhaps nothing that is wanted
}

// maxEventWait is how long a page of the feed is waited for at most. It is less than
// the time that a request has.
const maxEventWait = 10 * time.Second

// ListEvents reads a page of the feed. Where there is nothing to read it waits for
// that, for as long as wait, and for ten seconds at most. A cursor stands in place of
// the filter's After.
func (c *Client) ListEvents(ctx context.Context, filter EventFilter, page Page, wait time.Duration, options ...CallOption) (*EventPage, error) {
	var listed struct {
		Events []Event `json:"events"`
		Next   string  `json:"next_cursor"`
		More   bool    `json:"has_more"`
	}
	query := filter.query(page)
	if seconds := int(min(wait, maxEventWait).Seconds()); seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds))
	}
	if err := c.do(ctx, "GET /v1/events", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &EventPage{listed.Events, listed.Next, listed.More}, nil
}

// Event looks an event up.
func (c *Client) Event(ctx context.Context, id string, options ...CallOption) (*Event, error) {
	e := new(Event)
	if err := c.do(ctx, "GET /v1/events/{event_id}", []string{id}, nil, nil, e, options); err != nil {
		return nil, err
	}
	return e, nil
}

// ListLicenseEvents reads one page of a license's events, the newest first.
func (c *Client) ListLicenseEvents(ctx context.Context, licenseKey string, page Page, options ...CallOption) (*List[Event], error) {
	return c.history(ctx, "GET /v1/licenses/{license_key}/events", licenseKey, page, options)
}

// ListOrderEvents reads one page of an order's events, the newest first.
func (c *Client) ListOrderEvents(ctx context.Context, orderNo string, page Page, options ...CallOption) (*List[Event], error) {
	return c.history(ctx, "GET /v1/orders/{order_no}/events", orderNo, page, options)
}

func (c *Client) history(ctx context.Context, route, of string, page Page, options []CallOption) (*List[Event], error) {
	var listed struct {
		Events []Event `json:"events"`
		Next   string  `json:"next_cursor"`
	}
	if err := c.do(ctx, route, []string{of}, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Event]{listed.Events, listed.Next}, nil
}

// LicenseEvents reads all events of a license that are kept, the newest first.
func (c *Client) LicenseEvents(ctx context.Context, licenseKey string) iter.Seq2[Event, error] {
	return every(listPage, func(page Page) (*List[Event], error) { return c.ListLicenseEvents(ctx, licenseKey, page) })
}

// OrderEvents reads all events of an order that are kept, the newest first.
func (c *Client) OrderEvents(ctx context.Context, orderNo string) iter.Seq2[Event, error] {
	return every(listPage, func(page Page) (*List[Event], error) { return c.ListOrderEvents(ctx, orderNo, page) })
}

// Events reads all events that match a filter, the oldest first, up to what is in the
// feed by now.
func (c *Client) Events(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return c.feed(ctx, filter, false)
}

// FollowEvents reads events as Events does, and then waits for more, until ctx ends
// or an error is not gone after the time for retries. Whoever keeps the id of the
// latest event that was dealt with goes on after it, also in another process: no event
// is left out, and none comes twice.
func (c *Client) FollowEvents(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return c.feed(ctx, filter, true)
}

// emptyPause is the least time between two pages with nothing on them: a service that
// stops answers those who wait at once.
const emptyPause = time.Second

func (c *Client) feed(ctx context.Context, filter EventFilter, follow bool) iter.Seq2[Event, error] {
	var wait time.Duration
	if follow {
		wait = maxEventWait
	}
	return func(yield func(Event, error) bool) {
		for at := (Page{Limit: listPage}); ; {
			asked := c.now()
			page, err := c.ListEvents(ctx, filter, at, wait)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, event := range page.Items {
				if !yield(event, nil) {
					return
				}
			}
			at.Cursor = page.NextCursor
			if page.HasMore {
				continue
			}
			if !follow {
				return
			}
			if len(page.Items) == 0 && c.now().Sub(asked) < emptyPause {
				if err := sleep(ctx, emptyPause); err != nil {
					yield(Event{}, err)
					return
				}
			}
		}
	}
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
