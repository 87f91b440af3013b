package main

import (
	"context"

	"licet/loadtest/rig"
)

// pageLimit is how many devices a page has: the API's default.
const pageLimit = 100

// devices compares a license with very many devices to a license with some: how long one
// more device takes, and how long the first page takes. One client asks both in turns.
func (l *lab) devices(ctx context.Context, b *bench) {
	workers := max(l.best.hot.workers, warmers)
	large := b.grant(ctx, 1, unlimited)
	l.fill(ctx, b, large, l.cfg.Large, workers)
	l.eachRound("one more device", func(number int) {
		small := b.grant(ctx, 1, unlimited)
		must(bind(ctx, b.node, workers, small, l.cfg.Small, onto(0)))
		l.compareSizes(ctx, b, small, large, number)
	})
}

// fill binds devices to a license, some thousands at a time.
func (l *lab) fill(ctx context.Context, b *bench, list *rig.Keys, devices, workers int) {
	count := l.progress.Long(devices, "binding %d devices to one license", devices)
	const piece = 10_000
	for from := 0; from < devices; from += piece {
		must(bind(ctx, b.node, workers, list, min(piece, devices-from), onto(from)))
		count(from + piece)
	}
}

// compareSizes binds devices to both licenses in turns, then reads pages.
func (l *lab) compareSizes(ctx context.Context, b *bench, small, large *rig.Keys, number int) {
	client := newFleet([]string{b.node.Address}, 1, nil)
	defer client.close()
	stopIf(client.open())
	for _, of := range []struct {
		check, what  string
		small, large func(i int) []byte
	}{
		{
			"binding it", "binding a device",
			activations(small, onto(l.cfg.Small)),
			activations(large, onto(l.cfg.Large+number*l.cfg.IdleOps)),
		},
		{"page 1 of each", "a page", pages(b.apiKey, small), pages(b.apiKey, large)},
	} {
		one, other := alternate(ctx, client.worker(of.small), client.worker(of.large), l.cfg.IdleOps)
		named(of.what, func() { stopIf(both(one, other)) })
		l.report.add("devices", of.check, other.p50()/one.p50())
		l.report.inform("devices: p50 of "+of.what+" of the small license", "ms", one.p50())
		l.report.inform("devices: p50 of "+of.what+" of the large license", "ms", other.p50())
	}
}

// pages returns the requests for the first page of a license's devices.
func pages(apiKey string, list *rig.Keys) func(int) []byte {
	request := pageRequest(list.At(0), apiKey, pageLimit)
	return func(int) []byte { return request }
}

// members measures new devices on distinct licenses with an etcd of three members, all on
// the same cores.
func (l *lab) members(ctx context.Context, b *bench) {
	put := sweep{l, b}.puts(ctx)
	connections, _ := sweep{l, b}.binds(ctx)
	l.eachRound("three members", func(int) {
		list := b.warmed(ctx, l.cfg.Licenses)
		n := list.Count()
		before := b.put(ctx, put, closed(ctx, 0, l.cfg.Span/2))
		warm := b.activate(ctx, connections, list, spread(n, 1), closed(ctx, 2*n, 0))
		after := b.put(ctx, put, closed(ctx, 0, l.cfg.Span/2))
		l.checkSample("members", "warm", warm)
		base := (before.rate() + after.rate()) / 2
		l.report.add("members", "", warm.rate()/base)
		l.report.inform("members: single puts", "/s", base)
		l.inform("members", warm)
	})
}
