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
	// AddReplay asks for events to be delivered again. The worker that holds the endpoint's claim
	// delivers them. AddReplay fails with ErrTooManyReplays if MaxReplays wait already, and with
	// licensing.ErrWebhookNotFound if the owner has no such endpoint (any more). AddReplay raises
	// OwnerWebhooks.Changed of the owner, and of no other owner. The transaction that stores the
	// replay writes the claims too; if a claim is not as it was read, AddReplay stores nothing and
	// fails with ErrClaimTaken.
	AddReplay(ctx context.Context, owner licensing.Owner, endpoint string, replay Replay, claims ...Write) error

	// SweepWebhooks removes what is left of deleted endpoints, some hundred etcd keys at a time. After
	// a removal there may be more to remove.
	SweepWebhooks(ctx context.Context) (removed int, err error)
}

// DeliveryWorker is a node that delivers.
type DeliveryWorker interface {
	// Self is its own name among the workers.
	Self() Incarnation
	// Workers lists all that are up.
	Workers(ctx context.Context) ([]Incarnation, error)
	// Claims tells who delivers to which endpoint.
	Claims(ctx context.Context) (map[string]Incarnation, error)
	// Claim takes an endpoint; ok is false where somebody has it already, or its owner
	// has it not any more.
	Claim(ctx context.Context, owner licensing.Owner, endpoint string) (hold DeliveryHold, ok bool, err error)
}

// DeliveryHold is a claim on an endpoint, of the worker that has taken it. All but
// Checkpoint, Resume and Release may be called at the same time.
type DeliveryHold interface {
	// Resume reads where the deliveries of the endpoint stand, and the endpoint itself, at
	// one revision. Where an earlier holder was stopped in a checkpoint, messages may be
	// pending, or dead, that come after the place in the feed: they are met there again.
	Resume(ctx context.Context) (DeliveryState, error)
	// Jobs reads the replays that were asked for and are not done, the oldest first, and
	// the endpoint, at one revision: an event that a replay names was recorded before that.
	Jobs(ctx context.Context) ([]Replay, EndpointAt, error)
	// Pending reads messages that are to be tried again; one that is not pending is
	// left out.
	Pending(ctx context.Context, events ...string) ([]Delivery, error)
	// Dead reads messages that were given up, in the order of their ids.
	Dead(ctx context.Context, after string, limit int) ([]Delivery, error)
	// Checkpoint stores what was done. It settles attempts whose outcome is in doubt
	// by itself, as long as ctx lives. After ErrClaimLost nothing may be sent any more.
	// There is another error only after ctx has ended: then the checkpoint is under way,
	// and the next one finishes it before its own.
	//
	// It is stored in an order in which it may be stopped: the place in the feed, and
	// what becomes of replays, go last. How many messages are pending and dead is
	// counted here; what the checkpoint's Progress says of that does not matter.
	Checkpoint(ctx context.Context, done Checkpoint) error
	// Release gives the claim up.
	Release(ctx context.Context) error
}

// OwnerWebhooks is an owner's endpoints as they were read.
type OwnerWebhooks struct {
	licensing.Webhooks
	Changed  int64 // the revision at which an endpoint was changed last, or a replay was asked for
	Revision int64 // the store's revision at which the endpoints were read
}

// EndpointAt is an endpoint as it was at a revision of the store.
type EndpointAt struct {
	Endpoint licensing.Endpoint
	Found    bool // false: its owner had no such endpoint, and Endpoint is zero
	Revision int64
}

// Enabled reports whether the endpoint was there and got events.
func (e *EndpointAt) Enabled() bool { return e.Found && e.Endpoint.Enabled() }

// ErrClaimLost tells the holder of a claim that it is somebody else's by now, or that
// the endpoint's deliveries were removed.
var ErrClaimLost = errors.New("the claim on the endpoint is lost")

// MaxReplays is how many replays may wait at an endpoint.
const MaxReplays = 16

// ErrTooManyReplays tells that so many replays wait that no further one is taken.
var ErrTooManyReplays = errors.New("too many replays wait at the endpoint")

// DeliveryProgress is how far the deliveries to an endpoint are.
type DeliveryProgress struct {
	Place    FeedPosition // all before it was delivered, or is pending or dead
	Pending  int
	Dead     int
	SeenAt   time.Time // the endpoint's ResetAt for which the rest holds
	Failures int       // in a row, of any messages
	// FailingSince is when the first of them was; zero: the last one was none.
	FailingSince time.Time
	NextProbe    time.Time // while failing
	LastSuccess  time.Time
	SkippedAt    time.Time // when it was found last that events were gone before they were delivered
	Behind       bool      // there was more in the feed than was read
}

// DeliveryState is what a holder begins with.
type DeliveryState struct {
	Endpoint EndpointAt
	Progress DeliveryProgress
	Found    bool // there was progress; else the endpoint is new
	Pending  []PendingDelivery
}

// PendingDelivery is what is kept in memory of a message that is to be tried again.
type PendingDelivery struct {
	EventID  string
	Attempts int
	Next     time.Time
}

// DeliveryStatus is how a message to an endpoint stands.
type DeliveryStatus string

// The states of a message.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryDead      DeliveryStatus = "dead"
)

// Delivery is what became of one event at one endpoint.
type Delivery struct {
	EventID  string
	Type     licensing.EventType
	Status   DeliveryStatus
	Attempts []DeliveryAttempt // the oldest first
	Answer   string            // of the last one: the first 1 KiB
	Next     time.Time         // while pending: when it is tried again
}

// DeliveryAttempt is one attempt.
type DeliveryAttempt struct {
	At       time.Time
	Duration time.Duration
	Status   int    // of HTTP; 0: there was no answer
	Failure  string // as of package webhook; empty: it was delivered
}

// Checkpoint is what a holder stores in one go.
type Checkpoint struct {
	Progress  DeliveryProgress // but for its counts
	Pending   []Delivery       // put, whatever they were before
	Delivered []Delivery       // into the log; no longer pending or dead
	Dead      []Delivery       // no longer pending
	EndJobs   []string         // ids of replays; they are done, whatever PutJobs says
	PutJobs   []Replay         // how far replays are; of one that is there twice, the last one counts
}

// Replay asks for events to be delivered again: one, or a span of the feed, or all
// that were given up.
type Replay struct {
	ID           string // a ULID
	EventID      string
	After, Until string // of a span: behind the one, up to the other with it; After empty: from the oldest that is kept
	Dead         bool
	// Place is how far it was done.
	Place string
}

// DeliveryPage asks for some of an endpoint's deliveries: those that are pending and
// those that are dead in the order of their events, and what was delivered lately from
// the latest on. A page may be short while more follows. It is ErrBadPosition where
// After is none.
type DeliveryPage struct {
	Status DeliveryStatus // empty: the pending ones, then the dead, then the delivered
	After  string         // as an earlier page answered; empty: the first
	Limit  int
}

// Deliveries is a page of them.
type Deliveries struct {
	Items []Delivery
	Next  string // empty at the end
}
