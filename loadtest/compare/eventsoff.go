package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"licet/loadtest/rig"
)

// beforeEvents is the last commit whose program knows nothing of events.
const beforeEvents = "1f34d11f1ee0a4edd93cd77a4efb57d0da0fd7c9"

// eventsOff compares new devices with what they were before there were events, while
// nobody listens.
func (l *lab) eventsOff(ctx context.Context) error {
	l.progress.Step("building licet as it was before events")
	old, err := l.before(ctx)
	if err != nil {
		return err
	}
	return l.againstProgram(ctx, "events-off", old, "before there were events", "nobody listens")
}

// againstProgram compares new devices with what they are of another program. Each of
// the two has a store of its own; they take turns.
func (l *lab) againstProgram(ctx context.Context, row string, other *rig.Licet, otherName, nowName string) error {
	before, err := l.benchOf(ctx, other, 1, usualRetention)
	if err != nil {
		return err
	}
	defer before.stop()
	now, err := l.bench(ctx, 1, usualRetention)
	if err != nil {
		return err
	}
	defer now.stop()
	if err := l.sweepDevices(ctx, now); err != nil {
		return err
	}
	for number := range l.cfg.Rounds {
		l.progress.Step("%s, round %d of %d", row, number+1, l.cfg.Rounds)
		for _, b := range []*bench{before, now} {
			if err := b.renewNode(ctx); err != nil {
				return err
			}
		}
		sums, err := inTurns(ctx,
			func(ctx context.Context) (*newDevices, error) { return l.bindNew(ctx, row, before) },
			func(ctx context.Context) (*newDevices, error) { return l.bindNew(ctx, row, now) },
		)
		if err != nil {
			return err
		}
		l.compareDevices(row, "", sums[1], sums[0])
		l.informDevices(otherName, sums[0])
		l.informDevices(nowName, sums[1])
	}
	return nil
}

// before is the program as it was: given, or built from a commit.
func (l *lab) before(ctx context.Context) (*rig.Licet, error) {
	dir := filepath.Join(l.dir, "before")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	setup := l.cfg.Setup
	if info, err := os.Stat(l.cfg.Before); err == nil && info.Mode().IsRegular() {
		setup.Binary = l.cfg.Before
	} else if setup.Binary, err = rig.BuildCommit(ctx, dir, l.cfg.Before, setup.BuildFlags); err != nil {
		return nil, fmt.Errorf("--before: %w", err)
	}
	return rig.BuildLicet(ctx, dir, &setup)
}

// newDevices are loads of them: on distinct licenses and on one.
type newDevices struct {
	distinct, hot []*sample
}

// bindNew binds second and third devices to distinct licenses, whose first ones the
// node has bound just before, and then devices to one license.
func (l *lab) bindNew(ctx context.Context, row string, b *bench) (*newDevices, error) {
	list, err := b.grant(ctx, l.cfg.Licenses, unlimited)
	if err != nil {
		return nil, err
	}
	n := list.Count()
	if _, err := bind(ctx, b.node, warmers, list, n, spread(n, 0)); err != nil {
		return nil, err
	}
	distinct, err := b.activate(ctx, l.best.bind, list, spread(n, 1), closed(ctx, 2*n, 0))
	if err != nil {
		return nil, err
	}
	one, err := b.grant(ctx, 1, unlimited)
	if err != nil {
		return nil, err
	}
	hot, err := b.activate(ctx, l.best.hot, one, onto(0), closed(ctx, 0, l.cfg.Span))
	if err != nil {
		return nil, err
	}
	l.checkSample(row, "distinct licenses", distinct)
	l.checkSample(row, "one license", hot)
	return &newDevices{[]*sample{distinct}, []*sample{hot}}, nil
}

// inTurns does each thing twice: one after the other, and then in the other order, so
// that what gets slower or faster meanwhile does so for all alike. It gives what came
// of each.
func inTurns(ctx context.Context, sides ...func(context.Context) (*newDevices, error)) ([]*newDevices, error) {
	sums := make([]*newDevices, len(sides))
	for i := range 2 * len(sides) {
		at := i
		if i >= len(sides) {
			at = 2*len(sides) - 1 - i
		}
		d, err := sides[at](ctx)
		if err != nil {
			return nil, err
		}
		if sums[at] == nil {
			sums[at] = &newDevices{}
		}
		sums[at].distinct = append(sums[at].distinct, d.distinct...)
		sums[at].hot = append(sums[at].hot, d.hot...)
	}
	return sums, nil
}

// meanRate is that of several loads.
func meanRate(samples []*sample) (mean float64) {
	for _, s := range samples {
		mean += s.rate() / float64(len(samples))
	}
	return mean
}

// compareDevices takes the ratios of a row, or with a name shows them only.
func (l *lab) compareDevices(row, name string, one, other *newDevices) {
	for _, load := range []struct {
		check      string
		one, other []*sample
	}{
		{"distinct licenses", one.distinct, other.distinct},
		{"one license", one.hot, other.hot},
	} {
		ratio := meanRate(load.one) / meanRate(load.other)
		if name == "" {
			l.report.add(row, load.check, ratio)
		} else {
			l.report.inform(name+": "+load.check, "", ratio)
		}
	}
}

// informDevices tells what new devices cost.
func (l *lab) informDevices(name string, d *newDevices) {
	for _, s := range d.distinct {
		l.inform(name+", distinct licenses", s)
	}
	for _, s := range d.hot {
		l.inform(name+", one license", s)
	}
}
