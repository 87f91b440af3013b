package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
)

// ErrLeaseLost is the error of work under a lease that is not kept alive any more.
var ErrLeaseLost = fmt.Errorf("%w: the lease is lost", licensing.ErrUnavailable)

// UnderLease takes a lease of ttl seconds, puts a key under the lease, and calls do. The context of do ends
// when the lease is lost. put reports whether the key was put.
func (c *Client) UnderLease(
	ctx context.Context, name string, ttl int64, key, value string, do func(context.Context, clientv3.LeaseID) error,
) (put bool, err error) {
	// Under the alarm NOSPACE, each refused grant raises the alarm again.
	if full := c.members.refusalOfPuts(); full != nil {
		return false, full
	}
	starting, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	lease, err := c.Native.Grant(starting, ttl)
	if err != nil {
		c.members.learn(err)
		return false, fmt.Errorf("%w: take a lease: %w", licensing.ErrUnavailable, err)
	}
	defer func() {
		// This removes all keys under the lease at once, also after ctx has ended. If etcd can't be reached, the lease
		// expires.
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = c.Native.Revoke(leaving, lease.ID)
	}()
	if _, err := c.KV.Put(starting, key, value, clientv3.WithLease(lease.ID)); err != nil {
		c.members.learn(err)
		return false, fmt.Errorf("%w: put a key under the lease: %w", licensing.ErrUnavailable, err)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	alive, err := c.Native.KeepAlive(working, lease.ID)
	if err != nil {
		return true, fmt.Errorf("%w: keep the lease: %w", licensing.ErrUnavailable, err)
	}
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	c.guard.StartIn(&keeping, name, func() {
		defer stop()
		for range alive {
		}
	})
	err = do(working, lease.ID)
	if err == nil && working.Err() != nil && ctx.Err() == nil {
		err = ErrLeaseLost
	}
	return true, err
}
