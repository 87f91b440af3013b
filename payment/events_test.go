package payment_test

import (
	"errors"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// TestRefundEventNamesItsRequester: the event of a refund names the API key that requested the refund, even if
// the provider failed and a sweep of another node completed the refund. The same holds for the event of the
// license, in the same transaction. The refund of a payment for a canceled order names the provider.
func TestRefundEventNamesItsRequester(t *testing.T) {
	w := newFixture(t)
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
	if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{By: "key_1"}, nil); !errors.Is(err,
		providerFailed) {
		t.Fatal(err)
	}
	if e := latest(licensing.OrderRef(owner, o.OrderNo)); e.Type != licensing.EventOrderPaid {
		t.Errorf("before the refund, the latest event is %s", e.Type)
	}
	w.clock.advance(time.Minute)
	if err := elsewhere.SendRefundsDue(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.check("swept", o, licensing.OrderRefunded)
	order, license := latest(licensing.OrderRef(owner, o.OrderNo)), latest(licensing.LicenseRef(o.LicenseKey))
	if order.Type != licensing.EventOrderRefunded || order.Actor != "key_1" || order.Sequence != 3 ||
		license.Type != licensing.EventLicenseRevoked || license.Actor != "key_1" || license.Sequence != 2 ||
		order.Revision != license.Revision {
		t.Errorf("events %+v and %+v", order, license)
	}

	canceled := w.canceled()
	if _, _, err := w.desk.Pay(w.ctx, canceled); err != nil {
		t.Fatal(err)
	}
	if e := latest(licensing.OrderRef(owner, canceled.OrderNo)); e.Type != licensing.EventOrderRefunded ||
		e.Actor != licensing.Provider || e.Sequence != 3 {
		t.Errorf("event %+v", e)
	}
}
