package main

import (
	"context"
	"fmt"

	"licet/loadtest/rig"
)

// pageLimit is how many devices a page has: the API's default.
const pageLimit = 100

// devices compares a license with very many devices to a license with some: how long one
// more device takes, and how long the first page takes. One client asks both in turns.
func (l *lab) devices(ctx context.Context, b *bench) error {
	workers := max(l.best.hot.workers, warmers)
	large, err := b.grant(ctx, 1, unlimited)
	if err != nil {
		return err
	}
	if err := l.fill(ctx, b, large, l.cfg.Large, workers); err != nil {
		return err
	}
	return l.eachRound("one more device", func(number int) error {
		small, err := b.grant(ctx, 1, unlimited)
		if err != nil {
			return err
		}
		if _, err := bind(ctx, b.node, workers, small, l.cfg.Small, onto(0)); err != nil {
			return err
		}
		return l.compareSizes(ctx, b, small, large, number)
	})
}

// fill binds devices to a license, some thousands at a time.
func (l *lab) fill(ctx context.Context, b *bench, list *rig.Keys, devices, workers int) error {
	count := l.progress.Long(devices, "binding %d devices to one license", devices)
	const piece = 10_000
	for from := 0; from < devices; from += piece {
		if _, err := bind(ctx, b.node, workers, list, min(piece, devices-from), onto(from)); err != nil {
			return err
		}
		count(from + piece)
	}
	return nil
}

// compareSizes binds devices to both licenses in turns, then reads pages.
func (l *lab) compareSizes(ctx context.Context, b *bench, small, large *rig.Keys, number int) error {
	c := newConn(b.node.Address)
	defer c.close()
	for _, of := range []struct {
		check, what  string
		small, large worker
	}{
		{
			"binding it", "binding a device",
			activator(c, small, onto(l.cfg.Small)),
			activator(c, large, onto(l.cfg.Large+number*l.cfg.IdleOps)),
		},
		{"page 1 of each", "a page", pager(c, b.apiKey, small), pager(c, b.apiKey, large)},
	} {
		one, other := alternate(ctx, of.small, of.large, l.cfg.IdleOps)
		if err := both(one, other); err != nil {
			return fmt.Errorf("%s: %w", of.what, err)
		}
		p50 := func(o *outcome) float64 { return percentile(o.latencies, 0.5).Seconds() }
		l.report.add("devices", of.check, p50(other)/p50(one))
		l.report.inform("devices: p50 of "+of.what+" of the small license", "ms", 1000*p50(one))
		l.report.inform("devices: p50 of "+of.what+" of the large license", "ms", 1000*p50(other))
	}
	return nil
}

// pager returns a worker that reads the first page of a license's devices.
func pager(c *conn, apiKey string, list *rig.Keys) worker {
	request := pageRequest(list.At(0), apiKey, pageLimit)
	return func(int) int { return c.code(request) }
}

// members measures new devices on distinct licenses with an etcd of three members, all on
// the same cores.
func (l *lab) members(ctx context.Context, b *bench) error {
	put, err := l.sweepPuts(ctx, b)
	if err != nil {
		return err
	}
	connections, _, err := l.sweepBinds(ctx, b)
	if err != nil {
		return err
	}
	return l.eachRound("three members", func(int) error {
		list, err := b.warmed(ctx, l.cfg.Licenses)
		if err != nil {
			return err
		}
		n := list.Count()
		before, err := b.put(ctx, put, closed(ctx, 0, l.cfg.Span/2))
		if err != nil {
			return err
		}
		warm, err := b.activate(ctx, connections, list, spread(n, 1), closed(ctx, 2*n, 0))
		if err != nil {
			return err
		}
		after, err := b.put(ctx, put, closed(ctx, 0, l.cfg.Span/2))
		if err != nil {
			return err
		}
		l.checkSample("members", "warm", warm)
		base := (before.rate() + after.rate()) / 2
		l.report.add("members", "", warm.rate()/base)
		l.report.inform("members: single puts", "/s", base)
		l.inform("members", warm)
		return nil
	})
}
