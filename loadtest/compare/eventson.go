package main

import (
	"context"

	"licet/loadtest/rig"
)

// eventsOn measures new devices while an endpoint gets all events, and while there is
// no endpoint, on one store. What recording alone costs, the row accounts shows for information.
func (l *lab) eventsOn(ctx context.Context, b *bench) {
	// The measured node delivers, as the only node of a service would. The idle seeder
	// would take the same processors without noticing that the measured node is busy.
	b.renew(ctx, &b.seeder, withoutDelivery()...)
	sweep{l, b}.devicesOnce(ctx)
	l.eachRound("events on", func(int) { l.eventsRound(ctx, b) })
}

// withoutDelivery returns the flags of nodes that leave delivering to other nodes.
func withoutDelivery() []string { return append(webhookFlags(), "--webhook-delivery=false") }

func (l *lab) eventsRound(ctx context.Context, b *bench) {
	b.renewNode(ctx)
	sides := []struct {
		name          string
		run           func(context.Context, *bench) (distinct, hot *sample)
		distinct, hot float64 // sums of the rates
	}{{name: "no endpoint", run: l.bindNew}, {name: "an endpoint gets all", run: l.bindDelivered}}
	// Each side runs twice, as in compareSides.
	for _, at := range []int{0, 1, 1, 0} {
		side := &sides[at]
		distinct, hot := side.run(ctx, b)
		l.inform(side.name+", distinct licenses", distinct)
		l.inform(side.name+", one license", hot)
		side.distinct += distinct.rate()
		side.hot += hot.rate()
	}
	off, delivered := &sides[0], &sides[1]
	l.report.add("events-on", "distinct licenses", delivered.distinct/off.distinct)
	l.report.add("events-on", "one license", delivered.hot/off.hot)
}

// bindNew binds second and third devices to distinct licenses, whose first device the
// node has just bound, and then devices to one license.
func (l *lab) bindNew(ctx context.Context, b *bench) (distinct, hot *sample) {
	list := b.warmed(ctx, l.cfg.Licenses)
	n := list.Count()
	distinct = b.activate(ctx, l.best.bind, list, spread(n, 1), closed(ctx, 2*n, 0))
	l.checkSample("events-on", "distinct licenses", distinct)
	one := b.grant(ctx, 1, unlimited)
	hot = b.activate(ctx, l.best.hot, one, onto(0), closed(ctx, 0, l.cfg.Span))
	l.checkSample("events-on", "one license", hot)
	return distinct, hot
}

// bindDelivered binds new devices while an endpoint gets all of their events.
func (l *lab) bindDelivered(ctx context.Context, b *bench) (distinct, hot *sample) {
	e := b.subscribe(ctx)
	defer e.stop()
	distinct, hot = l.bindNew(ctx, b)
	stopIf(e.await(ctx, 1)) // without a delivery there is nothing to compare
	l.report.inform("events-on: deliveries meanwhile", "", float64(e.events()))
	l.report.note("events-on", e.describe())
	e.cancel(ctx)
	return distinct, hot
}

// warmed grants licenses and binds the first device of each on the measured node.
func (b *bench) warmed(ctx context.Context, count int) *rig.Keys {
	list := b.grant(ctx, count, unlimited)
	must(bind(ctx, b.node, warmers, list, count, spread(count, 0)))
	return list
}
