package payment_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

const (
	redactedBuyer  = "ada@example.com"
	redactedReason = "Ada was angry"
)

// deadNode is a node that dies after its first commit.
func (w *fixture) deadNode() *service.Service {
	var commits atomic.Int32
	n, _ := w.open(&storetest.Faulty{Store: w.store, OnCommit: func(store.Change) (none storetest.Fault) {
		if commits.Add(1) > 1 {
			return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
		}
		return none
	}}, newDashboard(w.bank))
	return n
}

// TestRedactionRaces refunds an order for several licenses, with a reason. While one node gives the other licenses what
// they must get, another redacts the order: in the end neither the order nor a license has the reason.
func TestRedactionRaces(t *testing.T) {
	w := newFixture(t)
	there, _ := w.open(w.other, newDashboard(w.bank))
	tasks := map[string]func(*service.Service, licensing.Order) error{
		"redaction": func(n *service.Service, _ licensing.Order) error {
			_, _, err := n.Redact(w.ctx, owner, licensing.Customer{BuyerEmail: redactedBuyer}, nil)
			return err
		},
		"sweep": func(n *service.Service, _ licensing.Order) error { return n.IssueLicensesDue(w.ctx) },
		"refund": func(n *service.Service, o licensing.Order) error {
			_, err := n.RecordRefund(w.ctx, o, service.MadeRefund{})
			return err
		},
	}
	for _, race := range [][2]string{
		{"redaction", "sweep"}, {"sweep", "redaction"}, {"redaction", "refund"}, {"refund", "redaction"},
	} {
		for at := int32(0); ; at++ {
			o, _, err := w.node.CreateOrder(w.ctx, owner, service.NewOrder{ProductID: "pro", Amount: 100,
				Currency: "USD", Quantity: 10, BuyerEmail: redactedBuyer})
			if err == nil {
				o, _, err = w.desk.Pay(w.ctx, o)
			}
			if err == nil {
				o, _, _, err = w.node.RequestRefund(w.ctx, owner, o.OrderNo,
					licensing.RequestRefund{Reason: redactedReason}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if race[0] == "sweep" || race[1] == "sweep" {
				_ = tasks["refund"](w.deadNode(), o)
				if now := w.now(o); now.Others != licensing.OthersRevoke {
					t.Fatalf("the licenses must get nothing: %+v", now)
				}
			}
			var commits atomic.Int32
			here, _ := w.open(&storetest.Faulty{Store: w.store, OnCommit: func(store.Change) (none storetest.Fault) {
				if commits.Add(1) == at+1 {
					if err := tasks[race[1]](there, o); err != nil {
						t.Errorf("%s before commit %d of the %s: %v", race[1], at, race[0], err)
					}
				}
				return none
			}}, newDashboard(w.bank))
			for _, err := range []error{tasks[race[0]](here, o), tasks[race[1]](there, o), tasks["sweep"](there, o)} {
				if err != nil {
					t.Errorf("%v, commit %d: %v", race, at, err)
				}
			}
			w.forgotten(o, race, at)
			if commits.Load() <= at {
				break
			}
		}
	}
	w.verify()
}

// forgotten checks that an order is refunded, and that neither the order nor its licenses have the reason.
func (w *fixture) forgotten(o licensing.Order, race [2]string, at int32) {
	w.t.Helper()
	o = w.now(o)
	keys, err := w.node.OrderKeys(w.ctx, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	if o.BuyerEmail != "" || o.StateReason != "" || o.RefundedAt.IsZero() || o.Others != licensing.OthersDone {
		w.t.Errorf("%v, commit %d: the order has %q and %q, %+v", race, at, o.BuyerEmail, o.StateReason, o.OrderOthers)
	}
	for i, key := range keys {
		view, err := w.node.License(w.ctx, owner, key, store.DevicePage{Limit: 1})
		if err != nil || strings.Contains(view.License.StateReason, redactedReason) ||
			view.License.RevokedAt.IsZero() {
			w.t.Errorf("%v, commit %d: license %d has the reason %q, %v", race, at, i, view.License.StateReason, err)
		}
	}
}
