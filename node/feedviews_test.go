package node_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// backlog is a feed in which nothing is that is wanted, however far it is read.
type backlog struct {
	store.EventStore
	read atomic.Int64
}

func (b *backlog) ReadEvents(context.Context, licensing.Owner, store.FeedPage) (store.Feed, error) {
	return store.Feed{Next: store.FeedPosition(fmt.Sprint(b.read.Add(1))), More: true}, nil
}

// TestFeedLooksThroughABacklog waits for an event of a kind that there is none of, with
// much to look through: when the time is up it is told how far that got, and does not
// begin there again.
func TestFeedLooksThroughABacklog(t *testing.T) {
	for name, wait := range map[string]func() node.FeedWait{
		"for a time": func() node.FeedWait { return node.FeedWait{For: 20 * time.Millisecond} },
		"until it stops": func() node.FeedWait {
			stop := make(chan struct{})
			time.AfterFunc(20*time.Millisecond, func() { close(stop) })
			return node.FeedWait{For: time.Hour, Stop: stop}
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := &backlog{}
			n := newNode(t, openStore(t), func(cfg *node.Config) { cfg.Events = db })
			got, err := n.Feed(testContext(t), testOwner, store.FeedPage{Limit: 1}, wait())
			if read := db.read.Load(); err != nil || len(got.Events) != 0 || !got.More || read < 2 || got.Next != store.FeedPosition(fmt.Sprint(read)) {
				t.Errorf("after %d pages it is told %+v, %v", read, got, err)
			}
		})
	}
}
