package main

import (
	"context"
	"errors"

	"licet/loadtest/rig"
)

// eventsOn measures new devices while an endpoint gets all events, and while there is
// no endpoint, on one store. What recording alone costs, the row accounts shows for information.
func (l *lab) eventsOn(ctx context.Context, b *bench) (err error) {
	// The measured node delivers, as the only node of a service would. The idle seeder
	// would take the same processors without noticing that the measured node is busy.
	if err := b.renew(ctx, &b.seeder, withoutDelivery()...); err != nil {
		return err
	}
	if err := l.sweepDevices(ctx, b); err != nil {
		return err
	}
	return l.eachRound("events on", func(int) error { return l.eventsRound(ctx, b) })
}

// withoutDelivery returns the flags of nodes that leave delivering to other nodes.
func withoutDelivery() []string { return append(webhookFlags(), "--webhook-delivery=false") }

func (l *lab) eventsRound(ctx context.Context, b *bench) error {
	if err := b.renewNode(ctx); err != nil {
		return err
	}
	sides := []struct {
		name          string
		run           func(context.Context, *bench) (distinct, hot *sample, err error)
		distinct, hot float64 // sums of the rates
	}{{name: "no endpoint", run: l.bindNew}, {name: "an endpoint gets all", run: l.bindDelivered}}
	// Each side runs twice, the second time in the opposite order: a machine that
	// becomes slower in the meantime becomes so for both sides alike.
	for _, at := range []int{0, 1, 1, 0} {
		side := &sides[at]
		distinct, hot, err := side.run(ctx, b)
		if err != nil {
			return err
		}
		l.inform(side.name+", distinct licenses", distinct)
		l.inform(side.name+", one license", hot)
		side.distinct += distinct.rate()
		side.hot += hot.rate()
	}
	off, delivered := &sides[0], &sides[1]
	l.report.add("events-on", "distinct licenses", delivered.distinct/off.distinct)
	l.report.add("events-on", "one license", delivered.hot/off.hot)
	return nil
}

// bindNew binds second and third devices to distinct licenses, whose first device the
// node has just bound, and then devices to one license.
func (l *lab) bindNew(ctx context.Context, b *bench) (distinct, hot *sample, err error) {
	list, err := b.warmed(ctx, l.cfg.Licenses)
	if err != nil {
		return nil, nil, err
	}
	n := list.Count()
	if distinct, err = b.activate(ctx, l.best.bind, list, spread(n, 1), closed(ctx, 2*n, 0)); err != nil {
		return nil, nil, err
	}
	l.checkSample("events-on", "distinct licenses", distinct)
	one, err := b.grant(ctx, 1, unlimited)
	if err != nil {
		return nil, nil, err
	}
	if hot, err = b.activate(ctx, l.best.hot, one, onto(0), closed(ctx, 0, l.cfg.Span)); err != nil {
		return nil, nil, err
	}
	l.checkSample("events-on", "one license", hot)
	return distinct, hot, nil
}

// bindDelivered binds new devices while an endpoint gets all of their events.
func (l *lab) bindDelivered(ctx context.Context, b *bench) (distinct, hot *sample, err error) {
	e, err := b.subscribe(ctx)
	if err != nil {
		return nil, nil, err
	}
	distinct, hot, err = l.bindNew(ctx, b)
	if err == nil {
		err = e.await(ctx, 1) // without a delivery there is nothing to compare
	}
	l.report.inform("events-on: deliveries meanwhile", "", float64(e.events()))
	l.report.note("events-on", e.describe())
	return distinct, hot, errors.Join(err, e.cancel(ctx))
}

// warmed grants licenses and binds the first device of each on the measured node.
func (b *bench) warmed(ctx context.Context, count int) (*rig.Keys, error) {
	list, err := b.grant(ctx, count, unlimited)
	if err != nil {
		return nil, err
	}
	_, err = bind(ctx, b.node, warmers, list, count, spread(count, 0))
	return list, err
}
