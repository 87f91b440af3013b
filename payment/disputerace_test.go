package payment_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"licet/licensing"
	"licet/node/store"
	"licet/node/store/storetest"
	"licet/payment"
)

// disputeRace is two answers of the bank about disputes of one order. One comes while a node records the other.
type disputeRace struct {
	before          map[string]payment.Outcome // disputes that are recorded before
	first, other    string                     // the disputes that the answers are about
	says, otherSays payment.Outcome
	want            licensing.Status // of all licenses in the end
}

func disputeRaces() map[string]disputeRace {
	const open, won = payment.OutcomeOpen, payment.OutcomeWon
	return map[string]disputeRace{
		"one ends, another opens": {
			map[string]payment.Outcome{"a": open}, "a", "b", won, open, licensing.Suspended},
		"one opens, another ends": {
			map[string]payment.Outcome{"a": open}, "b", "a", open, won, licensing.Suspended},
		"both end": {
			map[string]payment.Outcome{"a": open, "b": open}, "a", "b", won, won, licensing.NotActivated},
		"both open":          {nil, "a", "b", open, open, licensing.Suspended},
		"one opens and ends": {nil, "a", "a", open, won, licensing.NotActivated},
	}
}

// inBatches is a number of licenses that change in several transactions: one, then eight, then three.
const inBatches = 12

// TestDisputesRace lets another node record an answer about a dispute before each of the commits of a node that records
// one: all licenses of the order agree with its disputes.
func TestDisputesRace(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, there := w.open(w.other, c)
	called := func(desk *payment.Desk, object payment.Object) { // once: the same answer again may hide a fault
		t.Helper()
		if err := desk.Called(w.ctx, owner, object); err != nil {
			t.Errorf("the callback about %s: %v", object.ID, err)
		}
	}
	for name, race := range disputeRaces() {
		for at := int32(0); ; at++ {
			o, commits := w.paidFor(inBatches), atomic.Int32{}
			answer := func(id string, says payment.Outcome) payment.Object {
				return c.ruleAbout(id+o.OrderNo, o, 50, says)
			}
			for id, says := range race.before {
				called(there, answer(id, says))
			}
			_, here := w.open(&storetest.Faulty{Store: w.store, OnCommit: func(store.Change) (none storetest.Fault) {
				if commits.Add(1) == at+1 {
					called(there, answer(race.other, race.otherSays))
				}
				return none
			}}, c)
			called(here, answer(race.first, race.says))
			if commits.Load() <= at {
				break
			}
			if got := w.licenses(o); !slices.Equal(got, []licensing.Status{race.want}) {
				t.Errorf("%s, before commit %d: the licenses are %v, want %s", name, at, got, race.want)
			}
		}
	}
	w.verify()
}

// TestDisputesDie kills a node at each step of recording an answer about a dispute. No callback comes again, and a
// sweep of another node completes what the order's record says.
func TestDisputesDie(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	node, elsewhere := w.open(w.other, c)
	for _, says := range []payment.Outcome{payment.OutcomeOpen, payment.OutcomeWon, payment.OutcomeLost} {
		for steps := 0; ; steps++ {
			o := w.paidFor(inBatches)
			if says == payment.OutcomeWon {
				w.called(c.rule(o, 50, payment.OutcomeOpen), elsewhere)
			}
			f := &killSwitch{left: steps}
			_, desk := w.open(killableStore{w.store, f}, c)
			_ = desk.Called(w.ctx, owner, c.rule(o, 100, says))
			w.verify()
			if err := node.IssueLicensesDue(context.Background()); err != nil {
				t.Error(err)
			}
			want := licensing.NotActivated
			switch now := w.now(o); {
			case now.Disputes != "":
				want = licensing.Suspended
			case !now.RefundedAt.IsZero():
				want = licensing.Revoked
			}
			if got := w.licenses(o); !slices.Equal(got, []licensing.Status{want}) {
				t.Errorf("%s, killed at step %d: the licenses are %v, want %s", says, steps, got, want)
			}
			if !f.dead() {
				break
			}
		}
	}
	w.verify()
}

// TestRefundsDie kills a node at each step of the refund of an order for several licenses. If the refund is still open,
// the provider says that it has failed. A sweep of another node completes what the order's record says.
func TestRefundsDie(t *testing.T) {
	w := newFixture(t)
	d := newDashboard(w.bank)
	node, elsewhere := w.open(w.other, d)
	for steps := 0; ; steps++ {
		o := w.paidFor(inBatches)
		f := &killSwitch{left: steps}
		_, desk := w.open(killableStore{w.store, f}, d)
		_, _, _ = desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil)
		w.verify()
		if now := w.now(o); now.RefundDue {
			w.called(d.set(o, "re_"+o.OrderNo, now.RefundNo, 100, payment.OutcomeFailed), elsewhere)
		}
		if err := node.IssueLicensesDue(context.Background()); err != nil {
			t.Error(err)
		}
		want := licensing.NotActivated
		if now := w.now(o); !now.RefundedAt.IsZero() {
			want = licensing.Revoked
		}
		if got := w.licenses(o); !slices.Equal(got, []licensing.Status{want}) {
			t.Errorf("killed at step %d: the licenses are %v, want %s", steps, got, want)
		}
		if !f.dead() {
			break
		}
	}
	w.verify()
}

// TestLostDisputeRaces lets another node record that money has come back to the shop before each of the commits of a
// node that records a lost dispute of all that is left: the licenses are revoked exactly if the order is refunded.
func TestLostDisputeRaces(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, there := w.open(w.other, c)
	for name, meanwhile := range map[string]func(licensing.Order) payment.Object{
		"a refund fails": func(o licensing.Order) payment.Object {
			return c.set(o, "re_"+o.OrderNo, "", 40, payment.OutcomeFailed)
		},
		"the dispute is won": func(o licensing.Order) payment.Object { return c.rule(o, 60, payment.OutcomeWon) },
	} {
		for at := int32(0); ; at++ {
			o, commits := w.paidFor(3), atomic.Int32{}
			w.called(c.set(o, "re_"+o.OrderNo, "", 40, payment.OutcomeDone), there)
			_, here := w.open(&storetest.Faulty{Store: w.store, OnCommit: func(store.Change) (none storetest.Fault) {
				if commits.Add(1) == at+1 {
					w.called(meanwhile(o), there)
				}
				return none
			}}, c)
			w.called(c.rule(o, 60, payment.OutcomeLost), here)
			if commits.Load() <= at {
				break
			}
			want := licensing.NotActivated
			if !w.now(o).RefundedAt.IsZero() {
				want = licensing.Revoked
			}
			if got := w.licenses(o); !slices.Equal(got, []licensing.Status{want}) {
				t.Errorf("%s before commit %d: the licenses are %v, want %s", name, at, got, want)
			}
			w.verify()
		}
	}
}
