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

// EventService reads the feed of events.
type EventService struct{ client *Client }

// Event is a change of an order or a license, or the disabling of a webhook endpoint.
type Event struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"` // such as order.paid
	Timestamp time.Time `json:"timestamp"`
	Sequence  uint64    `json:"sequence"` // numbers the events of the order or the license, without a gap
	Revision  int64     `json:"revision"` // of the change, in the service's store
	Actor     string    `json:"actor"`    // an API key's id, end_user, provider or system
	Data      EventData `json:"data"`

	// Raw is the event as received, including members that this version of the client does not know. It is nil
	// for an event that no service has sent. Marshaling an event leaves out Raw.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler. It keeps a copy of text in Raw.
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

// EventUnreadable is the type of a placeholder for an event that the service can't read at present: its stored
// value is damaged, or the node that responds is older than the node that recorded the event. Data is empty,
// Sequence may be 0, and Timestamp may be the zero time. Look up such an event by its id later: once all nodes run
// the newer version, the service may return the event.
const EventUnreadable = "event.unreadable"

// EventData contains the changed order, license or webhook endpoint right after the change. Fields that a redaction can
// remove have their current value.
type EventData struct {
	Order   *Order        `json:"order"`
	License *License      `json:"license"` // without its devices
	Device  *Device       `json:"device"`  // the device of the event, if there is one
	Webhook *Webhook      `json:"webhook"` // the endpoint, of webhook.disabled
	Account *AccountUsage `json:"account"` // of account.budget_warning
	// Reason is, of device.removed, why the service has removed the device: inactive; empty: a request has.
	Reason            string   `json:"reason"`
	PreviousDeviceID  string   `json:"previous_device_id"` // of device.changed
	ChangedComponents []string `json:"changed_components"` // of device.changed: the names
	// DaysBeforeEnd is how many days before the end of the license it was due, of license.expiring.
	DaysBeforeEnd int      `json:"days_before_end"`
	Dispute       *Dispute `json:"dispute"` // of order.disputed
}

// Dispute is a buyer's dispute of a payment at the bank.
type Dispute struct {
	Reference string `json:"reference"` // the id at the payment provider, as in the payments of the order
	Status    string `json:"status"`    // open, won or lost
	Amount    int64  `json:"amount"`    // in the currency of the order
}

// AccountUsage is how much an account stores in one mode, without events, and its budget. A limit or a budget of 0 is
// none.
type AccountUsage struct {
	StoredBytes int64 `json:"stored_bytes"`
	StoredKeys  int64 `json:"stored_keys"`
	LimitBytes  int64 `json:"limit_bytes"` // from here on, the service refuses what would make the account store more
	LimitKeys   int64 `json:"limit_keys"`
	BudgetBytes int64 `json:"budget_bytes"` // the limit, and a reserve for payments and the like
	BudgetKeys  int64 `json:"budget_keys"`
}

// Now is the current end of the feed, as After of an [EventFilter].
const Now = "now"

// EventFilter selects events.
type EventFilter struct {
	After string   // the id of an event, or [Now]; empty: from the oldest retained event
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
	// NextCursor is the cursor of the next page, also at the current end of the feed.
	NextCursor string
	HasMore    bool // the feed already has further events, which may not match the filter
}

// maxEventWait bounds the wait for a page of the feed. It is less than requestTimeout.
const maxEventWait = 10 * time.Second

// List reads a page of the feed. If there are no events, it waits for some, up to wait, and at most ten
// seconds. The page's cursor overrides the filter's After.
func (s *EventService) List(
	ctx context.Context, filter EventFilter, page Page, wait time.Duration, options ...CallOption,
) (*EventPage, error) {
	var listed struct {
		Events []Event `json:"events"`
		Next   string  `json:"next_cursor"`
		More   bool    `json:"has_more"`
	}
	query := filter.query(page)
	if seconds := int(min(wait, maxEventWait).Seconds()); seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds))
	}
	if err := s.client.do(ctx, "GET /v1/events", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &EventPage{listed.Events, listed.Next, listed.More}, nil
}

// Get returns an event by its id.
func (s *EventService) Get(ctx context.Context, id string, options ...CallOption) (*Event, error) {
	e := new(Event)
	if err := s.client.do(ctx, "GET /v1/events/{event_id}", []string{id}, nil, nil, e, options); err != nil {
		return nil, err
	}
	return e, nil
}

// ListEvents reads a page of a license's events, the newest first.
func (s *LicenseService) ListEvents(
	ctx context.Context, licenseKey string, page Page, options ...CallOption,
) (*List[Event], error) {
	return s.client.history(ctx, "GET /v1/licenses/{license_key}/events", licenseKey, page, options)
}

// ListEvents reads a page of an order's events, the newest first.
func (s *OrderService) ListEvents(
	ctx context.Context, orderNo string, page Page, options ...CallOption,
) (*List[Event], error) {
	return s.client.history(ctx, "GET /v1/orders/{order_no}/events", orderNo, page, options)
}

// history reads a page of the events of the order or license with the given id.
func (c *Client) history(
	ctx context.Context, route, id string, page Page, options []CallOption,
) (*List[Event], error) {
	var listed struct {
		Events []Event `json:"events"`
		Next   string  `json:"next_cursor"`
	}
	if err := c.do(ctx, route, []string{id}, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Event]{listed.Events, listed.Next}, nil
}

// AllEvents yields all retained events of a license, the newest first.
func (s *LicenseService) AllEvents(ctx context.Context, licenseKey string) iter.Seq2[Event, error] {
	return allPages(listPage, func(page Page) (*List[Event], error) {
		return s.ListEvents(ctx, licenseKey, page)
	})
}

// AllEvents yields all retained events of an order, the newest first.
func (s *OrderService) AllEvents(ctx context.Context, orderNo string) iter.Seq2[Event, error] {
	return allPages(listPage, func(page Page) (*List[Event], error) { return s.ListEvents(ctx, orderNo, page) })
}

// All yields all events that match a filter, the oldest first, up to the current end of the feed.
func (s *EventService) All(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return s.feed(ctx, filter, false)
}

// Follow yields events like All, and then waits for more, until ctx ends or retries of an error take too
// long. To resume, even in another process, set After to the id of the last processed event: that neither skips nor
// repeats events.
func (s *EventService) Follow(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return s.feed(ctx, filter, true)
}

// emptyPause is the shortest time between two empty pages: a service that shuts down ends all waits at once.
const emptyPause = time.Second

// feed yields events, and with follow waits for more.
func (s *EventService) feed(ctx context.Context, filter EventFilter, follow bool) iter.Seq2[Event, error] {
	var wait time.Duration
	if follow {
		wait = maxEventWait
	}
	return func(yield func(Event, error) bool) {
		for at := (Page{Limit: listPage}); ; {
			started := s.client.now()
			page, err := s.List(ctx, filter, at, wait)
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
			if len(page.Items) == 0 && s.client.now().Sub(started) < emptyPause {
				if err := sleep(ctx, emptyPause); err != nil {
					yield(Event{}, err)
					return
				}
			}
		}
	}
}

// sleep waits for d, or until ctx ends, and then returns the error of ctx.
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
