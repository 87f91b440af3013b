package kv

import (
	"context"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
)

// rewatchPause is the longest pause before a watch that has ended is made
// again; it doubles.
const (
	rewatchPause    = 50 * time.Millisecond
	rewatchPauseMax = time.Second
)

// WatchAPIKeys calls wake whenever an API key may have changed; see watchKey.
func (s *Store) WatchAPIKeys(ctx context.Context, wake func()) {
	s.watchKey(ctx, layout.APIKeysMark, wake)
}

// watchKey calls wake whenever a key has changed, until ctx ends.
//
// A watch can hang in silence, so nobody may rely on it. etcd's client takes it
// up again where a connection was lost. WithRequireLeader makes one on a member
// that has lost its leader end; whatever ends it, a compaction too, it is made
// anew from the present on. What was missed between the two is why wake is
// called at each beginning.
func (s *Store) watchKey(ctx context.Context, key string, wake func()) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if s.watchOnce(ctx, key, wake) {
			attempt = 0
		}
		longest := min(rewatchPause<<min(attempt, 10), rewatchPauseMax)
		timer := time.NewTimer(longest/2 + rand.N(longest/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// watchOnce watches until the watch ends, and tells whether it ever began.
func (s *Store) watchOnce(ctx context.Context, key string, wake func()) (began bool) {
	ctx, cancel := context.WithCancel(ctx) // frees the watch, however it ends
	defer cancel()
	for response := range s.client.Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithCreatedNotify()) {
		if err := response.Err(); err != nil {
			s.log.Debug().Err(err).Str("key", key).Msg("a watch has ended; it is made again")
			return began
		}
		began = true
		wake()
	}
	return began
}
