package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node/store"
)

// RunListings checks what a store lists against the contract of store.Listings.
func RunListings(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, fixture)
	}{
		{"licenses, newest first", testListLicenses},
		{"licenses with many devices", testListDevices},
		{"orders, newest first", testListOrders},
		{"orders of a period", testListPeriod},
		{"orders and licenses of a buyer", testListBuyer},
		{"an address that is removed", testListFormerBuyer},
		{"granted licenses of a customer", testListCustomer},
		{"a customer that changes", testListFormerCustomer},
		{"products, which come and go", testListProducts},
		{"a page looks at so many and no more", testListScan},
		{"records that are added while a list is read", testListStable},
		{"any position is a place", testListAnywhere},
	} {
		t.Run("listings: "+c.name, func(t *testing.T) {
			c.test(t, fixture{t: t, store: open(t), keys: Keys()})
		})
	}
}

// all reads a listing page by page.
func all[T any](f fixture, limit int, read func(store.Page) (store.List[T], error)) (items []T) {
	f.t.Helper()
	page := store.Page{Limit: limit}
	for {
		list, err := read(page)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(list.Items) > limit {
			f.t.Fatalf("a page of %d has %d", limit, len(list.Items))
		}
		items = append(items, list.Items...)
		if page.Before = list.Next; page.Before == "" {
			return items
		}
	}
}

func (f fixture) licenses(
	owner licensing.Owner, email string, keep func(*store.LicenseView) bool,
) func(store.Page) (store.List[store.LicenseView], error) {
	return func(page store.Page) (store.List[store.LicenseView], error) {
		return f.store.ListLicenses(f.context(), owner, licensing.Customer{BuyerEmail: email}, page, keep)
	}
}

func (f fixture) orders(
	owner licensing.Owner, email string, keep func(*licensing.Order) bool,
) func(store.Page) (store.List[licensing.Order], error) {
	return func(page store.Page) (store.List[licensing.Order], error) {
		return f.store.ListOrders(f.context(), owner, email, page, keep)
	}
}

func (f fixture) products(owner licensing.Owner) func(store.Page) (store.List[licensing.Product], error) {
	return func(page store.Page) (store.List[licensing.Product], error) {
		return f.store.ListProducts(f.context(), owner, page)
	}
}

func keysOf(views []store.LicenseView) (keys []licensing.LicenseKey) {
	for i := range views {
		keys = append(keys, views[i].License.Key)
	}
	return keys
}

func numbersOf(orders []licensing.Order) (numbers []string) {
	for i := range orders {
		numbers = append(numbers, orders[i].OrderNo)
	}
	return numbers
}

// grantAt stores a license that was created at a time.
func (f fixture) grantAt(owner licensing.Owner, product string, at time.Time, metadata string) *licensing.License {
	f.t.Helper()
	l := licensing.Terms{KeyPrefix: "LIC", MaxDevices: 0}.Issue(f.key(owner), owner, product, "", at)
	f.mustLand(store.Write{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{
		License: l, Metadata: &licensing.Metadata{Object: metadata, Changed: metadata != ""},
	}})
	return l
}

// orderAt stores an order that was created at a time.
func (f fixture) orderAt(owner licensing.Owner, email string, at time.Time) *licensing.Order {
	f.t.Helper()
	order := f.order(owner)
	order.OrderNo = licensing.NewOrderNo(owner, ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String())
	order.BuyerEmail, order.CreatedAt = email, at
	f.mustLand(store.Write{Ref: licensing.OrderRef(owner, order.OrderNo), Record: licensing.Record{Order: order}})
	return order
}

// payAt pays an order, and returns its license.
func (f fixture) payAt(order *licensing.Order, at time.Time) licensing.LicenseKey {
	f.t.Helper()
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	snapshot := f.load(ref)
	key := f.key(order.Owner)
	if _, err := licensing.Apply(&snapshot.Record, licensing.PayOrder{Payment: "p", Terms: order.Terms, Key: key},
		at); err != nil {
		f.t.Fatal(err)
	}
	f.mustLand(store.Write{Ref: ref, Token: snapshot.Token, Record: snapshot.Record})
	return key
}

// neighbors returns owners other than the given one, whose records must not show up in its lists.
func neighbors(owner licensing.Owner) []licensing.Owner {
	return []licensing.Owner{
		{AccountID: owner.AccountID, Mode: licensing.Live},
		{AccountID: owner.AccountID + "x", Mode: owner.Mode},
		{AccountID: owner.AccountID[:len(owner.AccountID)-1], Mode: owner.Mode},
	}
}

func testListLicenses(t *testing.T, f fixture) {
	owner := f.owner()
	for _, other := range neighbors(owner) {
		f.grantAt(other, "pro", created, "")
	}
	var want []store.LicenseView
	for i := range 9 {
		metadata := ""
		if i == 4 {
			metadata = `{"seat":4}`
		}
		product := []string{"pro", "lite"}[i%2]
		l := f.grantAt(owner, product, created.Add(time.Duration(i/3)*time.Millisecond), metadata) // three in each
		want = append(want, store.LicenseView{License: *l, Metadata: licensing.Metadata{Object: metadata}})
	}
	slices.SortFunc(want, func(a, b store.LicenseView) int {
		if byTime := b.License.CreatedAt.Compare(a.License.CreatedAt); byTime != 0 {
			return byTime
		}
		x, y := a.License.Key.ID(), b.License.Key.ID()
		return slices.Compare(y[:], x[:])
	})
	var lite []store.LicenseView
	for _, view := range want {
		if view.License.ProductID == "lite" {
			lite = append(lite, view)
		}
	}
	for _, limit := range []int{1, 2, 3, 8, 9, 10, store.MaxListPage} {
		f.equal("licenses", all(f, limit, f.licenses(owner, "", nil)), want)
		f.equal("licenses of a product", all(f, limit,
			f.licenses(owner, "", func(v *store.LicenseView) bool { return v.License.ProductID == "lite" })), lite)
	}
	if list, err := f.licenses(f.owner(), "", nil)(store.Page{Limit: 5}); err != nil || len(list.Items) != 0 ||
		list.Next != "" {
		t.Errorf("list of an owner without licenses: %+v, %v", list, err)
	}
	list, err := f.licenses(owner, "", nil)(store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if id := list.Items[0].License.Key.ID(); strings.Contains(string(list.Next), string(id[8:])) {
		t.Error("a position shows the whole key of a license")
	}
}

// testListDevices lists licenses whose devices a store may keep apart from the license's record.
func testListDevices(t *testing.T, f fixture) {
	owner := f.owner()
	bare := f.grantAt(owner, "pro", created, "")
	few := f.grantAt(owner, "pro", created.Add(time.Second), "")
	f.activate(few, created, deviceNames(0, 3)...)
	many := f.grantAt(owner, "pro", created.Add(2*time.Second), "")
	f.activate(many, created, deviceNames(0, 40)...)
	views := all(f, 10, f.licenses(owner, "", nil))
	f.equal("licenses", keysOf(views), []licensing.LicenseKey{many.Key, few.Key, bare.Key})
	for i, count := range []int{40, 3, 0} {
		whole := len(views[i].Devices) == count && views[i].Next == nil
		none := len(views[i].Devices) == 0 && views[i].Next != nil && *views[i].Next == store.DeviceCursor{}
		if views[i].License.CurrentDevices != count || !whole && (!none || count == 0) {
			t.Errorf("of %d devices %d are listed, and %v is next", count, len(views[i].Devices), views[i].Next)
		}
	}
	again, err := f.store.ReadLicenses(f.context(), []licensing.LicenseKey{many.Key, few.Key, bare.Key}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		f.equal("the same, read by their keys", again[i], &views[i])
	}
}

func testListOrders(t *testing.T, f fixture) {
	owner := f.owner()
	for _, other := range neighbors(owner) {
		f.orderAt(other, "ada@example.com", created)
	}
	var want, big []licensing.Order
	for i := range 7 {
		order := f.orderAt(owner, "", created.Add(time.Duration(i)*time.Second))
		want = append(want, *order)
		if i%3 == 0 {
			big = append(big, *order)
		}
	}
	slices.Reverse(want)
	slices.Reverse(big)
	for _, limit := range []int{1, 3, 7, 8, store.MaxListPage} {
		f.equal("orders", all(f, limit, f.orders(owner, "", nil)), want)
		f.equal("some orders", all(f, limit, f.orders(owner, "", func(o *licensing.Order) bool {
			return slices.ContainsFunc(big, func(b licensing.Order) bool { return b.OrderNo == o.OrderNo })
		})), big)
	}
}

func testListPeriod(t *testing.T, f fixture) {
	owner := f.owner()
	for _, other := range neighbors(owner) {
		f.orderAt(other, "ada@example.com", created)
	}
	var numbers []string
	at := func(i int) time.Time { return created.Add(time.Duration(i) * time.Millisecond) }
	for i := range 8 {
		numbers = append(numbers, f.orderAt(owner, "ada@example.com", at(i)).OrderNo)
	}
	slices.Reverse(numbers) // the last number is that of the oldest order
	for from := -1; from <= 8; from++ {
		for to := from; to <= 9; to++ {
			period := licensing.TimeRange{From: at(from), To: at(to)}
			want := numbers[len(numbers)-min(max(to, 0), 8) : len(numbers)-min(max(from, 0), 8)]
			if from < 0 {
				period.From = time.Time{}
			}
			if to > 8 {
				period.To, want = time.Time{}, numbers[:len(numbers)-min(max(from, 0), 8)]
			}
			for _, email := range []string{"", "Ada@example.com"} {
				for _, limit := range []int{1, 3, 100} {
					got := all(f, limit, func(page store.Page) (store.List[licensing.Order], error) {
						page.Created = period
						return f.store.ListOrders(f.context(), owner, email, page, nil)
					})
					if !slices.Equal(numbersOf(got), want) {
						t.Errorf("%d to %d, %d at a time: %q, want %q", from, to, limit, numbersOf(got), want)
					}
				}
			}
		}
	}
}

func testListBuyer(t *testing.T, f fixture) {
	owner := f.owner()
	for _, other := range neighbors(owner) {
		f.payAt(f.orderAt(other, "ada@example.com", created), created)
	}
	f.payAt(f.orderAt(owner, "bob@example.com", created), created)
	var numbers []string
	var keys []licensing.LicenseKey
	for i := range 6 {
		email := []string{"ada@example.com", "Ada@Example.COM"}[i%2]
		order := f.orderAt(owner, email, created.Add(time.Duration(i)*time.Second))
		numbers = append(numbers, order.OrderNo)
		if i != 2 {
			keys = append(keys, f.payAt(order, created.Add(time.Minute)))
		}
	}
	slices.Reverse(numbers)
	slices.Reverse(keys)
	for _, limit := range []int{1, 2, 5, 6, 50} {
		for _, email := range []string{"ada@example.com", "ADA@EXAMPLE.COM"} {
			f.equal("orders", numbersOf(all(f, limit, f.orders(owner, email, nil))), numbers)
			f.equal("licenses", keysOf(all(f, limit, f.licenses(owner, email, nil))), keys)
		}
		first := func(v *store.LicenseView) bool { return v.License.Key == keys[len(keys)-1] }
		f.equal("one license", keysOf(all(f, limit, f.licenses(owner, "ada@example.com", first))), keys[len(keys)-1:])
	}
	if list, err := f.licenses(owner, "eve@example.com", nil)(store.Page{Limit: 5}); err != nil ||
		len(list.Items) != 0 || list.Next != "" {
		t.Errorf("of a stranger: %+v, %v", list, err)
	}
}

func testListFormerBuyer(t *testing.T, f fixture) {
	owner := f.owner()
	order := f.orderAt(owner, "ada@example.com", created)
	kept := f.orderAt(owner, "ada@example.com", created.Add(time.Second))
	f.payAt(order, created)
	for _, email := range []string{"Ada@example.com", "bob@example.com", ""} {
		snapshot := f.load(licensing.OrderRef(owner, order.OrderNo))
		snapshot.Record.Order.BuyerEmail = email
		f.mustLand(store.Write{Ref: licensing.OrderRef(owner, order.OrderNo), Token: snapshot.Token,
			Record: snapshot.Record})
		want := map[string][]string{"ada@example.com": {kept.OrderNo}, "bob@example.com": nil}
		switch email {
		case "Ada@example.com":
			want["ada@example.com"] = []string{kept.OrderNo, order.OrderNo}
		case "bob@example.com":
			want["bob@example.com"] = []string{order.OrderNo}
		}
		for buyer, numbers := range want {
			f.equal(fmt.Sprintf("orders of %s once it is %q", buyer, email),
				numbersOf(all(f, 1, f.orders(owner, buyer, nil))), numbers)
		}
		f.equal("all orders", numbersOf(all(f, 1, f.orders(owner, "", nil))), []string{kept.OrderNo, order.OrderNo})
	}
}

func testListProducts(t *testing.T, f fixture) {
	owner := f.owner()
	for _, other := range neighbors(owner) {
		f.putProduct(productWrite(other, "alien", created, nil))
	}
	var want []licensing.Product
	for i, id := range []string{"zeta", "alpha", "alpha.2", "0", "mid"} {
		write := productWrite(owner, id, created.Add(time.Duration(i)*time.Second), nil)
		f.putProduct(write)
		want = append(want, *write.Record.Product)
	}
	slices.Reverse(want)
	for _, limit := range []int{1, 2, 5, 6} {
		f.equal("products", all(f, limit, f.products(owner)), want)
	}

	// A changed product stays where it is, a removed product is gone, and a product that is created again is new.
	changed := productWrite(owner, "alpha", want[3].CreatedAt, f.load(licensing.ProductRef(owner, "alpha")).Token)
	changed.Record.Product.Terms.MaxDevices = 99
	f.putProduct(changed)
	want[3] = *changed.Record.Product
	f.equal("products, one changed", all(f, 2, f.products(owner)), want)

	f.putProduct(store.Write{Ref: licensing.ProductRef(owner, "zeta"),
		Token: f.load(licensing.ProductRef(owner, "zeta")).Token})
	f.equal("products, one gone", all(f, 2, f.products(owner)), want[:4])

	again := productWrite(owner, "zeta", created.Add(time.Hour), nil)
	f.putProduct(again)
	f.equal("products, one made again", all(f, 2, f.products(owner)),
		append([]licensing.Product{*again.Record.Product}, want[:4]...))
}

// putProduct makes, changes or removes a product. It does not remember its
// writers, so that a swap whose answer was lost may be taken for a loss.
func (f fixture) putProduct(write store.Write) {
	f.t.Helper()
	f.commit(write)
	f.equal("product", f.load(write.Ref).Record.Product, write.Record.Product)
}

func productWrite(owner licensing.Owner, id string, at time.Time, token store.Token) store.Write {
	product := &licensing.Product{ID: id, Owner: owner, Terms: licensing.DefaultTerms(), CreatedAt: at}
	return store.Write{Ref: licensing.ProductRef(owner, id), Token: token, Record: licensing.Record{Product: product}}
}
