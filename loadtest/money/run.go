package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"licet/client"
	"licet/internal/fakestripe"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
)

const (
	limit     = time.Hour // of a whole run
	accountID = "acct_" + programName
	stripeKey = "sk_test_money"

	// catchUpTime is how long the service may take until it knows all that Stripe knows, and has done all that is due.
	// The longest pause before a try is that of a refund which Stripe refuses during a dispute: the pause doubles with
	// each try, so it has grown to eight minutes when the dispute ends. The service learns of this end from Stripe's
	// list of events, five minutes later, if the callback is hidden, and then tries at once. If Stripe fails this try,
	// too, as it fails some requests, 16 minutes follow. Each step also waits for a sweep, for up to a minute.
	catchUpTime = 24 * time.Minute
	// daysAtBank is more than the payments from bank accounts take.
	daysAtBank = 4 * 24 * time.Hour
	// listed is more than the age at which the service believes Stripe's list of events.
	listed = 10 * time.Minute
)

// scene is one run: the service, Stripe, the shop and its buyers.
type scene struct {
	*trial.Scene
	cfg    *config
	dir    string
	buyers []*buyer
	fake   *fakestripe.Fake
	shop   *shop
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
	defer func() { err = errors.Join(err, s.Stage.KeepLogs(cfg.keepLogs)) }()
	if err := s.play(ctx); err != nil {
		return nil, errors.Join(err, s.shop.Err())
	}
	if err := s.catchUp(ctx); err != nil {
		return nil, errors.Join(err, s.shop.Err())
	}
	progress.Step("everything is read back, and compared")
	b, err := s.readBooks(ctx)
	if err != nil {
		return nil, errors.Join(err, s.shop.Err())
	}
	r = s.report(b)
	s.Shut(ctx, r)
	return r, ctx.Err()
}

func newScene(ctx context.Context, cfg *config, progress *rig.Progress) (_ *scene, err error) {
	s := &scene{cfg: cfg, buyers: newPlan(cfg.Seed, cfg.purchases), fake: fakestripe.New(cfg.Seed)}
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
	if s.Scene, err = cfg.NewScene(ctx, progress, programName, cfg.purchases, cfg.Kills, append(stage.BehindBalancer(),
		"--stripe-api-base", s.fake.URL, "--stripe-test-key-file", key, "--stripe-test-webhook-secrets-file", webhook,
		"--test-order-lifetime", cfg.life.String(),
		fmt.Sprint("--stripe-suspend-on-dispute=", cfg.suspend))...); err != nil {
		return nil, err
	}
	s.fake.SendThrough(s.Balancer)
	s.fake.SetSending(callbacks(cfg.drop, cfg.hide))
	s.fake.SetFaults(faults)
	if _, err := s.secret("api.key", s.APIKey); err != nil {
		return nil, err
	}
	s.shop = &shop{fake: s.fake, browser: stage.NewBrowser(s.Balancer), life: cfg.life}
	if s.shop.desk, err = s.shop.Client(s.Balancer, 2*stage.Patience, s.APIKey); err != nil {
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
	s.Stop()
	_ = os.RemoveAll(s.dir)
}

// play lets the buyers act, while nodes are killed.
func (s *scene) play(ctx context.Context) error {
	show := s.Progress.Long(len(s.buyers), "%d purchases, while nodes are killed %d times", len(s.buyers), s.cfg.Kills)
	err := trial.Act(ctx, s.Scene, s.buyers, func(each context.Context, b *buyer) {
		s.Pace.Proceed(each)
		s.shop.play(each, ctx, b)
		show(s.Pace.Operated())
	})
	s.shop.late.Wait()
	return err
}

// catchUp lets days pass at Stripe, and waits until the service knows what has become of all orders. If that takes too
// long, catchUp returns too: the audit then names the orders. The service asks Stripe about a payment under way once an
// hour only, so no callback about a payment is dropped from now on. Refunds and disputes are among Stripe's events.
func (s *scene) catchUp(ctx context.Context) error {
	s.Progress.Step("four days pass at Stripe, and the service learns what has become of all payments")
	s.fake.SetSending(callbacks(0, s.cfg.hide))
	for _, b := range s.buyers {
		if b.fate == renews && b.subscription != "" {
			s.fake.Renew(b.subscription)
		}
	}
	s.fake.Advance(daysAtBank)
	s.fake.Advance(listed)
	if err := s.await(ctx, s.buyers); err != nil {
		return err
	}
	reversed, err := s.reverse(ctx)
	if err == nil {
		s.fake.Advance(listed)
		err = s.await(ctx, reversed)
	}
	if err == nil {
		s.fake.Delivered()
	}
	return err
}

// await waits until the service knows what has become of the orders of buyers, or until that takes too long. It rests
// for longer than it asks, so that its own questions do not slow the service down.
func (s *scene) await(ctx context.Context, buyers []*buyer) (err error) {
	waiting := buyers
	for until := time.Now().Add(catchUpTime); ; {
		began := time.Now()
		waiting, err = s.behind(ctx, waiting)
		if err != nil || len(waiting) == 0 || time.Now().After(until) {
			break
		}
		rig.Rest(ctx, max(time.Second, 3*time.Since(began)))
	}
	return errors.Join(err, ctx.Err())
}

// behind returns the buyers whose orders do not agree yet with what Stripe and the shop have.
func (s *scene) behind(ctx context.Context, buyers []*buyer) (waiting []*buyer, err error) {
	b := s.stripeBooks()
	money := moneyOf(buyers, b)
	var mu sync.Mutex
	err = rig.Each(ctx, len(buyers), readers, func(ctx context.Context, i int) error {
		one := buyers[i]
		if one.order == "" {
			return nil
		}
		now, err := s.shop.desk.Orders.Get(ctx, one.order)
		var payments []client.Payment
		if err == nil && one.dispute != "" {
			payments, err = s.payments(ctx, one.order)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", one, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if difference(one, now, payments, money[one.order], b.subscriptions) != "" {
			waiting = append(waiting, one)
		}
		return nil
	})
	return waiting, err
}

// report compares the books, and reports problems.
func (s *scene) report(b *books) *trial.Report {
	r := s.Report(&s.shop.Tally, "each purchase has its licenses, each invoice has extended its license once, and "+
		"every cent is accounted for")
	r.Count("licenses", len(b.licenses))
	r.Problems = append(r.Problems, audit(s.buyers, b, s.cfg.suspend)...)
	r.Line("COUNTED", "LEDGERS", "RECORDS", "ORDERS", "REPORT", "EXPORT")
	for _, l := range sumBooks(s.buyers, b) {
		r.Line(l.what, l.ledgers, l.records, l.orders, l.reported(), l.ex)
	}
	return r
}
