package node

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"licet"
)

const (
	// sealAfter is how old an epoch gets before the next begins, if anything was
	// written: events are in the feed about so late.
	sealAfter = time.Second
	// sealBytes is how many bytes of events this node writes into one epoch: who reads
	// an epoch must hold the list of its events at once.
	sealBytes = 4 << 20
	// sealScan is how often it is looked whether an epoch is due: another node may
	// have died before it did.
	sealScan = 250 * time.Millisecond
)

// feed tells those who wait that there may be more events.
type feed struct {
	mu   sync.Mutex
	news chan struct{} // closed when an epoch has begun
}

func newFeed() *feed { return &feed{news: make(chan struct{})} }

// next is closed when an epoch has begun after the call.
func (f *feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.news
}

func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.news)
	f.news = make(chan struct{})
}

// KeepSealing sees to it that what is recorded gets into the feed, and tells those
// who wait for it, until ctx ends. All nodes do it; whoever is first does it for all.
func (n *Node) KeepSealing(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { n.cfg.Events.WatchEpochs(ctx, n.feed.wake) })
	var known uint64
	var since time.Time // when known was seen first
	for {
		timer := time.NewTimer(sealScan/2 + rand.N(sealScan))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		epoch, err := n.cfg.Events.EventEpoch(ctx)
		if err != nil {
			continue // whoever needs the store is told so
		}
		now := time.Now() // an age, and so by the clock that only goes forward
		if epoch.Number != known {
			if known != 0 {
				n.feed.wake() // the watch may hang
			}
			known, since = epoch.Number, now
		}
		if due := now.Sub(since) >= sealAfter || epoch.Bytes >= sealBytes; !due || !epoch.Written {
			continue
		}
		if err := n.cfg.Events.SealEvents(ctx, epoch); err != nil && ctx.Err() == nil {
			n.cfg.Log.Debug().Err(err).Msg("an epoch of events could not be sealed; it is tried again")
		}
	}
}

// Feed reads a page of an owner's events. Where there is nothing to tell, it waits for
// some, for as long as wait, and then answers without.
func (n *Node) Feed(ctx context.Context, owner licet.Owner, page FeedPage, wait time.Duration) (Feed, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		news := n.feed.next()
		got, err := n.readFeed(ctx, owner, page)
		if err != nil || len(got.Events) > 0 || wait <= 0 {
			return got, err
		}
		if got.More {
			page.After = got.Next
			continue
		}
		select {
		case <-news:
			page.After = got.Next
		case <-timeout.C:
			return got, nil
		case <-ctx.Done():
			return got, nil
		}
		if n.isDraining() {
			return got, nil
		}
	}
}

// readFeed reads a page, for which it takes a place as any other request.
func (n *Node) readFeed(ctx context.Context, owner licet.Owner, page FeedPage) (got Feed, err error) {
	if err := n.admission.enter(ctx); err != nil {
		return Feed{}, err
	}
	defer func() { n.admission.leave(err) }()
	return n.cfg.Events.ReadEvents(ctx, owner, page)
}

// Event looks an event of an owner up by its id.
func (n *Node) Event(ctx context.Context, owner licet.Owner, id string) (event *RecordedEvent, err error) {
	if err := n.admission.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { n.admission.leave(err) }()
	event, err = n.cfg.Events.Event(ctx, owner, id)
	if err == nil && event == nil {
		err = licet.ErrEventNotFound
	}
	return event, err
}
