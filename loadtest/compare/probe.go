package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

// stride is a prime larger than any list of licenses: steps of it around the
// list come to every license once.
const stride = 7_368_787

// probe is a supply of new devices for the licenses of a store, spread all
// over it, to measure activations with. Every license comes once before one
// comes again.
type probe struct {
	node *rig.Node
	list *rig.Keys
	n    int // only the first n licenses of the list
	// salt keeps its devices apart from all others. Each pass over the licenses
	// takes one salt more.
	salt uint64
	next int

	bound int      // devices in all
	notes []string // what failed
}

// pick continues the supply: operation i takes the i-th device from now on.
func (p *probe) pick() func(i int) (int, device) {
	from := p.next
	return func(i int) (int, device) {
		at := from + i
		license := at * stride % p.n
		return license, device{salt: p.salt + uint64(at/p.n), number: uint64(license)}
	}
}

// again is the licenses of pick, with other devices.
func (p *probe) again() func(i int) (int, device) {
	first := p.pick()
	return func(i int) (int, device) {
		license, d := first(i)
		d.salt += saltsOfProbe / 2
		return license, d
	}
}

const jobSpan = time.Minute

// saltsOfProbe is how many salts one probe has to itself.
const saltsOfProbe = 1000

// rates binds count devices to licenses that the node has not seen for long,
// and then as many to the same ones.
func (p *probe) rates(ctx context.Context, count int) (cold, warm *outcome, err error) {
	if cold, err = p.closedLoop(ctx, count, p.pick()); err != nil {
		return nil, nil, err
	}
	if warm, err = p.closedLoop(ctx, count, p.again()); err != nil {
		return nil, nil, err
	}
	p.next += count
	return cold, warm, nil
}

func (p *probe) closedLoop(ctx context.Context, count int, pick func(int) (int, device)) (*outcome, error) {
	return p.load(ctx, fillers, pick, func(f *fleet) *outcome {
		o := f.closedLoop(ctx, count, 0)
		p.bound += o.ok
		return o
	})
}

// latencies binds devices as they come at some rate, for a span, or while a
// job goes on if there is one: for the span at least, and for jobSpan at most,
// since the store is not to become another one over it.
func (p *probe) latencies(ctx context.Context, rate float64, span time.Duration, job func() error) (o *outcome, err error) {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	limit := span
	if job != nil {
		limit = max(span, jobSpan)
		go func() {
			began := time.Now()
			err := job()
			rest(ctx, span-time.Since(began))
			stop()
			done <- err
		}()
	} else {
		done <- nil
	}
	o, err = p.load(ctx, openWorkers, p.pick(), func(f *fleet) *outcome {
		o := f.openLoop(loading, arrivals{rate: rate, span: limit, keep: true})
		p.next += o.made
		p.bound += len(o.latencies)
		return o
	})
	if failed := <-done; failed != nil {
		return nil, failed
	}
	return o, err
}

// load runs a load. Some that fail are noted: after an hour of seeding they
// are no reason to stop.
func (p *probe) load(ctx context.Context, connections int, pick func(int) (int, device), run func(*fleet) *outcome) (*outcome, error) {
	f := binder(p.node.Address, connections, p.list, pick)
	defer f.close()
	if err := f.open(); err != nil {
		return nil, err
	}
	o := run(f)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.ok == 0 && len(o.latencies) == 0 {
		return nil, fmt.Errorf("nothing succeeded: %s", o.describe())
	}
	if text := o.describe(); text != "" {
		p.notes = append(p.notes, fmt.Sprintf("of %d activations failed %s", o.made, text))
	}
	return o, nil
}
