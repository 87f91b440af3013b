package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	grantSize    = 1000 // licenses that one request grants: the API's limit
	grantWorkers = 8
)

// grant has a node make licenses, over its API: what is stored is what the
// service stores.
func grant(ctx context.Context, n *node, apiKey string, count, maxDevices int, done func(int)) (*keys, error) {
	batches := (count + grantSize - 1) / grantSize
	texts := make([]keys, batches)
	errs := make([]error, grantWorkers)
	var next, granted atomic.Int64
	var group sync.WaitGroup
	for w := range grantWorkers {
		group.Go(func() {
			c := newConn(n.address)
			defer c.close()
			for ctx.Err() == nil && errs[w] == nil {
				i := int(next.Add(1) - 1)
				if i >= batches {
					return
				}
				size := min(grantSize, count-i*grantSize)
				errs[w] = grantBatch(c, apiKey, size, maxDevices, &texts[i])
				done(int(granted.Add(int64(size))))
			}
		})
	}
	group.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	all := &keys{}
	for i := range texts {
		for j := range texts[i].count() {
			if err := all.add(texts[i].at(j)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func grantBatch(c *conn, apiKey string, size, maxDevices int, into *keys) error {
	status, body, err := c.roundTrip(grantRequest(apiKey, size, maxDevices))
	if err != nil {
		return fmt.Errorf("grant licenses: %w", err)
	}
	if code := envelopeCode(status, body); code != 0 {
		return fmt.Errorf("grant licenses: status %d: %.300s", status, body)
	}
	const before = `"license_key":"`
	for range size {
		_, rest, found := bytes.Cut(body, []byte(before))
		key, rest, closed := bytes.Cut(rest, []byte(`"`))
		if !found || !closed {
			return fmt.Errorf("grant %d licenses: the answer has fewer", size)
		}
		if err := into.add(key); err != nil {
			return err
		}
		body = rest
	}
	return nil
}

// binder is a load of activations. pick says, for an operation's number, which
// license and which device.
func binder(address string, connections int, list *keys, pick func(i int) (license int, d device)) *fleet {
	return bindersAt([]string{address}, connections, list, pick)
}

// bindersAt is for several nodes.
func bindersAt(addresses []string, connections int, list *keys, pick func(i int) (license int, d device)) *fleet {
	request := newActivation(list.length)
	return newFleet(addresses, connections, func(i int) []byte {
		license, d := pick(i)
		return request.of(list.at(license), d)
	})
}

// bind binds devices as pick says and demands that every one succeeds.
func bind(ctx context.Context, n *node, connections int, list *keys, count int, pick func(i int) (int, device)) (*outcome, error) {
	f := binder(n.address, connections, list, pick)
	defer f.close()
	if err := f.open(); err != nil {
		return nil, err
	}
	o := f.closedLoop(ctx, count, 0)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.failures() > 0 {
		return nil, fmt.Errorf("of %d activations %d failed: %s", count, o.failures(), o.describe())
	}
	return o, nil
}

// client is one that activates, and waits for each answer.
func client(c *conn, list *keys, pick func(i int) (int, device)) worker {
	request := newActivation(list.length)
	return func(i int) int {
		license, d := pick(i)
		return c.code(request.of(list.at(license), d))
	}
}

// spread is the usual pattern: operation i goes to license i modulo n, each
// time around with that license's next device, beginning with from.
func spread(n int, from uint64) func(int) (int, device) {
	return func(i int) (int, device) {
		license := i % n
		return license, device{salt: from + uint64(i/n), number: uint64(license)}
	}
}

// onto is the pattern for one license: operation i binds device from+i.
func onto(from int) func(int) (int, device) {
	return func(i int) (int, device) { return 0, device{number: uint64(from + i)} }
}
