package main

import (
	"context"
	"fmt"

	"licet/client"
	"licet/loadtest/rig"
)

// leases measures what a renewal of a lease costs more than a new lease. Renewals ask for ever longer leases, so that
// each is stored although the one before was a moment ago.
func (l *lab) leases(ctx context.Context, b *bench) {
	l.bindRounds(ctx, b, "leases", l.leasesRound)
}

// mostLeases is how many devices a floating license may have.
const mostLeases = 10_000

// leaseLengths are the lengths that the loads of a round ask for, in seconds: each is longer than the one before by
// more than an eighth. The first is the product's.
var leaseLengths = []int{600, 1200, 2400}

// leasesRound gives leases to new devices of some licenses, and renews them; then it does so with other licenses, which
// get their leases last.
func (l *lab) leasesRound(ctx context.Context, b *bench, _ int) {
	b.renewNode(ctx)
	devices := 5 * l.cfg.Licenses
	licenses := (devices + mostLeases - 1) / mostLeases
	one := b.grantFloating(ctx, licenses)
	other := b.grantFloating(ctx, licenses)
	b.awaitLeases(ctx, string(one.At(0)))
	lease := func(what string, keys *rig.Keys, seconds int) float64 {
		list := *keys
		list.Beside = fmt.Sprintf(`,"lease_seconds":%d`, seconds)
		s := b.activate(ctx, l.best.bind, &list, spread(licenses, 0), closed(ctx, devices, 0))
		l.checkSample("leases", what, s)
		l.inform(what, s)
		return s.rate()
	}
	what := func(seconds int) string { return fmt.Sprintf("leases of %d seconds", seconds) }
	first, second, third := leaseLengths[0], leaseLengths[1], leaseLengths[2]
	fresh := lease(what(first), one, first)
	renewed := lease(what(second), one, second) + lease(what(third), one, third)
	fresh += lease(what(first), other, first)
	l.report.add("leases", "that is stored", fresh/renewed)
	l.report.add("leases", "that stores nothing", fresh/2/lease("renewals that store nothing", one, third))
}

// grantFloating grants licenses whose devices take leases.
func (b *bench) grantFloating(ctx context.Context, count int) *rig.Keys {
	api := must(client.New("http://"+b.seeder.Address, b.apiKey))
	defer api.CloseIdleConnections()
	most := mostLeases
	must(api.Products.Put(ctx, "floating", client.ProductTerms{MaxDevices: &most, DeviceMode: "leased",
		LeaseSeconds: leaseLengths[0], MaxLeaseSeconds: leaseLengths[len(leaseLengths)-1]}))
	return must(rig.Grant(ctx, "http://"+b.seeder.Address, b.apiKey, "floating", count, mostLeases, func(int) {}))
}

// awaitLeases waits until the measured node gives leases: beside the registration of the node before, which was killed,
// that takes up to six seconds. It leaves the license without a lease.
func (b *bench) awaitLeases(ctx context.Context, licenseKey string) {
	api := b.api()
	defer api.CloseIdleConnections()
	must(api.Activate(ctx, client.Activation{LicenseKey: licenseKey, DeviceID: "first"}))
	must(api.Deactivate(ctx, client.Deactivation{LicenseKey: licenseKey, DeviceID: "first"}))
}
