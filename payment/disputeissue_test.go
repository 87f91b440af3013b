package payment_test

import (
	"context"
	"slices"
	"testing"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// unissuing is the store of a node that issues no licenses of an order after its payment.
type unissuing struct{ store.Store }

func (s unissuing) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	for _, w := range change.Writes {
		o, issued := w.Record.Order, len(w.Record.Issued)
		if o != nil && issued > 0 && o.LicensesIssued > issued {
			return store.Outcome{}, licensing.ErrUnavailable
		}
	}
	return s.Store.Commit(ctx, change)
}

// TestDisputeWhileIssuing: a dispute that comes before the order has all its licenses suspends the others, too.
func TestDisputeWhileIssuing(t *testing.T) {
	w := newFixture(t)
	c := &court{newDashboard(w.bank), true}
	_, slow := w.open(unissuing{w.store}, c)
	node, desk := w.open(w.other, c)
	const quantity = store.MaxNewLicenses + 8
	o, _, err := w.node.CreateOrder(w.ctx, owner,
		service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD", Quantity: quantity})
	if err == nil {
		o, _, err = slow.Pay(w.ctx, o)
	}
	if err != nil || !o.Issuing() {
		t.Fatalf("the payment has issued %d licenses: %v", o.Issued(), err)
	}
	for _, s := range []struct {
		says     payment.Outcome
		licenses licensing.Status
	}{{payment.OutcomeOpen, licensing.Suspended}, {payment.OutcomeWon, licensing.NotActivated}} {
		w.called(c.rule(o, 100, s.says), desk)
		if err := node.IssueLicensesDue(w.ctx); err != nil {
			t.Fatal(err)
		}
		now := w.now(o)
		if got := w.licenses(o); !slices.Equal(got, []licensing.Status{s.licenses}) || now.Issued() != quantity {
			t.Errorf("the dispute is %s: %d licenses are %v", s.says, now.Issued(), got)
		}
	}
	w.verify()
}
