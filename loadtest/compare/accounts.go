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

// crowd is many accounts with an API key each.
type crowd struct {
	*bench
	keys []string
}

// accounts measures new devices on licenses of many accounts, and on as many licenses of one account. Then it measures
// the same while each of these accounts has an endpoint that wants all events. No node delivers, since deliveries take
// the cores that are measured: a load with endpoints measures what recording costs.
func (l *lab) accounts(ctx context.Context, b *bench) error {
	l.progress.Step("creating %d accounts", l.cfg.Accounts)
	c := &crowd{bench: b, keys: make([]string, l.cfg.Accounts)}
	if err := rig.Each(ctx, len(c.keys), keyMakers, func(ctx context.Context, i int) (err error) {
		c.keys[i], err = b.Licet.CreateKey(ctx, b.Etcd, fmt.Sprintf("crowd%d", i))
		return err
	}); err != nil {
		return err
	}
	if err := l.findBestBind(ctx, b); err != nil {
		return err
	}
	for _, phase := range []struct {
		name   string
		open   func(context.Context) error
		report func(ratio float64)
	}{
		{"accounts", func(context.Context) error { return nil },
			func(ratio float64) { l.report.add("accounts", "", ratio) }},
		{"accounts, all listening", c.listen,
			func(ratio float64) { l.report.inform("accounts, all listening: many ÷ one", "", ratio) }},
	} {
		if err := phase.open(ctx); err != nil {
			return err
		}
		if err := l.eachRound(phase.name, func(int) error {
			ratio, err := l.accountsRound(ctx, c, phase.name)
			if err == nil {
				phase.report(ratio)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// accountsRound returns the rate on licenses of many accounts divided by the rate on licenses of one account.
func (l *lab) accountsRound(ctx context.Context, c *crowd, phase string) (float64, error) {
	if err := c.renewNode(ctx); err != nil {
		return 0, err
	}
	each := max(l.cfg.Licenses/len(c.keys), 1)
	n := each * len(c.keys)
	one, err := c.grant(ctx, n, unlimited)
	if err != nil {
		return 0, err
	}
	many, err := c.grantAll(ctx, each)
	if err != nil {
		return 0, err
	}
	sides := []struct {
		name string
		list *rig.Keys
		rate float64 // sum
	}{{name: "one account", list: one}, {name: "many accounts", list: many}}
	for _, side := range sides {
		if _, err := bind(ctx, c.node, warmers, side.list, n, spread(n, 0)); err != nil {
			return 0, err
		}
	}
	// Each side runs twice, the second time in the opposite order, as in eventsRound.
	for turn, at := range []int{0, 1, 1, 0} {
		side := &sides[at]
		s, err := c.activate(ctx, l.best.bind, side.list, spread(n, uint64(1+turn)), closed(ctx, n, 0))
		if err != nil {
			return 0, err
		}
		l.checkSample("accounts", side.name, s)
		l.inform(phase+", "+side.name, s)
		side.rate += s.rate()
	}
	return sides[1].rate / sides[0].rate, nil
}

// grantAll grants each account so many licenses. Successive licenses belong to different accounts.
func (c *crowd) grantAll(ctx context.Context, each int) (*rig.Keys, error) {
	lists := make([]*rig.Keys, len(c.keys))
	if err := rig.Each(ctx, len(c.keys), granters, func(ctx context.Context, i int) (err error) {
		lists[i], err = grant(ctx, c.seeder, c.keys[i], each, unlimited)
		return err
	}); err != nil {
		return nil, err
	}
	all := &rig.Keys{}
	for i := range each {
		for _, list := range lists {
			if err := all.Add(list.At(i)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// listen creates an endpoint for all events of each account, the one account included.
func (c *crowd) listen(ctx context.Context) error {
	all := append([]string{c.apiKey}, c.keys...)
	return rig.Each(ctx, len(all), granters, func(ctx context.Context, i int) error {
		api, err := client.New("http://"+c.seeder.Address, all[i])
		if err != nil {
			return err
		}
		defer api.CloseIdleConnections()
		// The nodes deliver nothing, so nothing listens at this address.
		if _, err := api.CreateWebhook(ctx, client.NewWebhook{URL: "http://127.0.0.1:9/"}); err != nil {
			return fmt.Errorf("create a webhook endpoint: %w", err)
		}
		return nil
	})
}
