package service

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/store"
)

// oneKey is a store of one API key and of a feed which has an event once hasEvent is set.
type oneKey struct {
	store.Store
	key      licensing.APIKey
	ended    atomic.Bool // the key is revoked
	fails    atomic.Bool // the store does not answer
	mark     atomic.Int64
	hasEvent atomic.Bool // the feed has an event
	reads    atomic.Int64
	woken    chan struct{}
	news     chan struct{}
}

func (s *oneKey) NewEvents() <-chan struct{} { return s.news }

func (s *oneKey) APIKey(context.Context, [32]byte) (*licensing.APIKey, error) {
	s.reads.Add(1)
	if s.fails.Load() {
		return nil, licensing.ErrUnavailable
	}
	key := s.key
	if s.ended.Load() {
		key.RevokedAt = key.CreatedAt
	}
	return &key, nil
}

func (s *oneKey) APIKeyMarks(context.Context) (marks store.KeyMarks, err error) {
	if s.fails.Load() {
		return marks, licensing.ErrUnavailable
	}
	marks.All = store.KeyMark(time.Unix(s.mark.Load(), 0).String())
	return marks, nil
}

func (s *oneKey) WatchAPIKeys(ctx context.Context, wake func()) {
	for {
		select {
		case <-s.woken:
			wake()
		case <-ctx.Done():
			return
		}
	}
}

func (s *oneKey) ReadEvents(context.Context, licensing.Owner, store.FeedPage) (feed store.Feed, err error) {
	if s.hasEvent.Load() {
		feed.Events = make([]store.RecordedEvent, 1)
	}
	return feed, nil
}

// TestWaitsByAKey: a wait ends with its key, within two seconds of a revocation and at once when the key expires. The
// wait costs the store next to nothing, whatever other accounts do with their keys.
func TestWaitsByAKey(t *testing.T) {
	t.Parallel()
	const all = 25 * time.Second
	for _, c := range []struct {
		name    string
		unknown bool          // the cache does not follow the marks of keys
		expires time.Duration // from the beginning; 0: never
		run     func(s *oneKey, n *Service)
		ended   bool          // the wait ends by its key
		after   time.Duration // at the earliest
		before  time.Duration
		reads   int64 // at most
	}{
		{name: "nothing happens", run: func(*oneKey, *Service) {}, after: all, before: all, reads: 1},
		{name: "other keys change each moment", after: all, before: all, reads: int64(all/keyCheckPause) + 1,
			run: func(s *oneKey, _ *Service) {
				for range int(all / (10 * time.Millisecond)) {
					time.Sleep(10 * time.Millisecond)
					s.mark.Add(1)
					select {
					case s.woken <- struct{}{}:
					default:
					}
				}
			}},
		{name: "the key is revoked, and no watch reports that", ended: true, after: 10 * time.Second,
			before: 12 * time.Second, reads: 2, run: func(s *oneKey, _ *Service) {
				time.Sleep(10*time.Second + time.Millisecond)
				s.ended.Store(true)
				s.mark.Add(1)
			}},
		{name: "the key expires", expires: 7 * time.Second, ended: true, after: 7 * time.Second,
			before: 7 * time.Second, reads: 1, run: func(*oneKey, *Service) {}},
		{name: "the key is revoked, and an event comes", unknown: true, ended: true, after: 5 * time.Second,
			before: 5 * time.Second, reads: 2, run: func(s *oneKey, n *Service) {
				time.Sleep(5 * time.Second)
				s.ended.Store(true)
				s.hasEvent.Store(true)
				close(s.news)
			}},
		{name: "the store does not answer for a while", after: all, before: all, reads: 30,
			run: func(s *oneKey, _ *Service) {
				time.Sleep(5 * time.Second)
				s.mark.Add(1)
				time.Sleep(1500 * time.Millisecond)
				s.fails.Store(true)
				time.Sleep(5 * time.Second)
				s.fails.Store(false)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := &oneKey{woken: make(chan struct{}, 1), news: make(chan struct{})}
				if s.key.CreatedAt = time.Now(); c.expires > 0 {
					s.key.ExpiresAt = time.Now().Add(c.expires)
				}
				n := New(Config{
					Config: node.Config{
						Records: s,
						Queries: s,
						Clock:   time.Now,
						Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""),
						Log:     zerolog.Nop(),
					},
					Keys:   s,
					Sweeps: s,
					Events: s,
				})
				if !c.unknown {
					go n.FollowKeys(ctx)
				}
				synctest.Wait()
				go c.run(s, n)
				waiting, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				began := time.Now()
				_, err := n.Feed(waiting, licensing.Owner{}, store.FeedPage{Limit: 1}, FeedWait{For: all, Key: &s.key})
				if took := time.Since(began); took < c.after || took > c.before ||
					errors.Is(err, ErrKeyEnded) != c.ended || err != nil && !c.ended {
					t.Errorf("the wait ends after %v: %v", took, err)
				}
				if got := s.reads.Load(); got > c.reads {
					t.Errorf("the key was read %d times, want at most %d", got, c.reads)
				}
			})
		})
	}
}

// TestReadyAsksNoStore: the node sets the gauge of readiness without a request to the store, which has no Ping here.
func TestReadyAsksNoStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &oneKey{woken: make(chan struct{})}
		m := metrics.New(prometheus.NewRegistry(), "", "", "")
		n := New(Config{Config: node.Config{Records: s, Queries: s, Clock: time.Now, Metrics: m, Log: zerolog.Nop()},
			Keys: s, Sweeps: s, Events: s})
		want := func(want float64, when string) {
			t.Helper()
			if got := m.Ready.Value(); got != want {
				t.Errorf("licet_ready is %v %s", got, when)
			}
		}
		want(0, "before the store has answered")
		go n.FollowKeys(ctx)
		synctest.Wait()
		want(1, "once it has")
		time.Sleep(time.Minute)
		want(1, "a minute later")
		s.fails.Store(true)
		time.Sleep(keyTrust)
		want(0, "while the store does not answer")
		s.fails.Store(false)
		time.Sleep(2 * keyScanEvery)
		want(1, "when it answers again")
		n.Leave()
		want(0, "while the node leaves")
	})
}
