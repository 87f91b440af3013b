package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"licet/licensing"
)

// RecordedEvent is an event as it is stored.
type RecordedEvent struct {
	ID       string
	Revision int64 // the store's, of the change
	// Rank orders the events of one revision in a feed, by comparison. It has no other meaning.
	Rank  string
	Owner licensing.Owner
	licensing.Event
}

// Before reports whether a feed has e before another event of the same owner.
func (e *RecordedEvent) Before(other *RecordedEvent) bool {
	return cmp.Or(cmp.Compare(e.Revision, other.Revision), cmp.Compare(e.Rank, other.Rank),
		cmp.Compare(e.Sequence, other.Sequence)) < 0
}

// FeedPosition is a position in an owner's feed: after the event with an id, or a position from an
// earlier page or from EventsNow. Empty is the beginning of the kept events.
type FeedPosition string

// ErrBadPosition reports a position that the feed never had.
var ErrBadPosition = errors.New("no such position in the feed")

// FeedPage asks for events.
type FeedPage struct {
	After FeedPosition
	Types []licensing.EventType // nil: all
	Limit int
	// Endpoint is the id of one of the owner's webhook endpoints, or empty. The store reads
	// this endpoint at a revision at which every event that the page may contain was recorded
	// already: so no change of the endpoint that was acknowledged before one of these events
	// was recorded is missing. The page of an endpoint that gets no events is empty.
	Endpoint string
	// Wanted replaces Types by those of Endpoint.
	Wanted bool
}

// Feed is a page of events.
type Feed struct {
	Events []RecordedEvent
	Next   FeedPosition // what the next page comes after
	More   bool         // there are more events to examine, though perhaps none of the wanted types
	// Endpoint is the endpoint that the page asked for.
	Endpoint EndpointAt
}

// HistoryPosition is a position in a record's history, from an earlier page. Empty is the newest
// event.
type HistoryPosition string

// HistoryPage asks for events of a record.
type HistoryPage struct {
	Before HistoryPosition
	Limit  int
}

// History is a page of a record's events, the newest first.
type History struct {
	Events []RecordedEvent
	Next   HistoryPosition // empty at the end of the kept events
}

// Events are read from a feed for each owner and a history for each record. Commit records them. An
// event of a license or an order leaves out the buyer and the reason for the state: the records contain
// these.
type Events interface {
	// ReadEvents reads a page of an owner's feed: one total order of all events, without those of the
	// last moments. It fails with licensing.ErrCursorExpired if events after the position are no
	// longer kept, and with ErrBadPosition if the position is invalid.
	ReadEvents(ctx context.Context, owner licensing.Owner, page FeedPage) (Feed, error)

	// EventsNow returns the position in an owner's feed after all events recorded before the call.
	EventsNow(ctx context.Context, owner licensing.Owner) (FeedPosition, error)

	// Event returns an event by its id, including events of the last moments; nil if there is none.
	Event(ctx context.Context, owner licensing.Owner, id string) (*RecordedEvent, error)

	// History reads a page of a license's or an order's events.
	History(ctx context.Context, ref licensing.Ref, page HistoryPage) (History, error)

	// NewEvents returns a channel that closes once feeds may have more events than a page had that was read before the
	// call.
	NewEvents() <-chan struct{}
}

// EventRetention says how long events are kept: up to an age, and for all owners together up to a
// number of bytes. Above these bytes, the owner with the most events loses its oldest ones first; an
// owner with an equal part or less loses none. Both limits are approximate.
type EventRetention struct {
	Age   time.Duration
	Bytes int64
}

// The defaults of EventRetention.
const (
	DefaultEventAge   = 30 * 24 * time.Hour
	DefaultEventBytes = 1 << 30
)
