package main

import (
	"context"
	"errors"

	"licet/loadtest/rig"
)

// eventsOn compares new devices while an endpoint gets all events with those while
// nobody listens, on one store. What recording alone costs is shown besides: that is
// a node with --record-activations, and no endpoint.
func (l *lab) eventsOn(ctx context.Context) error {
	l.progress.Step("starting etcd and three nodes")
	b, err := l.bench(ctx, 1, usualRetention, webhookFlags()...)
	if err != nil {
		return err
	}
	defer b.stop()
	if err := b.deliversItself(ctx); err != nil {
		return err
	}
	if err := l.sweepDevices(ctx, b); err != nil {
		return err
	}
	for number := range l.cfg.Rounds {
		l.progress.Step("events on, round %d of %d", number+1, l.cfg.Rounds)
		if err := l.eventsRound(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) eventsRound(ctx context.Context, b *bench) error {
	if err := b.renewNode(ctx); err != nil {
		return err
	}
	recorder, err := b.licet.StartNode(ctx, b.etcd.Cluster, append(idle(), "--record-activations")...)
	if err != nil {
		return err
	}
	defer recorder.Kill()
	sums, err := inTurns(ctx,
		func(ctx context.Context) (*newDevices, error) { return l.bindNew(ctx, "events-on", b) },
		func(ctx context.Context) (*newDevices, error) { return l.bindNew(ctx, "events-on", b.with(recorder)) },
		func(ctx context.Context) (*newDevices, error) { return l.bindTold(ctx, b) },
	)
	if err != nil {
		return err
	}
	off, recorded, told := sums[0], sums[1], sums[2]
	l.compareDevices("events-on", "", told, off)
	l.compareDevices("events-on", "recording alone ÷ without", recorded, off)
	l.informDevices("no endpoint", off)
	l.informDevices("recording alone", recorded)
	l.informDevices("an endpoint gets all", told)
	return nil
}

// deliversItself has the measured node deliver, as the only node would: another one, which has
// nothing else to do, would take the same processors and heed none of the devices.
func (b *bench) deliversItself(ctx context.Context) (err error) {
	b.seeder.Kill()
	b.seeder, err = b.licet.StartNode(ctx, b.etcd.Cluster, idle()...)
	return err
}

// idle are the flags of nodes that leave the delivery to others.
func idle() []string { return append(webhookFlags(), "--webhook-delivery=false") }

// with is the same store, measured at another node.
func (b *bench) with(n *rig.Node) *bench {
	other := *b
	other.node = n
	return &other
}

// bindTold binds new devices while an endpoint gets all that is told of them.
func (l *lab) bindTold(ctx context.Context, b *bench) (*newDevices, error) {
	e, err := b.subscribe(ctx)
	if err != nil {
		return nil, err
	}
	d, err := l.bindNew(ctx, "events-on", b)
	if err == nil {
		// Where nothing comes there was nothing to compare with.
		err = e.await(ctx, 1)
	}
	l.report.inform("events-on: deliveries meanwhile", "", float64(e.events()))
	l.report.note("events-on", e.describe())
	return d, errors.Join(err, e.cancel(ctx))
}
