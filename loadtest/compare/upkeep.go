package main

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/loadtest/rig"
)

// restartTimeout is how long a member may take to end, and to come back: it
// reads its whole store.
const restartTimeout = 15 * time.Minute

// databaseSize is how large the first member's database is: the file, which is
// what the quota counts, and how much of it holds something.
func (c *cluster) databaseSize(ctx context.Context) (file, inUse int64, err error) {
	status, err := c.Admin.Status(ctx, c.Endpoints[0])
	if err != nil {
		return 0, 0, fmt.Errorf("ask etcd for its size: %w", err)
	}
	return status.DbSize, status.DbSizeInUse, nil
}

// compact drops all history, and returns once that is gone from the database.
func (c *cluster) compact(ctx context.Context) error {
	status, err := c.Admin.Status(ctx, c.Endpoints[0])
	if err != nil {
		return fmt.Errorf("ask etcd for its revision: %w", err)
	}
	if _, err := c.Admin.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// defragment gives back what space is free in the database files.
func (c *cluster) defragment(ctx context.Context) error {
	for _, endpoint := range c.Endpoints {
		if _, err := c.Admin.Defragment(ctx, endpoint); err != nil {
			return fmt.Errorf("defragment etcd: %w", err)
		}
	}
	return nil
}

// restart ends the only member, by SIGTERM or else by SIGKILL, and starts it
// again. It gives how long the member took to end, and then from its start
// until it had served a linearizable read.
func (c *cluster) restart(ctx context.Context, softly bool) (down, up time.Duration, err error) {
	began := time.Now()
	if softly {
		if err := c.Members[0].End(restartTimeout); err != nil {
			return 0, 0, err
		}
	} else {
		c.Members[0].Kill()
	}
	down = time.Since(began)
	began = time.Now()
	if err := c.StartMember(ctx, 0, restartTimeout); err != nil {
		return 0, 0, err
	}
	err = c.read(ctx)
	return down, time.Since(began), err
}

// read makes a linearizable read over a new connection: one from before the
// member was gone would wait before it tries again.
func (c *cluster) read(ctx context.Context) error {
	client, err := rig.NewEtcdClient(c.Endpoints)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	for {
		_, err := client.Get(ctx, "/")
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("read from etcd after its restart: %w", err)
		}
		rest(ctx, time.Millisecond)
	}
}
