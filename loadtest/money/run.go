package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"licet/internal/fakestripe"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
)

const (
	limit     = 30 * time.Minute // of a whole run
	accountID = "acct_" + programName
	stripeKey = "sk_test_money"

	// settling is how long the service may take until it knows all that Stripe knows: a minute until it asks about
	// checkouts whose callbacks were lost, and two turns of the sweeps of its nodes: one may belong to a killed node,
	// and Stripe fails some requests.
	settling = 9 * time.Minute
	// daysAtBank is more than the payments from bank accounts take.
	daysAtBank = 4 * 24 * time.Hour
)

// scene is one run: the service, Stripe, the shop and its buyers.
type scene struct {
	cfg      *config
	dir      string
	buyers   []*buyer
	fake     *fakestripe.Fake
	stage    *stage.Stage
	balancer *stage.Balancer
	shop     *shop
	pace     *trial.Pace
	havoc    *trial.Havoc
	progress *rig.Progress
}

// run plays everything, and compares the books.
func run(ctx context.Context, cfg *config, progress *rig.Progress) (r *trial.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := newScene(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	defer func() { err = errors.Join(err, s.stage.KeepLogs(cfg.KeepLogs)) }()
	if err := s.play(ctx); err != nil {
		return nil, errors.Join(err, s.shop.Err())
	}
	if err := s.settle(ctx); err != nil {
		return nil, errors.Join(err, s.shop.Err())
	}
	progress.Step("everything is read back, and compared")
	b, err := s.readBooks(ctx)
	if err != nil {
		return nil, errors.Join(err, s.shop.Err())
	}
	r = s.report(b)
	s.shut(ctx, r)
	return r, ctx.Err()
}

func newScene(ctx context.Context, cfg *config, progress *rig.Progress) (_ *scene, err error) {
	s := &scene{cfg: cfg, progress: progress, buyers: newPlan(cfg.Seed, cfg.purchases),
		pace: trial.NewPace(cfg.purchases, cfg.kills), fake: fakestripe.New(cfg.Seed)}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.dir, err = os.MkdirTemp(cfg.Dir, "licet-money-"); err != nil {
		return nil, err
	}
	s.fake.AddKey(stripeKey)
	secret := s.fake.AddEndpoint(stripeKey, stage.PublicURL+"/v1/callbacks/stripe/"+accountID+"/test")
	key, err := s.secret("stripe.key", stripeKey)
	if err != nil {
		return nil, err
	}
	webhook, err := s.secret("stripe.whsec", secret)
	if err != nil {
		return nil, err
	}
	if s.stage, err = cfg.Stage(ctx, progress, programName, cfg.nodes, "--stripe-api-base", s.fake.URL,
		"--stripe-test-key-file", key, "--stripe-test-webhook-secrets-file", webhook, "--test-order-lifetime",
		cfg.life.String()); err != nil {
		return nil, err
	}
	s.havoc, s.balancer = trial.NewHavoc(s.stage, cfg.Seed), s.stage.Balancer()
	s.fake.SendThrough(s.balancer)
	s.fake.SetSending(callbacks(cfg.drop))
	s.fake.SetFaults(faults)
	apiKey, err := s.stage.Licet.CreateKey(ctx, s.stage.Etcd, programName)
	if err != nil {
		return nil, err
	}
	if _, err := s.secret("api.key", apiKey); err != nil {
		return nil, err
	}
	s.shop = &shop{fake: s.fake, browser: stage.NewBrowser(s.balancer), life: cfg.life}
	if s.shop.desk, err = s.shop.Client(s.balancer, 2*stage.Patience, apiKey); err != nil {
		return nil, err
	}
	return s, s.shop.open(ctx)
}

// secret writes a file that only this user can read, and returns its path.
func (s *scene) secret(name, text string) (string, error) {
	path := filepath.Join(s.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// stop ends everything.
func (s *scene) stop() {
	s.fake.Close()
	if s.balancer != nil {
		s.balancer.CloseIdleConnections()
	}
	if s.stage != nil {
		s.stage.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// play lets the buyers act, while nodes are killed.
func (s *scene) play(ctx context.Context) error {
	show := s.progress.Long(len(s.buyers), "%d purchases, while nodes are killed %d times", len(s.buyers), s.cfg.kills)
	playing, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	var failed error
	group.Go(func() {
		if failed = s.pace.Strike(playing, func() error { return s.havoc.Strike(ctx) }); failed != nil {
			cancel() // nothing would be proven any more
		}
	})
	trial.Each(playing, s.buyers, func(each context.Context, b *buyer) {
		s.pace.Proceed(each)
		s.shop.play(each, ctx, b)
		s.pace.Operated()
		show(s.pace.Count())
	})
	s.pace.Finish()
	group.Wait()
	s.shop.late.Wait()
	return errors.Join(failed, ctx.Err())
}

// settle lets days pass at Stripe, and waits until the service knows what has become of all orders. If that takes too
// long, settle returns too: the audit then names the orders. The service asks Stripe about a payment under way once an
// hour only, so no callback is dropped from now on.
func (s *scene) settle(ctx context.Context) error {
	s.progress.Step("four days pass at Stripe, and the service learns what has become of all payments")
	s.fake.SetSending(callbacks(0))
	for _, b := range s.buyers {
		if b.fate == renews && b.subscription != "" {
			s.fake.Renew(b.subscription)
		}
	}
	s.fake.Advance(daysAtBank)
	waiting, err := s.unsettled(ctx, s.buyers)
	for until := time.Now().Add(settling); err == nil && len(waiting) > 0 && time.Now().Before(until); {
		rig.Rest(ctx, time.Second)
		waiting, err = s.unsettled(ctx, waiting)
	}
	if err = errors.Join(err, ctx.Err()); err == nil {
		s.fake.Delivered()
	}
	return err
}

// unsettled returns the buyers whose orders do not agree yet with what Stripe and the shop have.
func (s *scene) unsettled(ctx context.Context, buyers []*buyer) (waiting []*buyer, failed error) {
	money, subscriptions := moneyOf(buyers, s.fake.Ledger()), s.fake.Subscriptions()
	var mu sync.Mutex
	trial.Each(ctx, buyers, func(ctx context.Context, b *buyer) {
		if b.order == "" {
			return
		}
		now, err := s.shop.desk.Order(ctx, b.order)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%v: %w", b, err))
		} else if unsettled(b, now, money[b.order], subscriptions) != "" {
			waiting = append(waiting, b)
		}
	})
	return waiting, errors.Join(failed, ctx.Err())
}

// report compares the books, and reports problems.
func (s *scene) report(b *books) *trial.Report {
	r := s.shop.Report()
	r.Seed = s.cfg.Seed
	r.Proven = "each purchase has its licenses, each invoice has extended its license once, and every cent is " +
		"accounted for"
	r.Count("nodes killed and started again", s.havoc.Times)
	r.Count("… of which two at once", s.havoc.Both)
	r.CountTraffic(s.balancer.Traffic())
	r.Count("licenses", len(b.licenses))
	r.Problems = append(r.Problems, audit(s.buyers, b)...)
	r.Line("COUNTED", "LEDGERS", "RECORDS", "ORDERS", "REPORT", "EXPORT")
	for _, l := range sumBooks(s.buyers, b) {
		r.Line(l.what, l.ledgers, l.records, l.orders, l.rep, l.ex)
	}
	if s.havoc.Times < s.pace.Kills {
		r.Problem("nodes were killed %d times of %d", s.havoc.Times, s.pace.Kills)
	}
	return r
}

// shut ends the nodes in order, and verifies the store.
func (s *scene) shut(ctx context.Context, r *trial.Report) {
	s.progress.Step("the nodes end; licet store verify")
	s.balancer.CloseIdleConnections()
	r.Problems = append(r.Problems, s.stage.Contradictions(ctx)...)
	r.Leave(ctx, s.stage)
}
