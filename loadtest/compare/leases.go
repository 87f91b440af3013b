package main

import (
	"context"
	"fmt"

	"licet/client"
	"licet/loadtest/rig"
)

// leases measures what a renewal of a lease costs more than a new lease. Renewals ask for ever longer leases, so that
// each is stored although the one before was a moment ago.
func (l *lab) leases(ctx context.Context, b *bench) error {
	return l.bindRounds(ctx, b, "leases", l.leasesRound)
}

// mostLeases is how many devices a floating license may have.
const mostLeases = 10_000

// leaseLengths are the lengths that the loads of a round ask for, in seconds: each is longer than the one before by
// more than an eighth. The first is the product's.
var leaseLengths = []int{600, 1200, 2400}

// leasesRound gives leases to new devices of some licenses, and renews them; then it does so with other licenses, which
// get their leases last.
func (l *lab) leasesRound(ctx context.Context, b *bench, _ int) error {
	if err := b.renewNode(ctx); err != nil {
		return err
	}
	devices := 5 * l.cfg.Licenses
	licenses := (devices + mostLeases - 1) / mostLeases
	one, err := b.grantFloating(ctx, licenses)
	if err != nil {
		return err
	}
	other, err := b.grantFloating(ctx, licenses)
	if err != nil {
		return err
	}
	var fresh, renewed float64
	for _, load := range []struct {
		list  *rig.Keys
		asked int
		rate  *float64
	}{{one, leaseLengths[0], &fresh}, {one, leaseLengths[1], &renewed}, {one, leaseLengths[2], &renewed},
		{other, leaseLengths[0], &fresh}} {
		list := *load.list
		list.Beside = fmt.Sprintf(`,"lease_seconds":%d`, load.asked)
		s, err := b.activate(ctx, l.best.bind, &list, spread(licenses, 0), closed(ctx, devices, 0))
		if err != nil {
			return err
		}
		what := fmt.Sprintf("leases of %d seconds", load.asked)
		l.checkSample("leases", what, s)
		l.inform(what, s)
		*load.rate += s.rate()
	}
	l.report.add("leases", "that is stored", fresh/renewed)
	again := *one
	again.Beside = fmt.Sprintf(`,"lease_seconds":%d`, leaseLengths[len(leaseLengths)-1])
	s, err := b.activate(ctx, l.best.bind, &again, spread(licenses, 0), closed(ctx, devices, 0))
	if err != nil {
		return err
	}
	l.checkSample("leases", "renewals that store nothing", s)
	l.inform("renewals that store nothing", s)
	l.report.add("leases", "that stores nothing", fresh/2/s.rate())
	return nil
}

// grantFloating grants licenses whose devices take leases.
func (b *bench) grantFloating(ctx context.Context, count int) (*rig.Keys, error) {
	api, err := client.New("http://"+b.seeder.Address, b.apiKey)
	if err != nil {
		return nil, err
	}
	defer api.CloseIdleConnections()
	most := mostLeases
	if _, err := api.PutProduct(ctx, "floating", client.ProductTerms{MaxDevices: &most, DeviceMode: "leased",
		LeaseSeconds: leaseLengths[0], MaxLeaseSeconds: leaseLengths[len(leaseLengths)-1]}); err != nil {
		return nil, fmt.Errorf("put a product with leases: %w", err)
	}
	granted, err := api.GrantLicenses(ctx, client.Grant{ProductID: "floating", Quantity: count})
	if err != nil {
		return nil, fmt.Errorf("grant floating licenses: %w", err)
	}
	list := &rig.Keys{}
	for i := range granted {
		if err := list.Add([]byte(granted[i].LicenseKey)); err != nil {
			return nil, err
		}
	}
	return list, nil
}
