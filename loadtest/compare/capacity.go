package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"licet/loadtest/rig"
)

const (
	// targetDevices is how many devices one etcd is to have.
	targetDevices = 5_000_000
	// smallLicenses is how many licenses the small store has at most, which the full
	// store is compared with.
	smallLicenses = 50_000
	leastLicenses = 100
	gibibyte      = 1 << 30
	// stride is a prime larger than any list of licenses: steps of it around the list
	// come to every license once.
	stride = 7_368_787
)

// full is one etcd with one node, which capacity fills. Then capacity runs the tasks of an operator on it.
type full struct {
	*lab
	*bench
	filler *filler
	salt   uint64  // of the last measurement: no two bind the same devices
	extra  int     // devices that measurements have bound besides the filler's
	rate   float64 // at which latencies are measured, in the small store and in the full store

	smallCold, smallWarm float64 // rates in the small store
}

// capacity fills a store and measures what it takes: disk, memory, and the time of each
// task that an operator has with it.
func (l *lab) capacity(ctx context.Context, b *bench) {
	// The database with all history, its copy while it is defragmented, a backup, and
	// etcd's log, of which etcd keeps some whatever the size of the store.
	stopIf(checkDisk(l.setup.Dir, 2*gibibyte+1200*int64(l.cfg.Devices)))
	b.alone()
	f := &full{lab: l, bench: b,
		filler: &filler{node: b.node, apiKey: b.apiKey, each: l.cfg.PerLicense, list: &rig.Keys{}}}
	for _, part := range []struct {
		name string
		run  func(context.Context)
	}{
		{"fill", f.fill},
		{"restart with history", f.restartWithHistory},
		{"activate in the full store", func(ctx context.Context) { f.compareRates(ctx, "full store") }},
		{"compact", f.compact},
		{"defragment", f.defragment},
		{"restart", f.restart},
		{"verify", f.verify},
		{"back up", f.backUp},
	} {
		named(part.name, func() { part.run(ctx) })
	}
}

// checkDisk reports whether the disk of a directory has room for the whole run.
func checkDisk(dir string, need int64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("read how much room %s has: %w", dir, err)
	}
	return checkFree(dir, need, int64(fs.Bavail)*int64(fs.Bsize))
}

func checkFree(dir string, need, free int64) error {
	if free < need {
		return fmt.Errorf("%.1f GiB are needed in %s, and %.1f GiB are free: free some, or name another directory "+
			"with --dir", float64(need)/gibibyte, dir, float64(free)/gibibyte)
	}
	return nil
}

// small returns how many licenses the small store has.
func (f *full) small() int { return min(smallLicenses, f.cfg.fillLicenses()/10) }

// bound returns how many devices are bound.
func (f *full) bound() int { return f.filler.bound() + f.extra }

// share returns how much of the quota a database takes, in percent. A store with fewer
// devices than promised counts as a part of a store with all of them.
func (f *full) share(database int64) float64 {
	scale := max(1, targetDevices/float64(f.bound()))
	return 100 * scale * float64(database) / rig.EtcdQuota
}

// fill binds all devices, and measures activations while the store is small.
func (f *full) fill(ctx context.Context) {
	small, all, each := f.small(), f.cfg.fillLicenses(), f.cfg.PerLicense
	began := time.Now()
	count := f.progress.Long(all*each, "binding %d devices, %d to a license", all*each, each)
	f.filler.to(ctx, small, count)
	f.restartNode(ctx, "node: start before the small store")
	f.compareRates(ctx, "small store")
	count = f.progress.Long(all*each, "going on")
	const parts = 10
	last := 0
	var now fillPoint
	for part := 1; part <= parts; part++ {
		f.filler.to(ctx, max(small, all*part/parts), count)
		now = look(ctx, f.Etcd, f.node)
		now.Devices, now.Licenses, now.Seconds = f.bound(), f.filler.list.Count(), time.Since(began).Seconds()
		now.Rate = float64(f.filler.bound()-last) / f.filler.spent.Seconds()
		last, f.filler.spent = f.filler.bound(), 0
		f.report.growth = append(f.report.growth, now)
		f.progress.Say("%s", &now)
	}
	f.informDatabase("filled, with its history", now)
	f.report.inform("filling", "min", time.Since(began).Minutes())
	f.report.add("capacity", "database as it grew ÷ quota", f.share(now.Database))
	f.report.add("bytes", "with its history", float64(now.Database)/float64(f.bound()))
	if now.Devices < targetDevices {
		f.report.note("capacity",
			fmt.Sprintf("projected from %d devices: only a run with %d proves it", now.Devices, targetDevices))
	}
	if f.filler.retries > 0 {
		f.report.note("capacity", fmt.Sprintf("while filling, %d pieces were tried again", f.filler.retries))
	}
}

// compareRates measures activations on licenses from all over the store that the node
// has not seen for long. It measures latencies at the same rate in the small store and
// in the full store: more devices take more time only if the latencies show it.
func (f *full) compareRates(ctx context.Context, where string) {
	f.progress.Step("activations in the %s", where)
	f.salt += saltsOfProbe
	count := max(2*f.small()/5, 1)
	cold := f.probe(ctx, fillers, 0, f.salt, closed(ctx, count, 0))
	warm := f.probe(ctx, fillers, 0, f.salt+saltsOfProbe/2, closed(ctx, count, 0))
	if f.rate == 0 {
		f.rate, f.smallCold, f.smallWarm = cold.rate()/2, cold.rate(), warm.rate()
		f.report.inform("activations a second for the latencies", "/s", f.rate)
	} else {
		f.report.add("capacity", "small store ÷ full store, cold licenses", f.smallCold/cold.rate())
		f.report.add("capacity", "small store ÷ full store, warm licenses", f.smallWarm/warm.rate())
	}
	s := f.probe(ctx, openWorkers, count, f.salt, opened(ctx, f.rate, 2*f.cfg.Span))
	f.report.inform(where+": new devices, licenses cold", "/s", cold.rate())
	f.report.inform(where+": new devices, licenses warm", "/s", warm.rate())
	f.informLatencies(where, s)
}

// saltsOfProbe is how many salts one measurement has to itself.
const saltsOfProbe = 1000

// probe binds new devices to licenses from all over the store. Failures are noted: after
// an hour of filling they are no reason to stop.
func (f *full) probe(
	ctx context.Context, connections, from int, salt uint64, run func(driver) *outcome,
) *sample {
	s := f.activate(ctx, shape{workers: connections}, f.filler.list, scatter(f.filler.list.Count(), from, salt), run)
	f.extra += max(s.ok, len(s.latencies))
	f.checkSample("capacity", fmt.Sprintf("of %d activations failed", s.made), s)
	return s
}

// scatter returns the pattern for licenses from all over a list of n. Operation i takes the license at place from+i of
// the pattern. Each license comes once before a license comes again, then with another device.
func scatter(n, from int, salt uint64) func(int) (int, device) {
	return func(i int) (int, device) {
		at := from + i
		license := at * stride % n
		return license, device{salt: salt + uint64(at/n), number: uint64(license)}
	}
}

func (f *full) informLatencies(where string, s *sample) {
	f.report.inform(where+": p50 of an activation", "ms", milliseconds(s.waits(), 0.5))
	f.report.inform(where+": p99 of an activation", "ms", s.p99())
}

// informDatabase reports the size of the database and what etcd and the node use.
func (f *full) informDatabase(when string, p fillPoint) {
	f.report.inform(when+": devices bound", "", float64(f.bound()))
	f.report.inform(when+": database", "MiB", float64(p.Database)/mebibyte)
	f.report.inform(when+": database in use", "MiB", float64(p.InUse)/mebibyte)
	f.report.inform(when+": database, by bound device", "B", float64(p.Database)/float64(f.bound()))
	f.report.inform(when+": RSS of etcd", "MiB", float64(p.EtcdRSS)/mebibyte)
	f.report.inform(when+": RSS of etcd but for the mapped database", "MiB", float64(p.EtcdAnonymous)/mebibyte)
	f.report.inform(when+": RSS of the node", "MiB", float64(p.NodeRSS)/mebibyte)
}
