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
	// Rank is where a feed has what one revision tells of this record: by comparing it
	// with that of others. It is nothing else.
	Rank  string
	Owner licensing.Owner
	licensing.Event
}

// Before tells whether a feed has an event before another of the same owner.
func (e *RecordedEvent) Before(other *RecordedEvent) bool {
	return cmp.Or(cmp.Compare(e.Revision, other.Revision), cmp.Compare(e.Rank, other.Rank),
		cmp.Compare(e.Sequence, other.Sequence)) < 0
}

// FeedPosition is a place in an owner's feed: an event's id, for behind it, or what
// an earlier page or EventsNow answered. Empty is the beginning of what is kept.
type FeedPosition string

// ErrBadPosition tells of a position that the feed never had.
var ErrBadPosition = errors.New("no such position in the feed")

// FeedPage asks for events.
type FeedPage struct {
	After FeedPosition
	Types []licensing.EventType // nil: all
	Limit int
	// Endpoint is the id of one of the owner's webhook endpoints, or empty. The store reads
	// this endpoint at a revision at which every event that the page may hold was recorded
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
	More   bool         // there is more by now, though perhaps nothing that is wanted
	// Endpoint is the one that the page was asked for with.
	Endpoint EndpointAt
}

// HistoryPosition is a place in a record's history, as an earlier page answered it.
// Empty is the newest event.
type HistoryPosition string

// HistoryPage asks for events of a record.
type HistoryPage struct {
	Before HistoryPosition
	Limit  int
}

// History is a page of a record's events, the newest first.
type History struct {
	Events []RecordedEvent
	Next   HistoryPosition // empty at the end of what is kept
}

// Events are read from a feed for each owner and a history for each record. Commit records them. An
// event of a license or an order leaves out the buyer and the reason for the state: the records hold
// these.
type Events interface {
	// ReadEvents reads a page of an owner's feed: one total order of all events but
	// those of the last moments. It fails with licensing.ErrCursorExpired where some that
	// come after the position are no longer kept, and with ErrBadPosition where it is
	// none.
	ReadEvents(ctx context.Context, owner licensing.Owner, page FeedPage) (Feed, error)

	// EventsNow is the position behind all that is recorded by now.
	EventsNow(ctx context.Context) (FeedPosition, error)

	// Event finds an event by its id, also one of the last moments; nil where there
	// is none.
	Event(ctx context.Context, owner licensing.Owner, id string) (*RecordedEvent, error)

	// History reads a page of a license's or an order's events.
	History(ctx context.Context, ref licensing.Ref, page HistoryPage) (History, error)

	// EventEpoch tells which epoch events are recorded into, and whether anything was
	// written since it began.
	EventEpoch(ctx context.Context) (Epoch, error)

	// SealEvents begins the next epoch, unless another node has: then what was
	// recorded before is in the feed.
	SealEvents(ctx context.Context, epoch Epoch) error

	// WatchEpochs calls wake when it begins to watch and whenever an epoch has begun,
	// until ctx ends. It is a hint, as WatchAPIKeys is.
	WatchEpochs(ctx context.Context, wake func())
}

// EventRetention says how long events are kept: up to an age, and of all owners
// together up to a number of bytes. Over these bytes, the owner with the most events loses
// its oldest ones first; an owner with an equal share or less loses none. Both bounds are
// kept about.
type EventRetention struct {
	Age   time.Duration
	Bytes int64
}

// Events are kept so long unless it is said otherwise.
const (
	DefaultEventAge   = 30 * 24 * time.Hour
	DefaultEventBytes = 1 << 30
)

// Epoch is a span in which events are recorded; see Events.
type Epoch struct {
	Number  uint64
	Written bool
	Bytes   int64 // of the events that this node has written into it
}
