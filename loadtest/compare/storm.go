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
	// otherShare is the rate of the other licenses, as a share of the highest rate.
	otherShare = 0.25
)

// storm binds thousands of devices to one license with a few slots within seconds, while
// other licenses get new devices as before.
func (r *round) storm(ctx context.Context) {
	list := r.warmed(ctx, r.cfg.Licenses)
	stormed := r.grant(ctx, 1, stormSlots)
	f := binder(r.node.Address, r.cfg.Overload, stormed, onto(0))
	defer f.close()
	stopIf(f.open())
	o := r.disturb(ctx, "storm", "", list, func() *outcome {
		return f.openLoop(ctx, arrivals{rate: stormDevices / r.cfg.Span.Seconds(), span: r.cfg.Span})
	})
	r.report.note("storm", fmt.Sprintf("%s: %d bound; else: %s", r.name, o.ok, o.describe()))
}

// disturb measures new devices of warm licenses, alone and then during a storm, and
// reports the difference. It returns the result of the storm.
func (r *round) disturb(
	ctx context.Context, row, check string, list *rig.Keys, storm func() *outcome,
) *outcome {
	before := r.others(ctx, list, 1)
	over := make(chan *outcome, 1)
	go func() { over <- storm() }()
	var during *sample
	err := attempt(func() { during = r.others(ctx, list, 2) })
	o := <-over
	stopIf(errors.Join(err, ctx.Err()))
	r.checkSample(row, "others before", before)
	r.checkSample(row, "others meanwhile", during)
	r.report.add(row, check, during.p99()/before.p99())
	r.report.inform(row+": p99 of other licenses before", "ms", before.p99())
	r.report.inform(row+": p99 of other licenses meanwhile", "ms", during.p99())
	return o
}

// others binds the next device of warm licenses, at a modest rate.
func (r *round) others(ctx context.Context, list *rig.Keys, next uint64) *sample {
	return r.activate(ctx, shape{workers: openWorkers}, list, spread(list.Count(), next),
		opened(ctx, otherShare*r.warm.rate(), r.cfg.Span))
}
