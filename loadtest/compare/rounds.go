package main

import (
	"context"
	"fmt"

	"licet/loadtest/rig"
)

const (
	unlimited = 0 // as a license's max_devices
	warmers   = 128
	// openWorkers bounds the operations under way in an open loop at half rate: far more than
	// there ever are.
	openWorkers = 1024
	overloadBy  = 3
)

// rounds measures all rows that are compared with the baseline, on one store, in turns.
func (l *lab) rounds(ctx context.Context, b *bench) {
	named("sweep", func() { sweep{l, b}.all(ctx) })
	for number := range l.cfg.Rounds {
		b.renewNode(ctx)
		r := &round{lab: l, bench: b, name: fmt.Sprintf("round %d of %d", number+1, l.cfg.Rounds)}
		named(r.name, func() { r.run(ctx) })
	}
}

// round is one round. Baseline and node take turns within it, and each ratio is of two
// loads of the same round.
type round struct {
	*lab
	*bench
	name string

	list *rig.Keys // distinct licenses
	puts []*sample // the baseline, measured before and after the loads that are compared with it
	warm *sample

	pending []pending
}

func (r *round) run(ctx context.Context) {
	for _, part := range []struct {
		rows []string // empty: always
		name string
		run  func(context.Context)
	}{
		{nil, "single puts", r.put},
		{nil, "new devices on cold and on warm licenses", r.distinct},
		{[]string{"hot"}, "new devices on one license", r.hot},
		{[]string{"mixed"}, "bound and new devices on one license", r.mixed},
		{nil, "single puts", r.put},
		{nil, "", r.compareWithPuts},
		{[]string{"reactivate"}, "re-activations and gets", r.reactivate},
		{[]string{"idle"}, "one idle client", r.idle},
		{[]string{"p99"}, "latencies at half rate", r.halfRate},
		{[]string{"overload"}, "three times too much", r.overload},
		{[]string{"storm"}, "a storm on one license", r.storm},
		{[]string{"guessing"}, "a storm of guesses", r.guessing},
	} {
		if len(part.rows) > 0 && !r.cfg.wants(part.rows...) {
			continue
		}
		if part.name != "" {
			r.progress.Step("%s: %s", r.name, part.name)
		}
		named(part.name, func() { part.run(ctx) })
	}
}

func (r *round) put(ctx context.Context) {
	s := r.bench.put(ctx, r.best.put, closed(ctx, 0, r.cfg.Span))
	r.checkSample("distinct", "single puts", s)
	r.puts = append(r.puts, s)
	r.report.inform("etcd: single puts", "/s", s.rate())
}

// putRate returns the baseline of the round so far.
func (r *round) putRate() float64 {
	var sum float64
	for _, s := range r.puts {
		sum += s.rate()
	}
	return sum / float64(len(r.puts))
}

// distinct binds the first device of licenses that the node has never seen, then the
// second and the third, which the node now knows.
func (r *round) distinct(ctx context.Context) {
	r.list = r.grant(ctx, r.cfg.Licenses, unlimited)
	n := r.list.Count()
	cold := r.activate(ctx, r.best.bind, r.list, spread(n, 0), closed(ctx, n, 0))
	r.checkSample("cold", "cold", cold)
	r.warm = r.activate(ctx, r.best.bind, r.list, spread(n, 1), closed(ctx, 2*n, 0))
	r.checkSample("distinct", "warm", r.warm)
	r.keep("cold", cold)
	r.keep("distinct", r.warm)
}

// keep keeps a measurement until the second half of the baseline is measured.
func (r *round) keep(row string, s *sample) {
	r.pending = append(r.pending, pending{row, s})
}

func (r *round) hot(ctx context.Context) {
	one := r.grant(ctx, 1, unlimited)
	s := r.activate(ctx, r.best.hot, one, onto(0), closed(ctx, 0, r.cfg.Span))
	r.checkSample("hot", "hot", s)
	r.keep("hot", s)
}

// mixed is the pattern of bound devices with one new device in five.
func mixed(bound, from int) func(int) (int, device) {
	return func(i int) (int, device) {
		chance := mix(uint64(i))
		if chance%5 == 0 {
			return 0, device{number: uint64(from + i)}
		}
		return 0, device{number: chance >> 8 % uint64(bound)}
	}
}

func (r *round) mixed(ctx context.Context) {
	one := r.grant(ctx, 1, unlimited)
	must(bind(ctx, r.node, warmers, one, r.cfg.Spilled, onto(0)))
	s := r.activate(ctx, r.best.mix, one, mixed(r.cfg.Spilled, r.cfg.Spilled), closed(ctx, 0, r.cfg.Span))
	r.checkSample("mixed", "mixed", s)
	r.keep("mixed", s)
}

// pending is a measurement whose ratio waits for the baseline.
type pending struct {
	row string
	*sample
}

// compareWithPuts computes the ratios to the puts before and after.
func (r *round) compareWithPuts(context.Context) {
	for _, p := range r.pending {
		r.report.add(p.row, "", p.rate()/r.putRate())
		r.inform(p.row, p.sample)
	}
	var putCost float64
	for _, s := range r.puts {
		putCost += s.perOperation(s.etcd+s.own) / float64(len(r.puts))
		r.report.inform("single puts: CPU of etcd", "µs", s.perOperation(s.etcd))
		r.report.inform("single puts: CPU of the client", "µs", s.perOperation(s.own))
	}
	r.report.add("cpu", "", r.warm.perOperation(r.warm.node+r.warm.etcd)/putCost)
}

// inform reports the rate and the cost of a load on the node.
func (l *lab) inform(row string, s *sample) {
	l.report.inform(row+": operations", "/s", s.rate())
	l.report.inform(row+": CPU of the node", "µs", s.perOperation(s.node))
	l.report.inform(row+": CPU of etcd", "µs", s.perOperation(s.etcd))
	l.report.inform(row+": CPU of the load generator", "µs", s.perOperation(s.own))
	l.report.inform(row+": allocations of the node", "", s.allocations/float64(max(s.ok, 1)))
}

// repeat activates devices that were bound just before.
func (r *round) repeat(ctx context.Context) *sample {
	s := r.activate(ctx, r.best.renew, r.list, bound(r.list.Count(), 3), closed(ctx, 0, r.cfg.Span))
	r.checkSample("reactivate", "re-activations", s)
	return s
}

// reactivate measures repeat between two halves of gets.
func (r *round) reactivate(ctx context.Context) {
	get := func() *sample {
		return r.measure(ctx, r.base.gets(ctx, r.best.get), closed(ctx, 0, r.cfg.Span/2))
	}
	before := get()
	s := r.repeat(ctx)
	after := get()
	r.checkSample("reactivate", "gets", before)
	r.checkSample("reactivate", "gets", after)
	r.report.inform("etcd: single gets", "/s", (before.rate()+after.rate())/2)
	r.report.add("reactivate", "", s.rate()/((before.rate()+after.rate())/2))
	r.inform("reactivate", s)
}

// idle lets one client put and activate in turns, with nothing else going on.
func (r *round) idle(ctx context.Context) {
	list := r.warmed(ctx, (r.cfg.IdleOps+1)/2)
	puts := r.base.puts(ctx, shape{clients: 1, workers: 1})
	client := binder(r.node.Address, 1, list, spread(list.Count(), 1))
	defer client.close()
	stopIf(client.open())
	put, activation := alternate(ctx, puts[0], client.worker(client.build), r.cfg.IdleOps)
	r.base.wrote(put)
	stopIf(both(put, activation))
	r.report.add("idle", "", activation.p50()/put.p50())
	r.report.inform("idle: p50 of a put", "ms", put.p50())
	r.report.inform("idle: p50 of an activation", "ms", activation.p50())
}

// both returns an error unless both sides of a ratio succeeded.
func both(one, other *outcome) error {
	for _, o := range []*outcome{one, other} {
		if o.ok == 0 || o.failures() > 0 {
			return fmt.Errorf("%d succeeded, and failed: %s", o.ok, o.describe())
		}
	}
	return nil
}

// halfRate lets arrivals come at half the rate of each side.
func (r *round) halfRate(ctx context.Context) {
	list := r.warmed(ctx, r.cfg.Licenses)
	span := 2 * r.cfg.Span
	many := shape{clients: r.best.put.clients, workers: openWorkers}
	put := r.bench.put(ctx, many, opened(ctx, r.putRate()/2, span))
	activation := r.activate(ctx, many, list, spread(list.Count(), 1), opened(ctx, r.warm.rate()/2, span))
	r.checkSample("p99", "puts", put)
	r.checkSample("p99", "activations", activation)
	r.report.add("p99", "", activation.p99()/put.p99())
	r.report.inform("half rate: p99 of a put", "ms", put.p99())
	r.report.inform("half rate: p99 of an activation", "ms", activation.p99())
}

// overload lets arrivals come at three times the rate of the node.
func (r *round) overload(ctx context.Context) {
	list := r.warmed(ctx, r.cfg.Licenses)
	s := r.activate(ctx, shape{workers: r.cfg.Overload}, list, spread(list.Count(), 1),
		opened(ctx, overloadBy*r.warm.rate(), r.cfg.Span))
	r.report.add("overload", "goodput ÷ highest rate", s.rate()/r.warm.rate())
	r.report.add("overload", "p99 of what is served", milliseconds(s.latencies, 0.99))
	note := fmt.Sprintf("%s: of %d that came %d were served and %d shed", r.name,
		s.made+s.failed[codeUnsent], len(s.latencies), s.failed[codeOverloaded])
	if rest := s.describeBut(codeOverloaded); rest != "" {
		note += "; else: " + rest
	}
	r.report.note("overload", note)
	r.report.inform("overload: CPU of the load generator for each that came", "µs",
		float64(s.own.Microseconds())/float64(max(s.made, 1)))
}
