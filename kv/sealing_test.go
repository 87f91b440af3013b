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

// sealedEpochs simulates the epochs of a store.
type sealedEpochs struct {
	bytes int64 // in each epoch, from its beginning

	mu     sync.Mutex
	number keyspace.Epoch
	sealed []time.Time
}

func (s *sealedEpochs) read(context.Context) (openEpoch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return openEpoch{number: s.number, written: true, bytes: s.bytes}, nil
}

func (s *sealedEpochs) seal(_ context.Context, number keyspace.Epoch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == s.number {
		s.number++
		s.sealed = append(s.sealed, time.Now())
	}
	return nil
}

// TestPaceOfSeals has three nodes seal the epochs of a store into which clients write as much as they can, or little.
func TestPaceOfSeals(t *testing.T) {
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
			epochs := &sealedEpochs{bytes: c.bytes, number: 1}
			lag := kvtest.Metrics().EventFeedLag
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var group sync.WaitGroup
				for range 3 {
					s := epochSealer{read: epochs.read, seal: epochs.seal, lag: lag, log: zerolog.Nop()}
					group.Go(func() { s.run(ctx, nil) })
				}
				group.Wait()
			})
			if n := len(epochs.sealed); n < c.atLeast || n > c.atMost {
				t.Errorf("in a minute %d epochs are sealed, want %d to %d", n, c.atLeast, c.atMost)
			}
			for i := range len(epochs.sealed) - 1 {
				if apart := epochs.sealed[i+1].Sub(epochs.sealed[i]); apart < c.apart {
					t.Errorf("an epoch is sealed %v old", apart)
				}
			}
		})
	}
}

// TestSealerGoesOn: an error of the store, and a seal that fails, delay a seal and do not end the sealing.
func TestSealerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epochs := &sealedEpochs{number: 1}
		calls := 0
		unless := func(every int) error {
			if calls++; calls%every == 0 {
				return errors.New("etcd does not answer")
			}
			return nil
		}
		s := epochSealer{lag: kvtest.Metrics().EventFeedLag, log: zerolog.Nop(),
			read: func(ctx context.Context) (openEpoch, error) {
				if err := unless(2); err != nil {
					return openEpoch{}, err
				}
				return epochs.read(ctx)
			},
			seal: func(ctx context.Context, number keyspace.Epoch) error {
				if err := unless(3); err != nil {
					return err
				}
				return epochs.seal(ctx, number)
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.run(ctx, nil)
		if n := len(epochs.sealed); n < 20 {
			t.Errorf("in a minute %d epochs are sealed", n)
		}
	})
}

// TestNewEventsWakesReaders: a seal of another node wakes all readers that looked before the seal, by the watch of
// epochs, and without the watch too.
func TestNewEventsWakesReaders(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	for name, keep := range map[string]func(*Store){
		"with the watch": func(s *Store) { s.KeepSealing() },
		"without the watch": func(s *Store) {
			never := epochSealer{read: s.readOpenEpoch, lag: s.metrics.EventFeedLag, log: zerolog.Nop(),
				seal: func(context.Context, keyspace.Epoch) error { return nil }}
			s.guard.StartIn(&s.background, "sealing of epochs", func() { never.run(s.life, nil) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := l.open(nil)
			keep(s)
			first, second := s.NewEvents(), s.NewEvents()
			sealed := l.seal()
			for _, news := range []<-chan struct{}{first, second} {
				select {
				case <-news:
				case <-time.After(20 * time.Second):
					t.Fatal("a reader sleeps on")
				}
			}
			kvtest.Await(t, func() bool { return s.fences.known() >= sealed })
		})
	}

	s := l.open(nil)
	if err := s.SealEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.NewEvents():
		t.Error("a reader that looks after the seal is woken")
	default:
	}
}
