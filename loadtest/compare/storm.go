package main

import (
	"context"
	"errors"
	"fmt"
)

const (
	stormDevices = 10_000
	stormSlots   = 5
	// calmShare is how much of the highest rate other licenses ask for.
	calmShare = 0.25
)

// storm lets thousands of devices come to one license with a few slots, within
// seconds, while other licenses get what they always get.
func (r *round) storm(ctx context.Context) error {
	list, err := r.warmed(ctx, r.cfg.Licenses)
	if err != nil {
		return err
	}
	stormed, err := r.grant(ctx, 1, stormSlots)
	if err != nil {
		return err
	}
	n := list.Count()
	others := func(from uint64) (*sample, error) {
		return r.activate(ctx, shape{workers: openWorkers}, list, spread(n, from), opened(ctx, calmShare*r.warm.rate(), r.cfg.Span))
	}
	calm, err := others(1)
	if err != nil {
		return err
	}

	f := binder(r.node.Address, r.cfg.Overload, stormed, onto(0))
	defer f.close()
	if err := f.open(); err != nil {
		return err
	}
	over := make(chan *outcome, 1)
	go func() {
		over <- f.openLoop(ctx, arrivals{rate: stormDevices / r.cfg.Span.Seconds(), span: r.cfg.Span})
	}()
	rough, err := others(2)
	o := <-over
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	r.checkSample("storm", "others before", calm)
	r.checkSample("storm", "others meanwhile", rough)
	p99 := func(s *sample) float64 { return percentile(s.waits(), 0.99).Seconds() }
	r.report.add("storm", "", p99(rough)/p99(calm))
	r.report.inform("storm: p99 of other licenses before", "ms", 1000*p99(calm))
	r.report.inform("storm: p99 of other licenses meanwhile", "ms", 1000*p99(rough))
	r.report.note("storm", fmt.Sprintf("%s: %d bound; else: %s", r.name, o.ok, o.describe()))
	return nil
}
