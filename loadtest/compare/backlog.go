package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

// eventsEach is how many events a license of the filler has: that it was issued and
// activated, and a device each.
const eventsEach = 2 + devicesEach

func newList() *rig.Keys { return &rig.Keys{} }

// backlog records events while an endpoint is disabled. Then it is enabled, and a node
// that has just started delivers them all; what that holds in memory is read
// meanwhile.
func (l *lab) backlog(ctx context.Context) error {
	l.progress.Step("starting etcd and a node")
	b, err := l.bench(ctx, 1, usualRetention, append(webhookFlags(), "--record-activations")...)
	if err != nil {
		return err
	}
	defer b.stop()
	b.alone()
	e, err := b.subscribe(ctx)
	if err != nil {
		return err
	}
	defer e.stop()
	if err := e.enable(ctx, false); err != nil {
		return err
	}
	licenses := max(1, l.cfg.Backlog/eventsEach)
	events := licenses * eventsEach
	count := l.progress.Long(licenses*devicesEach, "recording %d events", events)
	f := &filler{node: b.node, apiKey: b.apiKey, each: devicesEach, list: newList()}
	if err := f.to(ctx, licenses, count); err != nil {
		return err
	}
	if err := b.restartAlone(ctx); err != nil {
		return err
	}
	return l.drain(ctx, b, e, events)
}

// restartAlone puts a node that remembers nothing in the place of the only one.
func (b *bench) restartAlone(ctx context.Context) error {
	if err := b.renewNode(ctx); err != nil {
		return err
	}
	b.seeder = b.node
	return nil
}

// drain enables the endpoint and waits until all that was recorded has come.
func (l *lab) drain(ctx context.Context, b *bench, e *endpoint, events int) error {
	api, err := b.api()
	if err != nil {
		return err
	}
	e.api = api
	idle, err := rig.ResidentMemory(b.node.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := e.enable(ctx, true); err != nil {
		return err
	}
	count := l.progress.Long(events, "delivering them")
	shown, stop := context.WithCancel(ctx)
	go func() {
		for shown.Err() == nil {
			count(e.events())
			rest(shown, 200*time.Millisecond)
		}
	}()
	err = e.await(ctx, events)
	stop()
	took := time.Since(began)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		l.report.note("backlog", err.Error())
	}
	resident, err := rig.ResidentMemory(b.node.PID())
	peak, failed := rig.MemoryOf(b.node.PID(), "VmHWM")
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	l.report.add("backlog", "RSS of the node at its peak", float64(peak)/mebibyte)
	l.report.add("backlog", "events that never came", float64(events-min(events, e.events())))
	l.report.inform("backlog: RSS of the node before", "MiB", float64(idle)/mebibyte)
	l.report.inform("backlog: RSS of the node at the end", "MiB", float64(resident)/mebibyte)
	l.report.inform("backlog: deliveries", "/s", float64(e.events())/took.Seconds())
	l.report.inform("backlog: from enabling it to the last delivery", "s", took.Seconds())
	if events != fullSettings().Backlog {
		l.report.note("backlog", fmt.Sprintf("%d events, not %d", events, fullSettings().Backlog))
	}
	l.report.note("backlog", e.describe())
	return nil
}
