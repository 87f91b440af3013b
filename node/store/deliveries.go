package store

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
)

// DeliveryLog is what the API shows of the delivery of webhooks, and what it asks of the nodes that
// deliver. Package delivery declares what those nodes ask.
type DeliveryLog interface {
	// Progresses reads the progress of endpoints; an endpoint without progress is left out.
	Progresses(ctx context.Context, endpoints ...string) (map[string]DeliveryProgress, error)
	// Deliveries reads a page of the deliveries to an endpoint.
	Deliveries(ctx context.Context, endpoint string, page DeliveryPage) (Deliveries, error)
	// AddReplay asks for events to be delivered again. The worker that holds the lease on the endpoint
	// delivers them. AddReplay fails with ErrTooManyReplays if MaxReplays wait already, and with
	// licensing.ErrWebhookNotFound if the owner has no such endpoint (any more). AddReplay raises
	// OwnerWebhooks.Changed of the owner, and of no other owner. The transaction that stores the
	// replay writes the claims too; if a claim is not as it was read, AddReplay stores nothing and
	// fails with ErrClaimTaken.
	AddReplay(ctx context.Context, owner licensing.Owner, endpoint string, replay Replay, claims ...Write) error

	// SweepWebhooks removes the remains of deleted endpoints, some hundred etcd keys at a time. After a removal there
	// may be more to remove.
	SweepWebhooks(ctx context.Context) (removed int, err error)
}

// DeliveryWorker is a node that delivers webhooks. Only package delivery uses it and DeliveryLease. They are here
// because kv/deliveries and storetest name them, and can't import delivery.
type DeliveryWorker interface {
	// Self returns the worker's own name.
	Self() Incarnation
	// Workers returns all running workers.
	Workers(ctx context.Context) ([]Incarnation, error)
	// Leases returns which worker delivers to which endpoint.
	Leases(ctx context.Context) (map[string]Incarnation, error)
	// Acquire leases an endpoint. ok is false if a worker has leased the endpoint already, or if its
	// owner no longer has the endpoint.
	Acquire(ctx context.Context, owner licensing.Owner, endpoint string) (lease DeliveryLease, ok bool, err error)
}

// DeliveryLease is a worker's lease on an endpoint. All methods but Checkpoint, Resume and Release may
// be called at the same time.
type DeliveryLease interface {
	// Resume reads the state of the endpoint's deliveries, and the endpoint itself, at one revision.
	// If an earlier worker was stopped in a checkpoint, messages after the place in the feed may be
	// pending or dead: the worker reads their events again.
	Resume(ctx context.Context) (DeliveryState, error)
	// Jobs reads the replays that are not done, the oldest first, and the endpoint, at one revision.
	// The events that a replay names were recorded before that revision.
	Jobs(ctx context.Context) ([]Replay, EndpointAt, error)
	// Pending reads messages to be tried again. A message that is not pending is left out.
	Pending(ctx context.Context, events ...string) ([]Delivery, error)
	// Dead reads messages that were given up, in the order of their ids.
	Dead(ctx context.Context, after string, limit int) ([]Delivery, error)
	// Checkpoint stores the work done. It resolves attempts in doubt by itself, as long as ctx lives.
	// After ErrLeaseLost the worker must send nothing more. Checkpoint returns another error only
	// after ctx has ended: then the outcome of the checkpoint is unknown, and the next Checkpoint
	// completes it first.
	//
	// A checkpoint may be stopped between its transactions: the place in the feed and the progress of
	// replays are stored last. Checkpoint counts pending and dead messages itself and ignores the
	// counts in Progress.
	Checkpoint(ctx context.Context, done Checkpoint) error
	// Release releases the lease.
	Release(ctx context.Context) error
}

// OwnerWebhooks contains an owner's endpoints as of a revision.
type OwnerWebhooks struct {
	licensing.Webhooks
	Changed  int64 // the revision of the last change of an endpoint, or of the last added replay
	Revision int64 // the store's revision at which the endpoints were read
}

// EndpointAt is an endpoint as of a revision of the store.
type EndpointAt struct {
	Endpoint licensing.Endpoint
	Found    bool // false: its owner had no such endpoint, and Endpoint is zero
	Revision int64
}

// Enabled reports whether the endpoint existed and was enabled.
func (e *EndpointAt) Enabled() bool { return e.Found && e.Endpoint.Enabled() }

// ErrLeaseLost reports that another worker has the lease by now, or that the endpoint's deliveries
// were removed.
var ErrLeaseLost = errors.New("the lease on the endpoint is lost")

// MaxReplays is the maximum number of waiting replays of an endpoint.
const MaxReplays = 16

// ErrTooManyReplays reports that MaxReplays replays wait already.
var ErrTooManyReplays = errors.New("too many replays wait at the endpoint")

// DeliveryProgress is the progress of the deliveries to an endpoint.
type DeliveryProgress struct {
	Place    FeedPosition // every message before it is delivered, pending or dead
	Pending  int
	Dead     int
	SeenAt   time.Time // the endpoint's ResetAt to which the following fields apply
	Failures int       // consecutive failures, of any messages
	// FailingSince is the time of the first of these failures; zero: the last attempt succeeded.
	FailingSince time.Time
	SinceInDoubt bool      // the clock was in doubt when FailingSince was set
	NextProbe    time.Time // while failing
	LastSuccess  time.Time
	SkippedAt    time.Time // when events were last found to be removed before their delivery
	Behind       bool      // the feed had more events than were read
}

// DeliveryState is the state with which a worker starts.
type DeliveryState struct {
	Endpoint EndpointAt
	Progress DeliveryProgress
	Found    bool // there was progress; else the endpoint is new
	Pending  []PendingDelivery
}

// PendingDelivery is the part of a pending message that the worker keeps in memory.
type PendingDelivery struct {
	EventID  string
	Attempts int
	Next     time.Time
}

// DeliveryStatus is the state of a message to an endpoint.
type DeliveryStatus string

// The states of a message.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryDead      DeliveryStatus = "dead"
)

// Delivery is the delivery of one event to one endpoint.
type Delivery struct {
	EventID  string
	Type     licensing.EventType
	Status   DeliveryStatus
	Attempts []DeliveryAttempt // the oldest first
	Answer   string            // of the last attempt: the first 1 KiB
	Next     time.Time         // while pending: when it is tried again
}

// DeliveryAttempt is one attempt.
type DeliveryAttempt struct {
	At       time.Time
	Duration time.Duration
	Status   int    // of HTTP; 0: no answer
	Failure  string // one of package webhook's failures; empty: success
}

// Checkpoint is the work that one call stores.
type Checkpoint struct {
	Progress  DeliveryProgress // without its counts
	Pending   []Delivery       // stored as pending, whatever they were before
	Delivered []Delivery       // into the log; no longer pending or dead
	Dead      []Delivery       // no longer pending
	EndJobs   []string         // ids of replays that are done, even if PutJobs has them
	PutJobs   []Replay         // the progress of replays; the last element of a replay counts
}

// Replay asks for events to be delivered again: one event, a span of the feed, or all dead messages.
type Replay struct {
	ID           string // a ULID
	EventID      string
	After, Until string // a span: after After, up to and including Until; After empty: from the oldest kept event
	Dead         bool
	// Place is the progress of the replay.
	Place string
}

// DeliveryPage asks for some of an endpoint's deliveries: pending and dead messages in the order of
// their events, and delivered ones from the latest on. A page may be short though more follow. An
// invalid After is ErrBadPosition.
type DeliveryPage struct {
	Status DeliveryStatus // empty: the pending ones, then the dead, then the delivered
	After  string         // from an earlier page; empty: the first page
	Limit  int
}

// Deliveries is a page of deliveries.
type Deliveries struct {
	Items []Delivery
	Next  string // empty at the end
}
