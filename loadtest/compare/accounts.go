package main

import (
	"context"
	"fmt"

	"licet/client"
	"licet/loadtest/rig"
)

const (
	keyMakers = 4 // processes at the same time that create API keys
	granters  = 8 // accounts at the same time that are granted licenses or create endpoints
)

// accountGroup is many accounts with an API key each.
type accountGroup struct {
	*bench
	keys []string
}

// accounts measures new devices on licenses of many accounts, and on as many licenses of one account. Then it measures
// the same while each of these accounts has an endpoint that wants all events. No node delivers, since deliveries take
// the cores that are measured: a load with endpoints measures what recording costs.
func (l *lab) accounts(ctx context.Context, b *bench) {
	l.progress.Step("creating %d accounts", l.cfg.Accounts)
	c := &accountGroup{bench: b, keys: make([]string, l.cfg.Accounts)}
	stopIf(rig.Each(ctx, len(c.keys), keyMakers, func(ctx context.Context, i int) (err error) {
		c.keys[i], err = b.Licet.CreateKey(ctx, b.Etcd, fmt.Sprintf("account%d", i))
		return err
	}))
	sweep{l, b}.bindOnce(ctx)
	for _, phase := range []struct {
		name   string
		open   func(context.Context)
		report func(ratio float64)
	}{
		{"accounts", func(context.Context) {},
			func(ratio float64) { l.report.add("accounts", "", ratio) }},
		{"accounts, all listening", c.listen,
			func(ratio float64) { l.report.inform("accounts, all listening: many ÷ one", "", ratio) }},
	} {
		phase.open(ctx)
		l.eachRound(phase.name, func(int) { phase.report(l.accountsRound(ctx, c, phase.name)) })
	}
}

// accountsRound returns the rate on licenses of many accounts divided by the rate on licenses of one account.
func (l *lab) accountsRound(ctx context.Context, c *accountGroup, phase string) float64 {
	c.renewNode(ctx)
	each := max(l.cfg.Licenses/len(c.keys), 1)
	n := each * len(c.keys)
	one := c.grant(ctx, n, unlimited)
	many := c.grantAll(ctx, each)
	for _, list := range []*rig.Keys{one, many} {
		must(bind(ctx, c.node, warmers, list, n, spread(n, 0)))
	}
	sides := [2]bindSide{{"one account", one}, {"many accounts", many}}
	return 1 / l.compareSides(ctx, c.bench, "accounts", phase, sides,
		func(turn int) func(int) (int, device) { return spread(n, uint64(1+turn)) }, closed(ctx, n, 0))
}

// grantAll grants each account so many licenses. Successive licenses belong to different accounts.
func (c *accountGroup) grantAll(ctx context.Context, each int) *rig.Keys {
	lists := make([]*rig.Keys, len(c.keys))
	stopIf(rig.Each(ctx, len(c.keys), granters, func(ctx context.Context, i int) (err error) {
		lists[i], err = grant(ctx, c.seeder, c.keys[i], each, unlimited)
		return err
	}))
	all := &rig.Keys{}
	for i := range each {
		for _, list := range lists {
			stopIf(all.Add(list.At(i)))
		}
	}
	return all
}

// listen creates an endpoint for all events of each account, the one account included.
func (c *accountGroup) listen(ctx context.Context) {
	all := append([]string{c.apiKey}, c.keys...)
	stopIf(rig.Each(ctx, len(all), granters, func(ctx context.Context, i int) error {
		api, err := client.New("http://"+c.seeder.Address, all[i])
		if err != nil {
			return err
		}
		defer api.CloseIdleConnections()
		// The nodes deliver nothing, so nothing listens at this address.
		if _, err := api.Webhooks.Create(ctx, client.NewWebhook{URL: "http://127.0.0.1:9/"}); err != nil {
			return fmt.Errorf("create a webhook endpoint: %w", err)
		}
		return nil
	}))
}
