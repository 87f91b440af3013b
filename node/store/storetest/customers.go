package storetest

import (
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// ofCustomer reads the licenses of a customer.
func (f fixture) ofCustomer(
	owner licensing.Owner, of licensing.Customer,
) func(store.Page) (store.List[store.LicenseView], error) {
	return func(page store.Page) (store.List[store.LicenseView], error) {
		return f.store.ListLicenses(f.context(), owner, of, page, nil)
	}
}

// grantTo stores a license of a customer that was created at a time.
func (f fixture) grantTo(owner licensing.Owner, at time.Time, customer licensing.Customer) licensing.LicenseKey {
	f.t.Helper()
	l := licensing.Terms{KeyPrefix: "LIC"}.Issue(f.key(owner), owner, "pro", "", at)
	f.mustLand(store.Write{Ref: licensing.LicenseRef(l.Key), Record: licensing.Record{
		License: l, Metadata: &licensing.Metadata{Customer: customer, Changed: true},
	}})
	return l.Key
}

// testListCustomer lists granted licenses and those of orders together: of a buyer, those of orders come first.
func testListCustomer(t *testing.T, f fixture) {
	owner := f.owner()
	for _, other := range neighbors(owner) {
		f.grantTo(other, created, licensing.Customer{BuyerEmail: "ada@example.com", Reference: "C-1"})
	}
	f.grantTo(owner, created, licensing.Customer{BuyerEmail: "bob@example.com", Reference: "c-1"})
	f.grantTo(owner, created, licensing.Customer{Reference: "ada@example.com"})
	var sold, granted, referenced, both []licensing.LicenseKey
	for i := range 9 {
		at := created.Add(time.Duration(i) * time.Second)
		switch i % 3 {
		case 0:
			sold = append(sold, f.payAt(f.orderAt(owner, "Ada@example.com", at), at))
		case 1:
			key := f.grantTo(owner, at, licensing.Customer{BuyerEmail: "ADA@example.com", Reference: "C-1"})
			granted, referenced, both = append(granted, key), append(referenced, key), append(both, key)
		case 2:
			granted = append(granted, f.grantTo(owner, at, licensing.Customer{BuyerEmail: "ada@example.com"}))
			referenced = append(referenced, f.grantTo(owner, at, licensing.Customer{Reference: "C-1"}))
		}
	}
	for _, want := range [][]licensing.LicenseKey{sold, granted, referenced, both} {
		slices.Reverse(want)
	}
	keys := append(sold, granted...)
	for _, limit := range []int{1, 2, 3, 4, 9, 50} {
		list := func(of licensing.Customer) []licensing.LicenseKey {
			return keysOf(all(f, limit, f.ofCustomer(owner, of)))
		}
		f.equal("licenses of a buyer", list(licensing.Customer{BuyerEmail: "aDa@example.com"}), keys)
		f.equal("licenses of a reference", list(licensing.Customer{Reference: "C-1"}), referenced)
		f.equal("licenses of both", list(licensing.Customer{BuyerEmail: "ada@example.com", Reference: "C-1"}), both)
	}
}

// testListFormerCustomer changes and removes the customer of a license.
func testListFormerCustomer(t *testing.T, f fixture) {
	owner := f.owner()
	ada := licensing.Customer{BuyerEmail: "ada@example.com", Reference: "C-1"}
	key := f.grantTo(owner, created, ada)
	ref := licensing.LicenseRef(key)
	customers := []licensing.Customer{ada, {}, {Reference: "C-2"}, {BuyerEmail: "Ada@example.com", Reference: "C-2"},
		{BuyerEmail: "bob@example.com"}, ada}
	for _, now := range customers {
		loaded, err := f.store.Load(f.context(), store.Want{Ref: ref, Metadata: true})
		if err != nil {
			t.Fatal(err)
		}
		record := loaded[0].Record
		record.Metadata.Customer, record.Metadata.Changed = now, true
		f.mustLand(store.Write{Ref: ref, Token: loaded[0].Token, Record: record})
		for _, of := range customers {
			var want []licensing.LicenseKey
			if now.Has(of) {
				want = append(want, key)
			}
			f.equal("licenses of a customer", keysOf(all(f, 1, f.ofCustomer(owner, of))), want)
		}
	}
}
