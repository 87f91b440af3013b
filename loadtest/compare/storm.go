package main

import (
	"context"
	"errors"
	"fmt"

	"licet/loadtest/rig"
)

const (
	stormDevices = 10_000
	stormSlots   = 5
	// calmShare is the rate of the other licenses, as a share of the highest rate.
	calmShare = 0.25
)

// storm binds thousands of devices to one license with a few slots within seconds, while
// other licenses get new devices as before.
func (r *round) storm(ctx context.Context) error {
	list, err := r.warmed(ctx, r.cfg.Licenses)
	if err != nil {
		return err
	}
	stormed, err := r.grant(ctx, 1, stormSlots)
	if err != nil {
		return err
	}
	f := binder(r.node.Address, r.cfg.Overload, stormed, onto(0))
	defer f.close()
	if err := f.open(); err != nil {
		return err
	}
	o, err := r.disturb(ctx, "storm", "", list, func() *outcome {
		return f.openLoop(ctx, arrivals{rate: stormDevices / r.cfg.Span.Seconds(), span: r.cfg.Span})
	})
	if err != nil {
		return err
	}
	r.report.note("storm", fmt.Sprintf("%s: %d bound; else: %s", r.name, o.ok, o.describe()))
	return nil
}

// disturb measures new devices of warm licenses, alone and then during a storm, and
// reports the difference. It returns the result of the storm.
func (r *round) disturb(
	ctx context.Context, row, check string, list *rig.Keys, storm func() *outcome,
) (*outcome, error) {
	before, err := r.others(ctx, list, 1)
	if err != nil {
		return nil, err
	}
	over := make(chan *outcome, 1)
	go func() { over <- storm() }()
	during, err := r.others(ctx, list, 2)
	o := <-over
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	r.checkSample(row, "others before", before)
	r.checkSample(row, "others meanwhile", during)
	p99 := func(s *sample) float64 { return percentile(s.waits(), 0.99).Seconds() }
	r.report.add(row, check, p99(during)/p99(before))
	r.report.inform(row+": p99 of other licenses before", "ms", 1000*p99(before))
	r.report.inform(row+": p99 of other licenses meanwhile", "ms", 1000*p99(during))
	return o, nil
}

// others binds the next device of warm licenses, at a modest rate.
func (r *round) others(ctx context.Context, list *rig.Keys, next uint64) (*sample, error) {
	return r.activate(ctx, shape{workers: openWorkers}, list, spread(list.Count(), next),
		opened(ctx, calmShare*r.warm.rate(), r.cfg.Span))
}
