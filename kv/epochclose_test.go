package kv

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
)

// closedEpochs simulates the epochs of a store.
type closedEpochs struct {
	bytes int64 // in each epoch, from its beginning

	mu     sync.Mutex
	number keyspace.Epoch
	closed []time.Time
}

func (s *closedEpochs) read(context.Context) (openEpoch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return openEpoch{number: s.number, written: true, bytes: s.bytes}, nil
}

func (s *closedEpochs) closeEpoch(_ context.Context, number keyspace.Epoch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == s.number {
		s.number++
		s.closed = append(s.closed, time.Now())
	}
	return nil
}

// TestPaceOfEpochs has three nodes close the epochs of a store into which clients write as much as they can, or little.
func TestPaceOfEpochs(t *testing.T) {
	for _, c := range []struct {
		name            string
		bytes           int64
		atLeast, atMost int
		apart           time.Duration
	}{
		{"much", 1 << 40, 60, 120, 500 * time.Millisecond},
		{"little", 1, 40, 100, 600 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			epochs := &closedEpochs{bytes: c.bytes, number: 1}
			lag := kvtest.Metrics().EventFeedLag
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var group sync.WaitGroup
				for range 3 {
					s := epochCloser{read: epochs.read, closeEpoch: epochs.closeEpoch, lag: lag, log: zerolog.Nop()}
					group.Go(func() { s.run(ctx, nil) })
				}
				group.Wait()
			})
			if n := len(epochs.closed); n < c.atLeast || n > c.atMost {
				t.Errorf("in a minute %d epochs are closed, want %d to %d", n, c.atLeast, c.atMost)
			}
			for i := range len(epochs.closed) - 1 {
				if apart := epochs.closed[i+1].Sub(epochs.closed[i]); apart < c.apart {
					t.Errorf("an epoch is closed %v old", apart)
				}
			}
		})
	}
}

// TestEpochCloserGoesOn: an error of the store, and a failed attempt, delay the closing and do not end it.
func TestEpochCloserGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epochs := &closedEpochs{number: 1}
		calls := 0
		unless := func(every int) error {
			if calls++; calls%every == 0 {
				return errors.New("etcd does not answer")
			}
			return nil
		}
		s := epochCloser{lag: kvtest.Metrics().EventFeedLag, log: zerolog.Nop(),
			read: func(ctx context.Context) (openEpoch, error) {
				if err := unless(2); err != nil {
					return openEpoch{}, err
				}
				return epochs.read(ctx)
			},
			closeEpoch: func(ctx context.Context, number keyspace.Epoch) error {
				if err := unless(3); err != nil {
					return err
				}
				return epochs.closeEpoch(ctx, number)
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.run(ctx, nil)
		if n := len(epochs.closed); n < 20 {
			t.Errorf("in a minute %d epochs are closed", n)
		}
	})
}

// TestNewEventsWakesReaders: an epoch that another node closes wakes all readers that looked before, by the watch of
// epochs, and without the watch too.
func TestNewEventsWakesReaders(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	for name, keep := range map[string]func(*Store){
		"with the watch": func(s *Store) { s.KeepClosingEpochs() },
		"without the watch": func(s *Store) {
			never := epochCloser{read: s.readOpenEpoch, lag: s.metrics.EventFeedLag, log: zerolog.Nop(),
				closeEpoch: func(context.Context, keyspace.Epoch) error { return nil }}
			s.guard.StartIn(&s.background, "closing of epochs", func() { never.run(s.life, nil) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := l.open(nil)
			keep(s)
			first, second := s.NewEvents(), s.NewEvents()
			closed := l.closeEpoch()
			for _, news := range []<-chan struct{}{first, second} {
				select {
				case <-news:
				case <-time.After(20 * time.Second):
					t.Fatal("a reader sleeps on")
				}
			}
			kvtest.Await(t, func() bool { return s.fences.known() >= closed })
		})
	}

	s := l.open(nil)
	if err := s.CloseEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.NewEvents():
		t.Error("a reader that looks after the epoch was closed is woken")
	default:
	}
}
