package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
)

// play plays the day from opening to night.
func (s *day) play(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.open, s.morning, s.forenoon, s.noon, s.afternoon, s.evening} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	s.night(ctx)
	return ctx.Err()
}

// open creates what the shop needs before it sells.
func (s *day) open(ctx context.Context) error {
	rootKey, err := s.stage.Licet.CreateKey(ctx, s.stage.Etcd, programName)
	if err != nil {
		return err
	}
	if err := s.keys.openKeys(ctx, rootKey); err != nil {
		return err
	}
	for _, p := range s.ledger.products {
		if err := s.describe(ctx, p, p.before); err != nil {
			return err
		}
	}
	s.keys.overstep(ctx)
	s.grant(ctx)
	return nil
}

// describe sets the terms of a product, and reads them back from both nodes.
func (s *day) describe(ctx context.Context, p product, t terms) error {
	_, err := s.clerk.PutProduct(ctx, p.id, client.ProductTerms{
		Name: p.name, KeyPrefix: t.prefix, MaxDevices: &t.maxDevices, Validity: t.validity(),
		ValidityFrom: t.validityFrom(), SelfServiceDeactivation: t.selfService, RemovalsPerMonth: t.removals,
	})
	if err != nil {
		return fmt.Errorf("describe the product %s: %w", p.id, err)
	}
	s.ledger.Did("products described")
	for node := range nodeCount {
		now, err := s.reader.Product(stage.AtNode(ctx, node), p.id)
		s.check(err == nil && now.Name == p.name && now.KeyPrefix == t.prefix && now.MaxDevices == t.maxDevices &&
			now.Validity == t.validity() && now.ValidityFrom == t.validityFrom() &&
			now.SelfServiceDeactivation == t.selfService && now.RemovalsPerMonth == t.removals,
			"product %s is %+v, %v", p.id, now, err)
	}
	return nil
}

// morning makes orders that expire before they are paid, and then restarts the nodes: from
// then on orders live longer. The orders that are paid late are paid meanwhile.
func (s *day) morning(ctx context.Context) error {
	var made []*orderEntry
	var mu sync.Mutex
	early := s.plan.those(func(o *orderPlan) bool { return o.made == morning })
	s.progress.Step("morning: %d orders that run out in %v", len(early), shortLife)
	trial.Each(ctx, early, func(ctx context.Context, p *orderPlan) {
		if o := s.sales.make(ctx, p); o != nil {
			s.sales.awaitEnd(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			made = append(made, o)
		}
	})
	if err := s.keys.addMaster(ctx); err != nil {
		return err
	}
	return s.meanwhile(ctx, "they are paid late, while the nodes are restarted with a new master key",
		func(ctx context.Context, count func()) {
			trial.Each(ctx, made, func(ctx context.Context, o *orderEntry) {
				s.sales.carryOut(ctx, o)
				count()
			})
		}, func(ctx context.Context, _ func(int)) error {
			return s.stage.Roll(ctx, "--test-order-lifetime", "0")
		}, len(made))
}

// forenoon sells, while one node is killed and started again.
func (s *day) forenoon(ctx context.Context) error {
	list := s.plan.those(func(o *orderPlan) bool { return o.made == forenoon })
	kill := func(ctx context.Context, reached func(int)) error {
		reached(len(list) / 4)
		s.stage.Crash(1)
		reached(len(list) / 2)
		return s.stage.Nodes[1].Start(ctx)
	}
	return s.meanwhile(ctx, fmt.Sprintf("forenoon: %d orders, while a node is killed", len(list)),
		func(ctx context.Context, count func()) {
			trial.Each(ctx, list, func(ctx context.Context, p *orderPlan) {
				if o := s.sales.make(ctx, p); o != nil && p.paid == forenoon {
					s.sales.carryOut(ctx, o)
				}
				count()
			})
		}, kill, len(list))
}

// noon changes the terms of the products.
func (s *day) noon(ctx context.Context) error {
	s.progress.Step("noon: the products get other terms")
	for _, p := range s.ledger.products {
		if err := s.describe(ctx, p, p.after); err != nil {
			return err
		}
	}
	s.ledger.change()
	return s.keys.turnRing()
}

// afternoon sells the rest, and has orders paid that were made before the terms changed.
// Meanwhile the nodes are restarted to derive from the new master key.
func (s *day) afternoon(ctx context.Context) error {
	waiting := map[int]*orderEntry{}
	for _, o := range s.ledger.allOrders() {
		waiting[o.plan.n] = o
	}
	list := s.plan.those(func(o *orderPlan) bool { return o.made != morning && o.paid == afternoon })
	err := s.meanwhile(ctx, fmt.Sprintf("afternoon: %d orders, while the nodes are restarted", len(list)),
		func(ctx context.Context, count func()) {
			trial.Each(ctx, list, func(ctx context.Context, p *orderPlan) {
				o := waiting[p.n]
				if p.made == afternoon {
					o = s.sales.make(ctx, p)
				}
				if o != nil {
					s.sales.carryOut(ctx, o)
				}
				count()
			})
		}, func(ctx context.Context, _ func(int)) error { return s.stage.Roll(ctx) }, len(list))
	for _, o := range s.ledger.allOrders() {
		o.early = true
	}
	return err
}

// evening refunds orders, changes licenses and replaces API keys. Meanwhile the nodes are
// restarted without the old master key. Afterward the pay pages of unpaid orders still open.
func (s *day) evening(ctx context.Context) error {
	var list []*orderEntry
	for _, o := range s.ledger.allOrders() {
		if o.plan.licensed() {
			list = append(list, o)
		}
	}
	err := s.meanwhile(ctx,
		fmt.Sprintf("evening: %d licenses are looked after, %d of them refunded, and API keys replaced", len(list),
			len(s.plan.those(func(o *orderPlan) bool { return o.refund != noRefund }))),
		func(ctx context.Context, count func()) {
			trial.Each(ctx, list, func(ctx context.Context, o *orderEntry) {
				if o.plan.refund != noRefund {
					s.sales.giveBack(ctx, o)
				} else {
					s.support.tend(ctx, o)
				}
				count()
			})
		}, func(ctx context.Context, _ func(int)) error {
			s.keys.rotateTill(ctx)
			s.keys.revokeKey(ctx)
			s.keys.expireKey(ctx)
			if err := s.keys.retireMaster(ctx); err != nil {
				return err
			}
			return s.stage.Roll(ctx)
		}, len(list))
	for _, o := range s.ledger.allOrders() {
		if o.plan.fate == leftUnpaid && o.status(time.Now()) == stateUnpaid {
			s.sales.stillPayable(ctx, o)
		}
	}
	return err
}

// meanwhile does two things at a time: work, which counts its progress, and an action on the nodes, which can wait
// until so much of the work is done.
func (s *day) meanwhile(
	ctx context.Context, step string, work func(context.Context, func()),
	event func(context.Context, func(int)) error, total int,
) error {
	show := s.progress.Long(total, "%s", step)
	var count atomic.Int64
	over := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- event(ctx, func(n int) {
			for int(count.Load()) < n {
				select {
				case <-over:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}()
	work(ctx, func() { show(int(count.Add(1))) })
	close(over)
	return errors.Join(<-failed, ctx.Err())
}

// grant makes licenses without an order. The same request goes to both nodes at once, and
// must be done once.
func (s *day) grant(ctx context.Context) {
	batches := []client.Grant{
		{ProductID: "cloud", Quantity: len(s.plan.orders) / 4, Metadata: map[string]any{"batch": "press"}},
		{ProductID: "editor", Quantity: 5, MaxDevices: new(int),
			ExpiresAt: time.Now().AddDate(0, 6, 0).Truncate(time.Millisecond)},
	}
	for i, g := range batches {
		about := fmt.Sprintf("grant %d", i+1)
		got, errs := make([][]client.License, 4), make([]error, 4)
		from := time.Now()
		atOnce(ctx, len(got), func(ctx context.Context, at int) {
			got[at], errs[at] = s.desk.GrantLicenses(ctx, g, client.IdempotencyKey(about))
		})
		for at, err := range errs {
			if !s.done("grants", about, err) {
				return
			}
			s.check(len(got[at]) == g.Quantity, "%s: %d licenses, not %d", about, len(got[at]), g.Quantity)
			for j := range got[at] {
				s.check(got[at][j].LicenseKey == got[0][j].LicenseKey, "%s was made twice", about)
			}
		}
		for j := range got[0] {
			s.enterGrant(ctx, &got[0][j], g, from)
		}
	}
}

func (s *day) enterGrant(ctx context.Context, made *client.License, g client.Grant, from time.Time) {
	place := editor
	if g.ProductID == s.ledger.products[cloud].id {
		place = cloud
	}
	s.check(within(made.CreatedAt, from, time.Now()), "license %s was granted at %v", made.LicenseKey, made.CreatedAt)
	l := s.ledger.license(place, made.LicenseKey, made.CreatedAt)
	if g.MaxDevices != nil {
		l.maxDevices = *g.MaxDevices
	}
	if !g.ExpiresAt.IsZero() {
		l.renewed(g.ExpiresAt)
	}
	if g.Metadata != nil {
		l.metadata = map[string]any{"batch": "press"}
	}
	s.support.checkLicense(l, made)
	if len(s.ledger.licenses)%10 == 0 {
		s.support.activate(ctx, l, device(0), 1)
	}
}

// play plays the day, closes the shop, and compares its ledger with the service.
func play(ctx context.Context, cfg *config, progress *rig.Progress) (r *trial.Report, err error) {
	premises, err := newStage(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	defer premises.Stop()
	s, err := newDay(cfg, premises, progress)
	if err != nil {
		return nil, err
	}
	defer s.balancer.CloseIdleConnections()
	defer func() { err = errors.Join(err, premises.KeepLogs(cfg.KeepLogs)) }()
	if err := s.play(ctx); err != nil {
		return nil, errors.Join(err, s.ledger.Err())
	}
	r, err = s.compare(ctx)
	if err != nil {
		return nil, err
	}
	r.Seed = cfg.Seed
	s.shut(ctx, r)
	return r, ctx.Err()
}
