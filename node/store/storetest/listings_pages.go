package storetest

import (
	"strings"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// testListScan lists with filters that select nothing.
func testListScan(t *testing.T, f fixture) {
	const licenses, scan = 23, 5
	owner := f.owner()
	for i := range licenses {
		f.grantAt(owner, "pro", created.Add(time.Duration(i)*time.Second), "")
		f.orderAt(owner, "ada@example.com", created.Add(time.Duration(i)*time.Second))
	}
	looked, pages := 0, 0
	read := map[string]func(store.Page) (store.Position, int, error){
		"licenses": func(page store.Page) (store.Position, int, error) {
			list, err := f.licenses(owner, "", func(*store.LicenseView) bool { looked++; return false })(page)
			return list.Next, len(list.Items), err
		},
		"orders": func(page store.Page) (store.Position, int, error) {
			list, err := f.orders(owner, "", func(*licensing.Order) bool { looked++; return false })(page)
			return list.Next, len(list.Items), err
		},
		"orders of a buyer": func(page store.Page) (store.Position, int, error) {
			list, err := f.orders(owner, "ada@example.com",
				func(*licensing.Order) bool { looked++; return false })(page)
			return list.Next, len(list.Items), err
		},
	}
	for name, one := range read {
		looked, pages = 0, 0
		for page := (store.Page{Limit: 3, Scan: scan}); ; {
			before := looked
			next, items, err := one(page)
			if err != nil {
				t.Fatal(err)
			}
			if items != 0 || looked-before > scan {
				t.Fatalf("%s: a page looked at %d, and has %d", name, looked-before, items)
			}
			pages++
			if page.Before = next; next == "" {
				break
			}
		}
		if looked != licenses || pages != (licenses+scan-1)/scan {
			t.Errorf("%s: %d pages looked at %d of %d", name, pages, looked, licenses)
		}
	}
}

// testListStable adds licenses between two pages, some of them older: clocks differ. Every license that existed at the
// first page is listed once.
func testListStable(t *testing.T, f fixture) {
	owner := f.owner()
	there := make(map[licensing.LicenseKey]int)
	for i := range 12 {
		there[f.grantAt(owner, "pro", created.Add(time.Duration(i/2)*time.Second), "").Key] = 0
	}
	var last time.Time
	page := store.Page{Limit: 2}
	for round := 0; ; round++ {
		list, err := f.licenses(owner, "", nil)(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, view := range list.Items {
			if _, was := there[view.License.Key]; was {
				there[view.License.Key]++
			}
			if at := view.License.CreatedAt; !last.IsZero() && at.After(last) {
				t.Errorf("%v is listed after %v", at, last)
			} else {
				last = at
			}
		}
		if page.Before = list.Next; page.Before == "" {
			break
		}
		if round < 8 {
			for _, offset := range []time.Duration{-time.Hour, 0, 2500 * time.Millisecond, 5 * time.Second, time.Hour} {
				f.grantAt(owner, "pro", created.Add(offset), "")
			}
		}
	}
	for key, times := range there {
		if times != 1 {
			t.Errorf("a license that was there is listed %d times: %s", times, key)
		}
	}
}

// testListAnywhere lists from positions that no page has returned.
func testListAnywhere(t *testing.T, f fixture) {
	owner := f.owner()
	l := f.grantAt(owner, "pro", created, "")
	order := f.orderAt(owner, "ada@example.com", created)
	f.putProduct(productWrite(owner, "pro", created, nil))
	for position, behind := range map[store.Position]bool{"\x00": false, "\xff": true,
		store.Position(strings.Repeat("\xff", 200)): true} {
		page := store.Page{Before: position, Limit: 5}
		views, err := f.licenses(owner, "", nil)(page)
		if err != nil || (len(views.Items) == 1 && views.Items[0].License.Key == l.Key) != behind || views.Next != "" {
			t.Errorf("licenses before %q: %+v, %v", position, views, err)
		}
		for _, email := range []string{"", "ada@example.com"} {
			orders, err := f.orders(owner, email, nil)(page)
			if err != nil || (len(orders.Items) == 1 && orders.Items[0].OrderNo == order.OrderNo) != behind ||
				orders.Next != "" {
				t.Errorf("orders before %q: %+v, %v", position, orders, err)
			}
		}
		products, err := f.products(owner)(page)
		if err != nil || (len(products.Items) == 1) != behind || products.Next != "" {
			t.Errorf("products before %q: %+v, %v", position, products, err)
		}
	}
}
