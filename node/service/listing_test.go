package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// listed reads a whole listing, a few records at a time.
func listed[T any](t *testing.T, read func(store.Page) (store.List[T], error)) (items []T) {
	t.Helper()
	page := store.Page{Limit: 7}
	for {
		list, err := read(page)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, list.Items...)
		if page.Before = list.Next; page.Before == "" {
			return items
		}
	}
}

func licensesOf(
	t *testing.T, n *service.Service, owner licensing.Owner, filter service.LicenseFilter,
) (keys []licensing.LicenseKey) {
	t.Helper()
	for _, view := range listed(t, func(page store.Page) (store.List[store.LicenseView], error) {
		return n.ListLicenses(nodetest.Context(t), owner, filter, page)
	}) {
		keys = append(keys, view.License.Key)
	}
	return keys
}

func ordersOf(t *testing.T, n *service.Service, owner licensing.Owner, filter service.OrderFilter) (numbers []string) {
	t.Helper()
	for _, order := range listed(t, func(page store.Page) (store.List[licensing.Order], error) {
		return n.ListOrders(nodetest.Context(t), owner, filter, page)
	}) {
		numbers = append(numbers, order.OrderNo)
	}
	return numbers
}

func productsOf(t *testing.T, n *service.Service, owner licensing.Owner) (ids []string) {
	t.Helper()
	for _, product := range listed(t, func(page store.Page) (store.List[licensing.Product], error) {
		return n.ListProducts(nodetest.Context(t), owner, page)
	}) {
		ids = append(ids, product.ID)
	}
	return ids
}

func same[T any](t *testing.T, what string, got, want []T) {
	t.Helper()
	sorted := func(all []T) (texts []string) {
		for _, one := range all {
			texts = append(texts, fmt.Sprint(one))
		}
		slices.Sort(texts)
		return texts
	}
	if got, want := sorted(got), sorted(want); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestNewRecordsAreListed: lists show records however they were made: licenses of grants and orders, free orders, and
// the products that test mode makes with an order.
func TestNewRecordsAreListed(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	var keys []licensing.LicenseKey
	granted, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{
		ProductID: "granted", Quantity: 2*store.MaxNewLicenses + 5, Metadata: `{"a":1}`,
		Once: &node.Once{Hash: "0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range granted {
		keys = append(keys, view.License.Key)
	}
	order := func(product, email string, amount int64) licensing.Order {
		t.Helper()
		made, _, err := n.CreateOrder(nodetest.Context(t), owner,
			service.NewOrder{ProductID: product, Amount: amount, Currency: "USD", BuyerEmail: email})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	unpaid, free, paid := order("sold", "ada@example.com", 5), order("free", "ADA@example.com", 0), order("sold",
		"bob@example.com", 5)
	result, err := n.PayOrder(nodetest.Context(t), paid, nodetest.SandboxPayment(paid.OrderNo))
	if err != nil {
		t.Fatal(err)
	}
	paid = result.Order()
	keys = append(keys, free.LicenseKey, paid.LicenseKey)

	same(t, "licenses", licensesOf(t, n, owner, service.LicenseFilter{}), keys)
	same(t, "orders", ordersOf(t, n, owner, service.OrderFilter{}),
		[]string{unpaid.OrderNo, free.OrderNo, paid.OrderNo})
	same(t, "products", productsOf(t, n, owner), []string{"granted", "sold", "free"})
	same(t, "a buyer's orders", ordersOf(t, n, owner, service.OrderFilter{BuyerEmail: "Ada@Example.com"}),
		[]string{unpaid.OrderNo, free.OrderNo})
	same(t, "a buyer's licenses", licensesOf(t, n, owner, service.LicenseFilter{Customer: ofBuyer("Ada@Example.com")}),
		[]licensing.LicenseKey{free.LicenseKey})
	same(t, "paid orders", ordersOf(t, n, owner, service.OrderFilter{Status: licensing.OrderPaid}),
		[]string{free.OrderNo, paid.OrderNo})
	same(t, "sold licenses", licensesOf(t, n, owner, service.LicenseFilter{ProductID: "sold"}),
		[]licensing.LicenseKey{paid.LicenseKey})

	for _, c := range []struct {
		filter service.LicenseFilter
		want   []licensing.LicenseKey
	}{
		{service.LicenseFilter{OrderNo: paid.OrderNo}, []licensing.LicenseKey{paid.LicenseKey}},
		{service.LicenseFilter{OrderNo: paid.OrderNo, Customer: ofBuyer("BOB@example.com"), ProductID: "sold",
			Status: licensing.NotActivated}, []licensing.LicenseKey{paid.LicenseKey}},
		{service.LicenseFilter{OrderNo: paid.OrderNo, Customer: ofBuyer("ada@example.com")}, nil},
		{service.LicenseFilter{OrderNo: paid.OrderNo, ProductID: "free"}, nil},
		{service.LicenseFilter{OrderNo: paid.OrderNo, Status: licensing.Activated}, nil},
		{service.LicenseFilter{OrderNo: unpaid.OrderNo}, nil},
		{service.LicenseFilter{OrderNo: "ord_0000000000000000000000000000"}, nil},
	} {
		same(t, fmt.Sprintf("%+v", c.filter), licensesOf(t, n, owner, c.filter), c.want)
	}
	stranger := nodetest.NewOwner(licensing.Test)
	same(t, "a stranger's licenses by the order",
		licensesOf(t, n, stranger, service.LicenseFilter{OrderNo: paid.OrderNo}), nil)
	same(t, "a stranger's orders", ordersOf(t, n, stranger, service.OrderFilter{}), nil)
	same(t, "a stranger's products", productsOf(t, n, stranger), nil)
}

func ofBuyer(email string) licensing.Customer { return licensing.Customer{BuyerEmail: email} }

// API keys are listed as they are made, with what has become of them.
func TestKeysAreListed(t *testing.T) {
	db := nodetest.OpenStore(t)
	maker, n := keymaker(t, db), nodetest.New(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	owner.AccountID = strings.ToLower(owner.AccountID)
	var want []licensing.APIKey
	for range 9 {
		want = append(want, issue(t, maker, func(k *service.NewKey) { k.Owner = owner }).Key)
	}
	revoke(t, maker, want[4])
	slices.SortFunc(want, func(a, b licensing.APIKey) int { return strings.Compare(b.ID, a.ID) })
	got := listed(t, func(page store.Page) (store.List[licensing.APIKey], error) {
		return n.ListAPIKeys(nodetest.Context(t), owner, page)
	})
	if !slices.EqualFunc(got, want, func(a, b licensing.APIKey) bool { return a.ID == b.ID && a.Hash == b.Hash }) {
		t.Errorf("listed %+v, want %+v", got, want)
	}
	if revoked := slices.DeleteFunc(got,
		func(k licensing.APIKey) bool { return k.RevokedAt.IsZero() }); len(revoked) != 1 {
		t.Errorf("%d of them are revoked", len(revoked))
	}
}

// TestListWhileOthersMake: two nodes make licenses while a third node reads their list page by page.
func TestListWhileOthersMake(t *testing.T) {
	reader := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	made := func(n *service.Service, quantity int) (keys []licensing.LicenseKey) {
		granted, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "pro", Quantity: quantity})
		if err != nil {
			t.Error(err)
		}
		for _, view := range granted {
			keys = append(keys, view.License.Key)
		}
		return keys
	}
	there := made(reader, 150)
	stop := make(chan struct{})
	var makers sync.WaitGroup
	for range 2 {
		n := nodetest.New(t, nodetest.OpenStore(t))
		makers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					made(n, 3)
				}
			}
		})
	}
	for range 3 {
		times := map[licensing.LicenseKey]int{}
		for _, key := range licensesOf(t, reader, owner, service.LicenseFilter{}) {
			times[key]++
		}
		for _, key := range there {
			if times[key] != 1 {
				t.Errorf("a license from before the list is listed %d times", times[key])
			}
		}
	}
	close(stop)
	makers.Wait()
}

// TestListUnavailable: each list returns the error of a store that can't be read.
func TestListUnavailable(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	ended, cancel := context.WithCancel(nodetest.Context(t))
	cancel()
	for name, list := range map[string]func() error{
		"licenses": func() error {
			_, err := n.ListLicenses(ended, nodetest.Owner, service.LicenseFilter{}, store.Page{})
			return err
		},
		"licenses of a buyer": func() error {
			_, err := n.ListLicenses(ended, nodetest.Owner, service.LicenseFilter{Customer: ofBuyer("ada@example.com")},
				store.Page{})
			return err
		},
		"the license of an order": func() error {
			_, err := n.ListLicenses(ended, nodetest.Owner,
				service.LicenseFilter{OrderNo: "ord_0000000000000000000000000000"}, store.Page{})
			return err
		},
		"orders": func() error {
			_, err := n.ListOrders(ended, nodetest.Owner, service.OrderFilter{}, store.Page{})
			return err
		},
		"products": func() error { _, err := n.ListProducts(ended, nodetest.Owner, store.Page{}); return err },
		"API keys": func() error { _, err := n.ListAPIKeys(ended, nodetest.Owner, store.Page{}); return err },
	} {
		t.Run(name, func(t *testing.T) { nodetest.WantError(t, list(), licensing.ErrUnavailable) })
	}
}

// slowLists is a store whose lists of orders wait until they are let go.
type slowLists struct {
	store.Store
	began chan struct{}
	goOn  chan struct{}
}

func (s slowLists) ListOrders(
	ctx context.Context, owner licensing.Owner, buyer string, page store.Page, keep func(*licensing.Order) bool,
) (store.List[licensing.Order], error) {
	s.began <- struct{}{}
	<-s.goOn
	return s.Store.ListOrders(ctx, owner, buyer, page, keep)
}

// TestListsAtOnce asks for more pages than the node reads at the same time. A bounded number of the other pages waits
// for a bounded time, and commands go on meanwhile. Owners share the places: an owner has half of them at most, and
// another owner's page is read at once.
func TestListsAtOnce(t *testing.T) {
	const atOnce, waiting = 8, 16 // of all owners
	plain := nodetest.OpenStore(t)
	db := slowLists{Store: plain, began: make(chan struct{}, 2*(atOnce+waiting)), goOn: make(chan struct{})}
	n := nodetest.New(t, db)
	greedy := nodetest.NewOwner(licensing.Test)
	list := func(ctx context.Context, owner licensing.Owner) error {
		_, err := n.ListOrders(ctx, owner, service.OrderFilter{}, store.Page{Limit: 1})
		return err
	}
	var group sync.WaitGroup
	start := func(owner licensing.Owner, lists int) {
		for range lists {
			group.Go(func() { nodetest.WantError(t, list(nodetest.Context(t), owner), nil) })
		}
	}
	awaitBegun := func(lists int) {
		t.Helper()
		for range lists {
			<-db.began
		}
		if len(db.began) != 0 {
			t.Errorf("%d more pages are read than allowed", len(db.began))
		}
	}
	start(greedy, atOnce/2+waiting/2)
	awaitBegun(atOnce / 2)
	n.AwaitListsWaiting(waiting / 2)
	nodetest.WantError(t, list(nodetest.Context(t), greedy), licensing.ErrOverloaded)
	for _, free := range []int{2, 1, 1} {
		start(nodetest.NewOwner(licensing.Test), free)
		awaitBegun(free)
	}
	start(nodetest.NewOwner(licensing.Test), 1)
	n.AwaitListsWaiting(waiting/2 + 1)
	awaitBegun(0)
	nodetest.Grant(t, n, 1)
	close(db.goOn)
	group.Wait()

	// A list whose time is up while it waits is refused, and leaves no trace.
	for len(db.began) > 0 {
		<-db.began
	}
	db.goOn = make(chan struct{})
	n = nodetest.New(t, db)
	start(greedy, atOnce/2)
	awaitBegun(atOnce / 2)
	ctx, cancel := context.WithCancel(nodetest.Context(t))
	group.Go(func() { nodetest.WantError(t, list(ctx, greedy), licensing.ErrOverloaded) })
	n.AwaitListsWaiting(1)
	cancel()
	n.AwaitListsWaiting(0)
	close(db.goOn)
	group.Wait()
	if n.InFlight() != 0 {
		t.Errorf("%d places are still taken", n.InFlight())
	}
}
