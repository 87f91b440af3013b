package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
)

// Watch calls wake whenever a key has changed, until ctx ends.
//
// A watch can hang in silence, so nobody may rely on it. etcd's client takes it
// up again where a connection was lost. WithRequireLeader makes one on a member
// that has lost its leader end; whatever ends it, a compaction too, it is made
// anew from the present on. What was missed between the two is why wake is
// called at each beginning.
func (c *Client) Watch(ctx context.Context, key string, wake func()) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if c.watchOnce(ctx, key, wake) {
			attempt = 0
		}
		backoff.Exponential{First: 50 * time.Millisecond, Longest: time.Second}.Wait(ctx, attempt)
	}
}

// watchOnce watches until the watch ends, and tells whether it ever began.
func (c *Client) watchOnce(ctx context.Context, key string, wake func()) (began bool) {
	ctx, cancel := context.WithCancel(ctx) // frees the watch, however it ends
	defer cancel()
	for response := range c.Native.Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithCreatedNotify()) {
		if err := response.Err(); err != nil {
			c.Log.Debug().Err(err).Str("key", key).Msg("a watch has ended; it is made again")
			return began
		}
		began = true
		wake()
	}
	return began
}
