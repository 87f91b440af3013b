package service_test

import (
	"fmt"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestListPayments lists the payment of a paid order: as this build records payments, and as older builds have.
func TestListPayments(t *testing.T) {
	db := nodetest.OpenStore(t)
	n, owner := nodetest.New(t, db), nodetest.NewOwner(licensing.Test)
	list := func(orderNo string) []licensing.Payment {
		t.Helper()
		var all []licensing.Payment
		for page := (store.Page{Limit: 1}); ; {
			list, err := n.ListPayments(nodetest.Context(t), owner, orderNo, page)
			if err != nil || len(list.Items) > 1 {
				t.Fatalf("a page of %d, %v", len(list.Items), err)
			}
			all = append(all, list.Items...)
			if page.Before = list.Next; page.Before == "" {
				return all
			}
		}
	}
	for name, pay := range map[licensing.PaymentProvider]func(licensing.Order) (licensing.Order, error){
		licensing.ProviderSandbox: func(o licensing.Order) (licensing.Order, error) {
			paid, err := n.PayOrder(nodetest.Context(t), o, nodetest.SandboxPayment("sandbox_"+o.OrderNo))
			return paid.Order(), err
		},
		licensing.ProviderOutside: func(o licensing.Order) (licensing.Order, error) {
			paid, _, err := n.RecordPayment(nodetest.Context(t), owner, o.OrderNo,
				service.OutsidePayment{Reference: "INV-1", By: "key_1"})
			return paid, err
		},
	} {
		order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(4900))
		nodetest.WantError(t, err, nil)
		if unpaid := list(order.OrderNo); len(unpaid) > 0 {
			t.Errorf("%s: an unpaid order has the payments %+v", name, unpaid)
		}
		paid, err := pay(order)
		nodetest.WantError(t, err, nil)
		got := list(order.OrderNo)
		if len(got) != 1 || got[0].Reference != paid.Payment || got[0].Provider != name || got[0].Amount != 4900 ||
			!got[0].PaidAt.Equal(paid.PaidAt) {
			t.Errorf("%s: the payments are %+v", name, got)
		}

		ref := licensing.OrderRef(owner, order.OrderNo)
		loaded, err := db.Load(nodetest.Context(t), store.Want{Ref: ref})
		nodetest.WantError(t, err, nil)
		loaded[0].Record.Order.Paid = 0 // as an older build has left it
		_, err = db.Commit(nodetest.Context(t), store.Change{Writes: []store.Write{{Ref: ref, Token: loaded[0].Token,
			Record: loaded[0].Record}}})
		nodetest.WantError(t, err, nil)
		if again := list(order.OrderNo); len(again) != 2 || again[1].Reference != paid.Payment ||
			again[1].Provider != name || again[1].Amount != 4900 || !again[1].PaidAt.Equal(paid.PaidAt) {
			t.Errorf("%s: the payments are %+v", name, fmt.Sprint(again))
		}
	}
	_, err := n.ListPayments(nodetest.Context(t), owner, licensing.NewOrderNo(owner, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
		store.Page{})
	nodetest.WantError(t, err, licensing.ErrOrderNotFound)
}
