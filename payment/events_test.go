package payment_test

import (
	"errors"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// TestSweepTellsWhoAsked: a refund is told as made by whoever wished for it, also
// where the provider failed then and a sweep elsewhere made it; and so is what becomes
// of the license, in the same transaction. Money for a canceled order is sent back
// since it came.
func TestSweepTellsWhoAsked(t *testing.T) {
	w := newTown(t)
	_, elsewhere := w.open(w.other, w.bank)
	if err := w.store.OpenEpoch(w.ctx); err != nil {
		t.Fatal(err)
	}
	latest := func(ref licensing.Ref) store.RecordedEvent {
		t.Helper()
		history, err := w.store.History(w.ctx, ref, store.HistoryPage{Limit: 1})
		if err != nil || len(history.Events) == 0 {
			t.Fatalf("%+v, %v", history, err)
		}
		return history.Events[0]
	}
	o := w.paid()
	w.bank.next = []answer{{says: errDown}}
	if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{By: "key_1"}, nil); !errors.Is(err, providerFailed) {
		t.Fatal(err)
	}
	if e := latest(licensing.OrderRef(owner, o.OrderNo)); e.Type != licensing.EventOrderPaid {
		t.Errorf("before the money is back %s is told", e.Type)
	}
	w.clock.ahead += time.Minute
	if err := elsewhere.SendRefundsDue(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.check("swept", o, licensing.OrderRefunded)
	order, license := latest(licensing.OrderRef(owner, o.OrderNo)), latest(licensing.LicenseRef(o.LicenseKey))
	if order.Type != licensing.EventOrderRefunded || order.Actor != "key_1" || order.Sequence != 3 ||
		license.Type != licensing.EventLicenseRevoked || license.Actor != "key_1" || license.Sequence != 2 || order.Revision != license.Revision {
		t.Errorf("told %+v and %+v", order, license)
	}

	canceled := w.canceled()
	if _, _, err := w.desk.Pay(w.ctx, canceled); err != nil {
		t.Fatal(err)
	}
	if e := latest(licensing.OrderRef(owner, canceled.OrderNo)); e.Type != licensing.EventOrderRefunded || e.Actor != licensing.Provider || e.Sequence != 3 {
		t.Errorf("told %+v", e)
	}
}
