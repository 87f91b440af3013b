package service_test

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// quantity is how many licenses the orders of these tests are for: three transactions issue them.
const quantity = 2*store.MaxNewLicenses + 6

// orderMany creates an unpaid order for many licenses.
func orderMany(t *testing.T, n *service.Service, owner licensing.Owner) licensing.Order {
	t.Helper()
	in := nodetest.NewOrder(100)
	in.Quantity, in.BuyerEmail = quantity, "buyer@example.com"
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, in)
	nodetest.WantError(t, err, nil)
	return order
}

// wantLicenses reads an order, and demands that it has so many licenses, with the keys that follow from its seed, that
// they and no others name it, and that each has an event of its issue.
func wantLicenses(t *testing.T, db *kv.Store, owner licensing.Owner, orderNo string, want int) licensing.Order {
	t.Helper()
	n := nodetest.New(t, db)
	order, err := n.Order(nodetest.Context(t), owner, orderNo)
	nodetest.WantError(t, err, nil)
	keys, err := n.OrderKeys(nodetest.Context(t), &order)
	nodetest.WantError(t, err, nil)
	if order.Issued() != want || len(keys) != want {
		t.Fatalf("the order has %d licenses and %d keys, want %d", order.Issued(), len(keys), want)
	}
	for i, key := range keys {
		if key != nodetest.LicenseKeys.SeededKey(order.KeySeed, "LIC", owner, i) {
			t.Errorf("key %d does not follow from the seed", i)
		}
	}
	var listed []licensing.LicenseKey
	page := store.Page{Limit: 50}
	for {
		list, err := n.ListLicenses(nodetest.Context(t), owner, service.LicenseFilter{}, page)
		nodetest.WantError(t, err, nil)
		for i := range list.Items {
			if l := &list.Items[i].License; l.OrderNo != orderNo {
				t.Errorf("the license %v names the order %q", l.Key, l.OrderNo)
			}
			listed = append(listed, list.Items[i].License.Key)
		}
		if page.Before = list.Next; list.Next == "" {
			break
		}
	}
	if !sameKeys(listed, keys) {
		t.Errorf("%d licenses are listed, the order has %d, and they differ", len(listed), len(keys))
	}
	issued := 0
	for _, e := range nodetest.FeedOf(t, db, owner) {
		switch {
		case e.Type == licensing.EventLicenseIssued:
			issued++
		case e.Type == licensing.EventOrderPaid && (e.Order.Quantity != quantity || e.Order.LicensesIssued == 0):
			t.Errorf("the order was paid with the event %+v", e.Order)
		}
	}
	if issued != want {
		t.Errorf("%d events license.issued, want %d", issued, want)
	}
	return order
}

func sameKeys(one, other []licensing.LicenseKey) bool {
	text := func(keys []licensing.LicenseKey) (ids []string) {
		for _, key := range keys {
			ids = append(ids, key.ID().String())
		}
		slices.Sort(ids)
		return ids
	}
	return slices.Equal(text(one), text(other))
}

// TestOrderOfMany pays orders for many licenses in all ways: the order has all of them when its payment returns.
func TestOrderOfMany(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db)
	for name, pay := range map[string]func(owner licensing.Owner) (licensing.Order, error){
		"by a provider": func(owner licensing.Owner) (licensing.Order, error) {
			result, err := n.PayOrder(nodetest.Context(t), orderMany(t, n, owner), nodetest.SandboxPayment("p"))
			return result.Order(), err
		},
		"outside": func(owner licensing.Owner) (licensing.Order, error) {
			order, _, err := n.RecordPayment(nodetest.Context(t), owner, orderMany(t, n, owner).OrderNo,
				service.OutsidePayment{Reference: "r", By: "key_1"})
			return order, err
		},
		"for nothing": func(owner licensing.Owner) (licensing.Order, error) {
			in := nodetest.NewOrder(0)
			in.Quantity, in.Once = quantity, nodetest.Once("free", "r")
			order, _, err := n.CreateOrder(nodetest.Context(t), owner, in)
			again, replayed, err2 := n.CreateOrder(nodetest.Context(t), owner, in)
			if !replayed || err2 != nil || again.OrderNo != order.OrderNo || again.Issued() != quantity {
				t.Errorf("the repeated request: %+v, replayed %v, %v", again, replayed, err2)
			}
			return order, err
		},
	} {
		owner := nodetest.NewOwner(licensing.Test)
		order, err := pay(owner)
		if err != nil || order.Issued() != quantity || order.Issuing() {
			t.Errorf("%s: %d licenses, %v", name, order.Issued(), err)
			continue
		}
		wantLicenses(t, db, owner, order.OrderNo, quantity)
	}
}

// TestOrderOfOne creates an order for one license, which is stored as it was before orders had a quantity.
func TestOrderOfOne(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	in := nodetest.NewOrder(0)
	in.Quantity = 1
	order, _, err := n.CreateOrder(nodetest.Context(t), nodetest.NewOwner(licensing.Test), in)
	if err != nil || order.Quantity != 0 || order.LicensesIssued != 0 || order.KeySeed != (licensing.KeySeed{}) ||
		order.Issued() != 1 {
		t.Errorf("%+v, %v", order, err)
	}
}

// killed returns a node that dies at one of its commits: the commit is made or not, and no later one is.
func killed(t *testing.T, db *kv.Store, at int32, made bool) (n *service.Service, commits *atomic.Int32) {
	commits = new(atomic.Int32)
	return nodetest.New(t, &storetest.Faulty{Store: db, OnCommit: func(store.Change) storetest.Fault {
		switch number := commits.Add(1); {
		case number < at:
			return storetest.Fault{}
		case number == at:
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}
		return storetest.Fault{Skip: true, Say: licensing.ErrOutcomeUnknown}
	}}), commits
}

// TestIssueSurvivesNodes kills the node that is paid at each of its commits, then the node that continues, and sweeps:
// the order has each license once. Then the refund is killed at some of its commits, and tried again: no license
// survives it.
func TestIssueSurvivesNodes(t *testing.T) {
	db := nodetest.OpenStore(t)
	well := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	for at := int32(1); at <= 3; at++ {
		for _, made := range []bool{true, false} {
			owner := nodetest.NewOwner(licensing.Test)
			order := orderMany(t, well, owner)
			dying, _ := killed(t, db, at, made)
			result, err := dying.PayOrder(ctx, order, nodetest.SandboxPayment("p"))
			if (err != nil) != (at == 1) || err == nil && new(result.Order()).Issued() == quantity && at < 3 {
				t.Errorf("killed at commit %d: %+v, %v", at, result.Order(), err)
			}
			if at == 1 && !made {
				_, err := well.PayOrder(ctx, order, nodetest.SandboxPayment("p"))
				nodetest.WantError(t, err, nil)
			}
			dying, commits := killed(t, db, 2, !made)
			_ = dying.IssueLicensesDue(t.Context())
			for {
				if err := well.IssueLicensesDue(t.Context()); err == nil {
					break
				}
			}
			wantLicenses(t, db, owner, order.OrderNo, quantity)
			if commits.Load() > 3 {
				t.Errorf("a dying sweep made %d commits", commits.Load())
			}
			order, err = well.Order(ctx, owner, order.OrderNo)
			nodetest.WantError(t, err, nil)
			dying, _ = killed(t, db, 4*at-3, made)
			_, err = dying.RecordRefund(ctx, order, service.MadeRefund{})
			if recorded := at > 1; (err == nil) != recorded {
				t.Errorf("the node is killed at commit %d of a refund: %v", 4*at-3, err)
			}
			_, err = well.RecordRefund(ctx, order, service.MadeRefund{})
			nodetest.WantError(t, err, nil)
			wantRevoked(t, well, owner, order.OrderNo, quantity)
		}
	}
}

// wantRevoked demands that an order is refunded, and all of its licenses are revoked.
func wantRevoked(t *testing.T, n *service.Service, owner licensing.Owner, orderNo string, want int) {
	t.Helper()
	order, err := n.Order(nodetest.Context(t), owner, orderNo)
	if err != nil || order.RefundedAt.IsZero() || order.Issued() != want {
		t.Errorf("the refunded order is %+v, %v", order, err)
	}
	page, revoked := store.Page{Limit: 100}, 0
	for more := true; more; more = page.Before != "" {
		filter := service.LicenseFilter{OrderNo: orderNo, Status: licensing.Revoked}
		list, err := n.ListLicenses(nodetest.Context(t), owner, filter, page)
		nodetest.WantError(t, err, nil)
		revoked, page.Before = revoked+len(list.Items), list.Next
	}
	if revoked != want {
		t.Errorf("%d licenses are revoked, want %d", revoked, want)
	}
}

// TestRefundStopsIssue refunds an order while its licenses are being issued, also by a node that does not know that.
func TestRefundStopsIssue(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	owner := nodetest.NewOwner(licensing.Test)
	order := orderMany(t, n, owner)
	dying, _ := killed(t, db, 2, false)
	paid, err := dying.PayOrder(ctx, order, nodetest.SandboxPayment("p"))
	nodetest.WantError(t, err, nil)
	_, _, err = n.ChangeOrder(ctx, owner, order.OrderNo, licensing.RequestRefund{By: "key_1", Reason: "r"}, nil)
	nodetest.WantError(t, err, nil)
	nodetest.WantError(t, n.IssueLicensesDue(t.Context()), nil)
	wantLicenses(t, db, owner, order.OrderNo, store.MaxNewLicenses)
	_, err = n.RecordRefund(ctx, paid.Order(), service.MadeRefund{})
	nodetest.WantError(t, err, nil)
	nodetest.WantError(t, n.IssueLicensesDue(t.Context()), nil)
	again, err := n.PayOrder(ctx, order, nodetest.SandboxPayment("p"))
	nodetest.WantError(t, err, nil)
	if new(again.Order()).Issued() != store.MaxNewLicenses {
		t.Errorf("after the refund, the order has %d licenses", new(again.Order()).Issued())
	}
	wantRevoked(t, n, owner, order.OrderNo, store.MaxNewLicenses)
}

// TestRefundMeetsIssue records refunds that no request announced, while other nodes issue the licenses: whatever is
// issued is revoked.
func TestRefundMeetsIssue(t *testing.T) {
	db, other := nodetest.OpenStore(t), nodetest.OpenStore(t)
	n, issuing := nodetest.New(t, db), nodetest.New(t, other)
	for range 3 {
		owner := nodetest.NewOwner(licensing.Test)
		order := orderMany(t, n, owner)
		dying, _ := killed(t, db, 2, false)
		_, err := dying.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment("p"))
		nodetest.WantError(t, err, nil)
		var group sync.WaitGroup
		group.Go(func() { _ = issuing.IssueLicensesDue(t.Context()) })
		for {
			_, err := n.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
			if err == nil {
				break
			}
			if !licensing.NotExecuted(err) {
				t.Fatal(err)
			}
		}
		group.Wait()
		now, err := n.Order(nodetest.Context(t), owner, order.OrderNo)
		nodetest.WantError(t, err, nil)
		wantRevoked(t, n, owner, order.OrderNo, now.Issued())
		wantLicenses(t, db, owner, order.OrderNo, now.Issued())
	}
}

// TestPaidByManyAtOnce confirms the payment of one order on two nodes at once, and sweeps meanwhile.
func TestPaidByManyAtOnce(t *testing.T) {
	db, other := nodetest.OpenStore(t), nodetest.OpenStore(t)
	nodes := []*service.Service{nodetest.New(t, db), nodetest.New(t, other)}
	owner := nodetest.NewOwner(licensing.Test)
	order := orderMany(t, nodes[0], owner)
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			_, err := nodes[i%2].PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment("p"))
			nodetest.WantError(t, err, nil)
			_ = nodes[i%2].IssueLicensesDue(t.Context())
		})
	}
	group.Wait()
	_, err := nodes[0].PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment("p"))
	nodetest.WantError(t, err, nil)
	wantLicenses(t, db, owner, order.OrderNo, quantity)
}

// TestListOfMany lists the licenses of a buyer, page by page, between those of other orders of the buyer.
func TestListOfMany(t *testing.T) {
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	byOrder := map[string][]licensing.LicenseKey{}
	for _, of := range []int{1, quantity, 1, quantity, quantity, 1} {
		in := nodetest.NewOrder(0)
		in.Quantity, in.BuyerEmail = of, "buyer@example.com"
		order, _, err := n.CreateOrder(nodetest.Context(t), owner, in)
		nodetest.WantError(t, err, nil)
		keys, err := n.OrderKeys(nodetest.Context(t), &order)
		nodetest.WantError(t, err, nil)
		byOrder[order.OrderNo] = keys
	}
	var want []licensing.LicenseKey
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(byOrder))) { // the newest order comes first
		want = append(want, byOrder[number]...)
	}
	for _, limit := range []int{1, 7, 32, 69, 70, 71, 100} {
		page := store.Page{Limit: limit}
		var got []licensing.LicenseKey
		for more := true; more; more = page.Before != "" {
			list, err := n.ListLicenses(nodetest.Context(t), owner, service.LicenseFilter{
				Customer: licensing.Customer{BuyerEmail: "Buyer@example.com"}}, page)
			nodetest.WantError(t, err, nil)
			if len(list.Items) > limit {
				t.Errorf("a page of %d has %d licenses", limit, len(list.Items))
			}
			for i := range list.Items {
				got = append(got, list.Items[i].License.Key)
			}
			page.Before = list.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d list %d licenses, want %d in the order of their orders", limit, len(got), len(want))
		}
	}
}

// TestRedactOrderOfMany redacts an order for many licenses, with what the shop has noted at some of them.
func TestRedactOrderOfMany(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	result, err := n.PayOrder(nodetest.Context(t), orderMany(t, n, owner), nodetest.SandboxPayment("p"))
	nodetest.WantError(t, err, nil)
	keys, err := n.OrderKeys(nodetest.Context(t), new(result.Order()))
	nodetest.WantError(t, err, nil)
	for _, i := range []int{0, 1, 40, quantity - 1} {
		_, err := n.Do(nodetest.Context(t), licensing.LicenseRef(keys[i]), licensing.UpdateLicense{
			Target: licensing.Target{Key: keys[i]}, Metadata: `{"name":"Ann"}`})
		nodetest.WantError(t, err, nil)
	}
	done, _, err := n.Redact(nodetest.Context(t), owner, named("buyer@example.com"), nil)
	if err != nil || !done.Complete || done.Orders != 1 || done.Licenses != quantity {
		t.Errorf("redacted %+v, %v", done, err)
	}
	for _, i := range []int{0, 1, 40, quantity - 1} {
		view, err := n.License(nodetest.Context(t), owner, keys[i], store.DevicePage{})
		if err != nil || view.Metadata.Object != "" {
			t.Errorf("license %d still has %+v, %v", i, view.Metadata, err)
		}
	}
}
