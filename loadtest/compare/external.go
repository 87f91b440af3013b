package main

import (
	"context"
	"fmt"

	"licet/client"
	"licet/loadtest/rig"
)

// external measures what an activation by an external key costs more than one by the license key of the same license.
func (l *lab) external(ctx context.Context, b *bench) {
	l.bindRounds(ctx, b, "external keys", l.externalRound)
}

func (l *lab) externalRound(ctx context.Context, b *bench, round int) {
	b.renewNode(ctx)
	n := l.cfg.Licenses
	own, others := b.grantExternal(ctx, n, round)
	must(bind(ctx, b.node, warmers, others, n, spread(n, 0)))
	l.compareBinds(ctx, b, "external", [2]bindSide{{"by license key", own}, {"by external key", others}})
}

// bindSide is one of two ways to activate the same licenses.
type bindSide struct {
	name string
	list *rig.Keys
}

// compareBinds adds to a row how much faster activations of warm licenses are in the first way than in the second: of
// new devices, and of bound devices. Before that, each license has its first device.
func (l *lab) compareBinds(ctx context.Context, b *bench, row string, sides [2]bindSide) {
	n := l.cfg.Licenses
	for _, load := range []struct {
		check string
		pick  func(turn int) func(int) (int, device)
		run   func(driver) *outcome
	}{
		{"of a new device", func(turn int) func(int) (int, device) { return spread(n, uint64(1+turn)) },
			closed(ctx, n, 0)},
		{"of a bound device", func(int) func(int) (int, device) { return bound(n, 1+4) },
			closed(ctx, 0, l.cfg.Span)},
	} {
		l.report.add(row, load.check,
			l.compareSides(ctx, b, row, row+", "+load.check, sides, load.pick, load.run))
	}
}

// compareSides returns how much faster activations are in the first way than in the second. Each way runs twice, the
// second time in the opposite order: a machine that becomes slower in the meantime becomes so for both ways alike.
func (l *lab) compareSides(
	ctx context.Context, b *bench, row, name string, sides [2]bindSide, pick func(turn int) func(int) (int, device),
	run func(driver) *outcome,
) float64 {
	var rates [2]float64
	for turn, at := range []int{0, 1, 1, 0} {
		s := b.activate(ctx, l.best.bind, sides[at].list, pick(turn), run)
		l.checkSample(row, sides[at].name, s)
		l.inform(name+", "+sides[at].name, s)
		rates[at] += s.rate()
	}
	return rates[0] / rates[1]
}

// bound is the pattern of random devices of n licenses with so many devices each.
func bound(n int, each uint64) func(int) (int, device) {
	return func(i int) (int, device) {
		chance := mix(uint64(i))
		license := chance >> 8 % uint64(n)
		return int(license), device{salt: chance % each, number: license}
	}
}

// grantExternal grants licenses with an external key. It returns their license keys, and their external keys in the
// same order.
func (b *bench) grantExternal(ctx context.Context, n, round int) (own, others *rig.Keys) {
	api := must(client.New("http://"+b.seeder.Address, b.apiKey))
	defer api.CloseIdleConnections()
	account := must(api.Account.Get(ctx))
	externalKey := func(i int) string { return fmt.Sprintf("OLD-%04d-%08d", round, i) }
	granted := make([]string, n)
	unbounded := unlimited
	stopIf(rig.Each(ctx, n, warmers, func(ctx context.Context, i int) error {
		made, err := api.Licenses.Grant(ctx, client.Grant{ProductID: "editor", Quantity: 1, MaxDevices: &unbounded,
			ExternalKey: externalKey(i)})
		if err != nil {
			return fmt.Errorf("grant a license with an external key: %w", err)
		}
		granted[i] = made[0].LicenseKey
		return nil
	}))
	own = &rig.Keys{}
	others = &rig.Keys{Beside: fmt.Sprintf(`,"account_id":%q,"mode":%q`, account.AccountID, account.Mode)}
	for i, key := range granted {
		stopIf(own.Add([]byte(key)))
		stopIf(others.Add([]byte(externalKey(i))))
	}
	return own, others
}
