package webhooks

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"licet/client"
)

const (
	failing = 0.2                   // the share of its calls that the unreliable endpoint fails
	slowest = 40 * time.Millisecond // the longest time that the unreliable endpoint takes for a call
)

// Change is a change that must have exactly one event: the kind of event, the order or license that changed, and the
// device if the kind names a device.
type Change struct{ Kind, Subject, Device string }

func (c Change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s of %s %s", c.Kind, c.Subject, c.Device))
}

// Endpoints are the endpoints of an account, and the client that follows the account's feed.
type Endpoints struct {
	desk                          *client.Client
	reliable, unreliable, hanging *receiver

	delivered atomic.Int64 // events that live endpoints have received for the first time
	unfollow  context.CancelFunc
	ended     chan error // the client that follows has ended
	followed  []string   // ids of the events of the client that follows the feed
	hurried   int        // times that the unreliable endpoint was enabled again
	killed    int        // kills during the delivery
}

// Open creates the endpoints with a client of the account. The seed decides which calls the unreliable endpoint fails,
// and most how often the endpoint fails one event at most; 0 means no bound.
func Open(ctx context.Context, desk *client.Client, seed uint64, most int) (_ *Endpoints, err error) {
	e := &Endpoints{desk: desk, ended: make(chan error, 1), unfollow: func() {}}
	defer func() {
		if err != nil {
			e.Stop()
		}
	}()
	for _, one := range []struct {
		as     **receiver
		name   string
		answer answer
	}{
		{&e.reliable, "reliable", well},
		{&e.unreliable, "unreliable", unreliable(seed, failing, most, slowest)},
		{&e.hanging, "hanging", hanging()},
	} {
		r := newReceiver(one.name, one.answer)
		*one.as, r.first = r, func() { e.delivered.Add(1) }
		made, err := desk.Webhooks.Create(ctx, client.NewWebhook{URL: r.url, Description: r.name})
		if err != nil {
			return nil, fmt.Errorf("make the endpoint %s: %w", r.name, err)
		}
		r.id = made.ID
		if err := r.know(made.Secret); err != nil {
			return nil, err
		}
	}
	e.hanging.live = false
	var following context.Context
	following, e.unfollow = context.WithCancel(ctx)
	go func() { e.ended <- e.follow(following) }()
	return e, nil
}

// Stop ends the receivers and the client that follows the feed. Stop of nil endpoints is a no-op.
func (e *Endpoints) Stop() {
	if e == nil {
		return
	}
	e.unfollow()
	for _, r := range e.receivers() {
		if r != nil {
			r.stop()
		}
	}
}

func (e *Endpoints) receivers() []*receiver { return []*receiver{e.reliable, e.unreliable, e.hanging} }

// Rotate replaces the secret of an endpoint. The service signs messages with both secrets for an hour, and the receiver
// accepts either.
func (e *Endpoints) Rotate(ctx context.Context) error {
	now, err := e.desk.Webhooks.Rotate(ctx, e.unreliable.id, client.Rotation{Overlap: new(time.Hour)})
	if err != nil {
		return fmt.Errorf("replace the secret of an endpoint: %w", err)
	}
	return e.unreliable.know(now.Secret)
}

// Result is the result of an audit.
type Result struct {
	Events   int            // in the feed
	Accepted map[string]int // events that an endpoint has accepted at least once, by the name of a live endpoint
	Notes    []string       // what the endpoints received
	Problems []string
}

// Audit reads the feed, and compares it with what the endpoints and the following client received, and with the
// changes. A change is true if the service has acknowledged it, and false if its outcome is unknown.
func (e *Endpoints) Audit(ctx context.Context, changes map[Change]bool) (*Result, error) {
	feed, err := readFeed(ctx, e.desk)
	if err != nil {
		return nil, err
	}
	found := &evidence{changes: changes, feed: feed, followed: e.followed}
	r := &Result{Events: len(feed), Accepted: map[string]int{}}
	for _, one := range e.receivers() {
		problem, err := e.inspect(ctx, one)
		if err != nil {
			return nil, err
		}
		b := one.soFar()
		found.endpoints = append(found.endpoints, b)
		if b.live {
			r.Accepted[b.name] = len(b.taken)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("endpoint %s: %d calls, of which %d were not answered well; %d events, "+
			"and %d repeated deliveries", b.name, b.calls, b.failed, len(b.taken), b.repeats()))
		r.Problems = append(append(r.Problems, b.problems...), problem...)
		if !b.live && (b.calls == 0 || len(b.taken) > 0) {
			r.Problems = append(r.Problems, fmt.Sprintf("the endpoint %s was called %d times, and accepted %d events",
				b.name, b.calls, len(b.taken)))
		}
	}
	r.Notes = append(r.Notes, fmt.Sprintf("kills during the delivery: %d; times that the unreliable endpoint was "+
		"enabled again: %d", e.killed, e.hurried))
	r.Problems = append(r.Problems, audit(found)...)
	return r, nil
}

// inspect checks the status of an endpoint.
func (e *Endpoints) inspect(ctx context.Context, r *receiver) (problems []string, err error) {
	now, err := e.desk.Webhooks.Get(ctx, r.id)
	if err != nil {
		return nil, fmt.Errorf("look the endpoint %s up: %w", r.name, err)
	}
	if now.Status != "enabled" || now.Delivery.Dead != 0 || !now.Delivery.SkippedAt.IsZero() {
		problems = append(problems, fmt.Sprintf("the endpoint %s is %s, with %d dead letters, and has skipped events "+
			"at %v", r.name, now.Status, now.Delivery.Dead, now.Delivery.SkippedAt))
	}
	return problems, nil
}
