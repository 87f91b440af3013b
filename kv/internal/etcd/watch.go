package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
)

// Watch calls wake whenever a key has changed, until ctx ends.
//
// A watch can hang silently, so callers must not rely on it alone. etcd's client resumes a watch after a lost
// connection. WithRequireLeader ends a watch on a member that has lost its leader. Whatever ends the watch, a
// compaction included, Watch starts a new watch from the present on. Changes between the two may be missed, so Watch
// calls wake at each start.
func (c *Client) Watch(ctx context.Context, key string, wake func()) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if c.watchOnce(ctx, key, wake) {
			attempt = 0
		}
		backoff.Exponential{First: 50 * time.Millisecond, Longest: time.Second}.Wait(ctx, attempt)
	}
}

// watchOnce watches until the watch ends, and reports whether the watch ever started.
func (c *Client) watchOnce(ctx context.Context, key string, wake func()) (began bool) {
	ctx, cancel := context.WithCancel(ctx) // frees the watch, however it ends
	defer cancel()
	for response := range c.Native.Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithCreatedNotify()) {
		if err := response.Err(); err != nil {
			c.Log.Debug().Err(err).Str("key", key).Msg("a watch has ended; the node starts it again")
			return began
		}
		began = true
		wake()
	}
	return began
}
