package kv

import (
	"context"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// rewatchPause is the longest pause before a watch that has ended is made
// again; it doubles.
const (
	rewatchPause    = 50 * time.Millisecond
	rewatchPauseMax = time.Second
)

// WatchAPIKeys calls wake whenever an API key may have changed, until ctx ends.
//
// A watch can hang in silence, so nobody may rely on it. etcd's client takes it
// up again where a connection was lost. WithRequireLeader makes one on a member
// that has lost its leader end; whatever ends it, a compaction too, it is made
// anew from the present on. What was missed between the two is why wake is
// called at each beginning.
func (s *Store) WatchAPIKeys(ctx context.Context, wake func()) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if s.watchAPIKeys(ctx, wake) {
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

// watchAPIKeys watches until the watch ends, and tells whether it ever began.
func (s *Store) watchAPIKeys(ctx context.Context, wake func()) (began bool) {
	ctx, cancel := context.WithCancel(ctx) // frees the watch, however it ends
	defer cancel()
	for response := range s.client.Watch(clientv3.WithRequireLeader(ctx), apiKeysMark, clientv3.WithCreatedNotify()) {
		if err := response.Err(); err != nil {
			s.log.Debug().Err(err).Msg("the watch of the API keys has ended; it is made again")
			return began
		}
		began = true
		wake()
	}
	return began
}
