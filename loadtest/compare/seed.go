package main

import (
	"context"
	"fmt"

	"licet/loadtest/rig"
)

// grant grants licenses through a node.
func grant(ctx context.Context, n *rig.Node, apiKey string, count, maxDevices int) (*rig.Keys, error) {
	return rig.Grant(ctx, "http://"+n.Address, apiKey, "editor", count, maxDevices, func(int) {})
}

// binder returns a load of activations. pick returns the license and the device of an operation.
func binder(address string, connections int, list *rig.Keys, pick func(i int) (license int, d device)) *fleet {
	return bindersAt([]string{address}, connections, list, pick)
}

// bindersAt returns a load of activations on several nodes.
func bindersAt(addresses []string, connections int, list *rig.Keys, pick func(i int) (license int, d device)) *fleet {
	return newFleet(addresses, connections, activations(list, pick))
}

// bind binds devices as pick says. Every activation must succeed.
func bind(
	ctx context.Context, n *rig.Node, connections int, list *rig.Keys, count int, pick func(i int) (int, device),
) (*outcome, error) {
	f := binder(n.Address, connections, list, pick)
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

// activations returns the requests of a load.
func activations(list *rig.Keys, pick func(i int) (int, device)) func(i int) []byte {
	request := newActivation(list)
	return func(i int) []byte {
		license, d := pick(i)
		return request.of(list.At(license), d)
	}
}

// spread is the usual pattern: operation i goes to license i modulo n, each time around
// with that license's next device, beginning with from.
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
