package service_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// backlog is an endless feed without an event that a reader wants.
type backlog struct {
	store.Events
	read atomic.Int64
}

func (b *backlog) NewEvents() <-chan struct{} { return nil }

func (b *backlog) ReadEvents(context.Context, licensing.Owner, store.FeedPage) (store.Feed, error) {
	return store.Feed{Next: store.FeedPosition(fmt.Sprint(b.read.Add(1))), More: true}, nil
}

// TestFeedLooksThroughABacklog waits for an event of a type that does not occur in a long feed: at the deadline the
// response has the position reached, and the next wait continues there.
func TestFeedLooksThroughABacklog(t *testing.T) {
	for name, wait := range map[string]func() service.FeedWait{
		"for a time": func() service.FeedWait { return service.FeedWait{For: 20 * time.Millisecond} },
		"until it stops": func() service.FeedWait {
			stop := make(chan struct{})
			time.AfterFunc(20*time.Millisecond, func() { close(stop) })
			return service.FeedWait{For: time.Hour, Stop: stop}
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := &backlog{}
			n := nodetest.New(t, nodetest.OpenStore(t), func(cfg *service.Config) { cfg.Events = db })
			got, err := n.Feed(nodetest.Context(t), nodetest.Owner, store.FeedPage{Limit: 1}, wait())
			if read := db.read.Load(); err != nil || len(got.Events) != 0 || !got.More || read < 2 ||
				got.Next != store.FeedPosition(fmt.Sprint(read)) {
				t.Errorf("after %d pages the response is %+v, %v", read, got, err)
			}
		})
	}
}

// TestEventReadsAreShared: an owner who reads all the pages that it may read at the same time, for deliveries and
// after waits, leaves places for another owner.
func TestEventReadsAreShared(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t), func(cfg *service.Config) { cfg.Events = &backlog{} })
	greedy, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	deliveries, awaited, giveBack := n.TakeEventReads(greedy)
	if deliveries != 4 || awaited != 2 {
		t.Errorf("one owner has %d places for deliveries and %d after waits, want 4 of 8 and 2 of 4", deliveries,
			awaited)
	}
	const short = 20 * time.Millisecond
	reads := map[string]func(ctx context.Context, owner licensing.Owner, wait time.Duration) error{
		"for a delivery": func(ctx context.Context, owner licensing.Owner, _ time.Duration) error {
			_, err := n.DeliveryEvents(ctx, owner, store.FeedPage{Limit: 1})
			return err
		},
		"after a wait": func(ctx context.Context, owner licensing.Owner, wait time.Duration) error {
			_, err := n.Feed(ctx, owner, store.FeedPage{Limit: 1}, service.FeedWait{For: wait})
			return err
		},
	}
	for name, read := range reads {
		nodetest.WantError(t, read(nodetest.Context(t), other, short), nil)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		result := make(chan error)
		go func() { result <- read(ctx, greedy, time.Hour) }()
		n.AwaitEventReadsWaiting(1)
		cancel()
		if err := <-result; err == nil {
			t.Errorf("%s: a page was read beyond the owner's places", name)
		}
	}
	giveBack()
	for _, read := range reads {
		nodetest.WantError(t, read(nodetest.Context(t), greedy, short), nil)
	}
}
