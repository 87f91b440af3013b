package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

const (
	// eventsEach is how many events each license of the filler has: issued, activated,
	// and one for each device.
	eventsEach = 2 + devicesEach
	// meanwhileRate is how many devices a second are bound while deliveries are counted.
	// Each of them adds an event.
	meanwhileRate = 500
)

// backlog records events while an endpoint is disabled. Then a node that has just
// started delivers all of them. It measures how fast it delivers while devices are
// bound, and how much memory it uses.
func (l *lab) backlog(ctx context.Context, b *bench) {
	b.alone()
	e := b.subscribe(ctx)
	defer e.stop()
	e.enable(ctx, false)
	licenses := max(1, l.cfg.Backlog/eventsEach)
	events := licenses * eventsEach
	count := l.progress.Long(licenses*devicesEach, "recording %d events", events)
	f := &filler{node: b.node, apiKey: b.apiKey, each: devicesEach, list: &rig.Keys{}}
	f.to(ctx, licenses, count)
	b.renewNode(ctx)
	b.seeder = b.node
	if events != fullSettings().Backlog {
		l.report.note("backlog", fmt.Sprintf("%d events, not %d", events, fullSettings().Backlog))
	}
	l.drain(ctx, b, e, f.list, events)
}

// drain enables the endpoint and waits until all events have come.
func (l *lab) drain(ctx context.Context, b *bench, e *endpoint, list *rig.Keys, events int) {
	e.api = b.api()
	idle := must(rig.MemoryOf(b.node.PID()))
	count := l.progress.Long(events, "delivering them")
	began := time.Now()
	e.enable(ctx, true)
	events += l.deliverMeanwhile(ctx, b, e, list)
	shown, stop := context.WithCancel(ctx)
	go func() {
		for shown.Err() == nil {
			count(min(events, e.events()))
			rig.Rest(shown, 200*time.Millisecond)
		}
	}()
	err := e.await(ctx, events)
	stop()
	took := time.Since(began)
	stopIf(ctx.Err())
	if err != nil {
		l.report.note("backlog", err.Error())
	}
	memory := must(rig.MemoryOf(b.node.PID()))
	l.report.add("backlog", "RSS of the node at its peak", float64(memory.Peak)/mebibyte)
	l.report.add("backlog", "events that never came", float64(events-min(events, e.events())))
	l.report.inform("backlog: RSS of the node before", "MiB", float64(idle.Resident)/mebibyte)
	l.report.inform("backlog: RSS of the node at the end", "MiB", float64(memory.Resident)/mebibyte)
	l.report.inform("backlog: deliveries", "/s", float64(e.events())/took.Seconds())
	l.report.inform("backlog: from enabling it to the last delivery", "s", took.Seconds())
	l.report.note("backlog", e.describe())
}

// deliverMeanwhile counts deliveries while devices are bound, once for each round. It
// returns how many devices it has bound.
func (l *lab) deliverMeanwhile(ctx context.Context, b *bench, e *endpoint, list *rig.Keys) (bound int) {
	stopIf(e.await(ctx, 1))
	for number := range l.cfg.Rounds {
		before, began := e.events(), time.Now()
		s := b.activate(ctx, shape{workers: openWorkers}, list,
			spread(list.Count(), uint64(devicesEach*(number+1))), opened(ctx, meanwhileRate, 2*l.cfg.Span))
		bound += s.made
		rate := float64(e.events()-before) / time.Since(began).Seconds()
		l.report.add("deliveries", "", rate)
		l.report.inform("deliveries: new devices meanwhile", "/s", s.rate())
		l.report.inform("deliveries: p99 of a new device meanwhile", "ms", s.p99())
		l.report.inform("deliveries: CPU of the node, with the new devices, for each", "µs",
			float64(s.node.Microseconds())/max(1, rate*s.elapsed.Seconds()))
		l.checkSample("deliveries", "new devices", s)
	}
	if e.events() >= list.Count()*eventsEach {
		l.report.note("deliveries",
			"all waiting events were delivered before the measurement was over: the rate is too low")
	}
	return bound
}
