package service

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
)

// ErrKeyEnded reports that the API key of a caller who waits was revoked or has expired.
var ErrKeyEnded = errors.New("the API key was revoked or has expired")

// keyLookPause is the least time between two looks at the key of one wait. A changed key of any
// account makes all waits look, and those whose keys share a part with the changed key read the
// store, so without a pause one account could have their keys read as often as it changes a key. A
// cache forgets a revoked key within a second or so; together that is within the two seconds that a
// revoked key may work.
const keyLookPause = 500 * time.Millisecond

// keyWatch looks after the API key that a caller waits with: the key ends the wait when it ends,
// and gets nothing afterward. A look is due when the key expires, and when the node's cache has
// forgotten keys because one of them has changed. Until then, a watch costs nothing.
type keyWatch struct {
	events *Events
	key    *licensing.APIKey // nil: there is none
	forgot <-chan struct{}   // closed when the cache has forgotten; nil: a look is due by the timer already
	looked time.Time
	timer  *time.Timer
}

// watchKey begins to look after a key that was good a moment ago. The caller must call stop.
func (e *Events) watchKey(ctx context.Context, key *licensing.APIKey) (*keyWatch, error) {
	w := &keyWatch{events: e, key: key, timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	// The cache may have forgotten the key since the key was good.
	if err := w.lookAgain(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *keyWatch) stop() { w.timer.Stop() }

// lookSoon has a look made once the pause since the last one is over.
func (w *keyWatch) lookSoon() {
	w.forgot = nil
	w.timer.Reset(max(keyLookPause-time.Since(w.looked), 0))
}

// lookAgain looks while the caller waits. Where the store does not answer, there is another look
// soon: the caller has not got anything yet.
func (w *keyWatch) lookAgain(ctx context.Context) error {
	err := w.look(ctx)
	if err == nil || errors.Is(err, ErrKeyEnded) {
		return err
	}
	w.lookSoon()
	return nil
}

// look fails with ErrKeyEnded where the key is no longer good.
func (w *keyWatch) look(ctx context.Context) error {
	if w.key == nil {
		return nil
	}
	w.looked = time.Now()
	w.forgot = w.events.keys.forgotten() // before the look, or a change in between would be missed
	known, found, _ := w.events.keys.recall(w.key.Hash)
	if !found {
		// Few at a time: the first of those who wait with one key finds it for all.
		select {
		case w.events.feed.reading <- struct{}{}:
		case <-ctx.Done():
			return licensing.ErrUnavailable
		}
		var err error
		known, err = w.events.keys.find(ctx, w.key.Hash)
		<-w.events.feed.reading
		if err != nil {
			return err
		}
	}
	now := w.events.engine.Now()
	if known == nil || !known.key.Usable(now) {
		return ErrKeyEnded
	}
	if expires := known.key.ExpiresAt; !expires.IsZero() {
		w.timer.Reset(expires.Sub(now))
	} else {
		w.timer.Stop()
	}
	return nil
}

// goOn waits until there may be more to read, and reports whether there is time for that.
// Where there is more by now, goOn does not wait: a caller who wants few kinds may have much to
// look through, and learns how far the search got when the time is up.
func (w FeedWait) goOn(ctx context.Context, more bool, news, gone <-chan struct{}, timeout <-chan time.Time, key *keyWatch) (bool, error) {
	if more {
		ready := make(chan struct{})
		close(ready)
		news = ready
	}
	for {
		select {
		case <-news:
			return true, nil
		case <-timeout:
			return false, nil
		case <-w.Stop:
			return false, nil
		case <-gone:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-key.forgot:
			key.lookSoon()
		case <-key.timer.C:
			if err := key.lookAgain(ctx); err != nil {
				return false, err
			}
		}
	}
}
