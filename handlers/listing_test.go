package handlers_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
)

// list reads a listing page by page, and returns one member of each item.
func (s *fixture) list(path, plural, member string, query string, limit int) (values []string) {
	s.t.Helper()
	next := ""
	for range 1000 {
		a := s.send("GET", fmt.Sprintf("%s?limit=%d&%s%s", path, limit, query, next), keyAll, "").must(s.t, 0)
		items := a.data[plural].([]any)
		if len(items) > limit {
			s.t.Fatalf("%s %s: a page of %d has %d", path, query, limit, len(items))
		}
		for _, item := range items {
			value, _ := item.(map[string]any)[member].(string)
			values = append(values, value)
		}
		if a.data["next_cursor"] == nil {
			return values
		}
		next = "&cursor=" + a.text("next_cursor")
	}
	s.t.Fatalf("%s %s has no end", path, query)
	return nil
}

// sale is one order of a shop.
type sale struct{ product, buyer, order, key string }

// sell makes orders of two products for two buyers, and pays all but one in five. The newest order comes first.
func (s *fixture) sell(n int) (sales []sale) {
	s.t.Helper()
	for i := range n {
		one := sale{product: []string{"editor", "viewer", "editor"}[i%3],
			buyer: []string{"ada@example.com", "Bob+1@example.com"}[i%2]}
		made := s.send("POST", "/v1/orders", keyAll,
			fmt.Sprintf(`{"product_id":%q,"amount":1,"currency":"USD","buyer_email":%q}`, one.product,
				one.buyer)).must(s.t, 0)
		one.order = made.text("order_no")
		if i%5 != 4 {
			s.pay(made)
			one.key = s.sendWire(s.lookup(made)).must(s.t, 0).text("license_key")
		}
		sales = append(sales, one)
		s.clock.advance(time.Second)
	}
	slices.Reverse(sales)
	return sales
}

// pick returns one member of the wanted sales.
func pick(sales []sale, member func(sale) string, want func(sale) bool) (values []string) {
	for _, one := range sales {
		if value := member(one); value != "" && want(one) {
			values = append(values, value)
		}
	}
	return values
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	s := newService(t)
	sales := s.sell(23)
	s.send("POST", "/v1/orders", keyOther,
		`{"product_id":"editor","amount":0,"currency":"USD","buyer_email":"ada@example.com"}`).must(t, 0)
	revoked := sales[4].key
	s.change(revoked, "revoke", "").must(t, 0)
	s.activate(sales[5].key, "d1").must(t, 0)
	number := func(one sale) string { return one.order }
	key := func(one sale) string { return one.key }
	paid := func(one sale) bool { return one.key != "" }
	of := func(buyer string) func(sale) bool {
		return func(one sale) bool { return strings.EqualFold(one.buyer, buyer) }
	}
	both := func(a, b func(sale) bool) func(sale) bool {
		return func(one sale) bool { return a(one) && b(one) }
	}
	everything := func(sale) bool { return true }
	editor := func(one sale) bool { return one.product == "editor" }
	bob := "buyer_email=" + url.QueryEscape("BOB+1@Example.com")

	f := func(path, plural, member, query string, want []string) {
		t.Helper()
		for _, limit := range []int{1, 4, 100} {
			if got := s.list(path, plural, member, query, limit); !slices.Equal(got, want) {
				t.Errorf("%s?%s, %d at a time: %q, want %q", path, query, limit, got, want)
			}
		}
	}
	orders := func(query string, want func(sale) bool) {
		t.Helper()
		f("/v1/orders", "orders", "order_no", query, pick(sales, number, want))
	}
	licenses := func(query string, want func(sale) bool) {
		t.Helper()
		f("/v1/licenses", "licenses", "license_key", query, pick(sales, key, want))
	}
	orders("", everything)
	orders("status=paid", paid)
	orders("status=unpaid", func(one sale) bool { return one.key == "" })
	orders("status=refunded", func(sale) bool { return false })
	orders("product_id=editor", editor)
	orders("product_id=nothing", func(sale) bool { return false })
	orders(bob, of("bob+1@example.com"))
	orders(bob+"&status=paid&product_id=editor", both(of("bob+1@example.com"), both(paid, editor)))
	licenses("", everything)
	licenses("product_id=editor", editor)
	licenses("status=revoked", func(one sale) bool { return one.key == revoked })
	licenses("status=activated", func(one sale) bool { return one == sales[5] })
	licenses("status=not_activated", func(one sale) bool { return one.key != revoked && one != sales[5] })
	licenses("status=expired", func(sale) bool { return false })
	licenses(bob, of("bob+1@example.com"))
	licenses("buyer_email=eve@example.com", func(sale) bool { return false })
	licenses(bob+"&product_id=editor", both(of("bob+1@example.com"), editor))
	for _, one := range sales[:6] {
		this := func(other sale) bool { return other == one }
		licenses("order_no="+one.order, this)
		licenses("product_id=editor&order_no="+one.order, both(this, editor))
		licenses("status=revoked&order_no="+one.order,
			func(other sale) bool { return this(other) && other.key == revoked })
		licenses(bob+"&order_no="+one.order, both(this, of("bob+1@example.com")))
	}
	licenses("order_no=ord_0000000000000000000000000000", func(sale) bool { return false })
	f("/v1/products", "products", "product_id", "", []string{"viewer", "editor"})
	f("/v1/keys", "keys", "id", "",
		[]string{keyID(keyRevoked), keyID(keyReadOnly), keyID(keyKeys), keyID(keyExpired), keyID(keyAll)})

	s.clock.advance(24 * time.Hour)
	orders("status=expired", func(one sale) bool { return one.key == "" })
	orders("status=unpaid", func(sale) bool { return false })
}

// TestOrdersOfAPeriod filters orders by the times of their creation, payment and refund, by their provider, and by the
// reference of their payment.
func TestOrdersOfAPeriod(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for i := range 8 {
		provider := []string{`,"payment_provider":"outside"`, ""}[i%2]
		s.send("POST", "/v1/orders", keyAll, `{"product_id":"p","amount":5,"currency":"USD"`+provider+`}`).must(t, 0)
		s.clock.advance(7 * time.Hour)
	}
	numbers := s.list("/v1/orders", "orders", "order_no", "", 100)
	for i, number := range numbers {
		switch path := "/v1/orders/" + number; i % 4 {
		case 0, 2: // the newest order has been paid in the sandbox
			s.send("PUT", path+"/sandbox_payment", keyAll, "").must(t, 0)
			if i%4 == 2 {
				s.clock.advance(time.Hour)
				s.send("POST", path+"/refund", keyAll, "").must(t, 0)
			}
		case 1:
			s.send("POST", path+"/payments", keyAll, `{"reference":"INV-`+fmt.Sprint(i)+`"}`).must(t, 0)
		}
		s.clock.advance(5 * time.Hour)
	}
	listed := s.send("GET", "/v1/orders?limit=100", keyAll, "").must(t, 0).data["orders"].([]any)
	orders := func(query string, want func(order map[string]any) bool) {
		t.Helper()
		var numbers []string
		for _, order := range listed {
			if order := order.(map[string]any); want(order) {
				numbers = append(numbers, order["order_no"].(string))
			}
		}
		for _, limit := range []int{1, 3, 100} {
			if got := s.list("/v1/orders", "orders", "order_no", query, limit); !slices.Equal(got, numbers) {
				t.Errorf("?%s, %d at a time: %q, want %q", query, limit, got, numbers)
			}
		}
	}
	for _, is := range []string{"created", "paid", "refunded"} {
		at := func(order map[string]any) string {
			text, _ := order[is+"_at"].(string)
			return text
		}
		found := 0
		for _, order := range listed {
			from := at(order.(map[string]any))
			if from == "" {
				continue
			}
			found++
			moment, _ := licensing.ParseTime(from)
			day, next := moment.Format(time.DateOnly), moment.AddDate(0, 0, 1).Format(time.DateOnly)
			later := func(order map[string]any) bool { return at(order) >= from }
			before := func(order map[string]any) bool { return at(order) != "" && at(order) < from }
			thatDay := func(order map[string]any) bool { return strings.HasPrefix(at(order), day) }
			orders(is+"_from="+from, later)
			orders(is+"_to="+from, before)
			orders(is+"_from="+day+"&"+is+"_to="+next, thatDay)
			orders(is+"_from="+day+"&"+is+"_to="+next+"&payment_provider=outside",
				func(order map[string]any) bool { return thatDay(order) && order["payment_provider"] == "outside" })
		}
		if found == 0 {
			t.Errorf("no order was %s", is)
		}
	}
	orders("payment_provider=sandbox",
		func(order map[string]any) bool { return order["payment_provider"] == "sandbox" })
	for _, c := range []struct {
		query string
		found bool
	}{
		{"", true}, {"&payment_provider=outside", true}, {"&payment_provider=sandbox", false}, {"&status=paid", true},
		{"&status=refunded", false}, {"&buyer_email=ada@example.com", false}, {"&product_id=p", true},
		{"&created_from=2020-01-01", true}, {"&created_to=2020-01-01", false}, {"&paid_to=2020-01-01", false},
	} {
		orders("reference=INV-1"+c.query, func(order map[string]any) bool {
			return c.found && order["payment_reference"] == "INV-1"
		})
	}
	orders("reference=INV-9", func(map[string]any) bool { return false })
	other := s.send("GET", "/v1/orders?reference=INV-1", keyOther, "").must(t, 0)
	if got := other.data["orders"].([]any); len(got) > 0 {
		t.Errorf("another account finds %v", got)
	}
}

// Records of the same millisecond stay apart.
func TestListOfOneMoment(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"p","quantity":45}`).must(t, 0)
	for _, limit := range []int{1, 7, 45, 46} {
		got := s.list("/v1/licenses", "licenses", "license_key", "", limit)
		slices.Sort(got)
		if len(slices.Compact(got)) != 45 {
			t.Errorf("%d at a time: %d licenses", limit, len(got))
		}
	}
	if a := s.send("GET", "/v1/licenses", keyAll, "").must(t, 0); len(a.data["licenses"].([]any)) != 20 {
		t.Errorf("a page without a limit: %s", a.body)
	}
}

// Listings with a filter that few records pass have short pages, and an end.
func TestListScansSoMuch(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"p","quantity":501}`).must(t, 0)
	first := s.send("GET", "/v1/licenses?status=expired", keyAll, "").must(t, 0)
	if len(first.data["licenses"].([]any)) != 0 || first.data["next_cursor"] == nil {
		t.Fatalf("500 of 501: %s", first.body)
	}
	second := s.send("GET", "/v1/licenses?status=expired&cursor="+first.text("next_cursor"), keyAll, "").must(t, 0)
	if len(second.data["licenses"].([]any)) != 0 || second.data["next_cursor"] != nil {
		t.Errorf("the last page: %s", second.body)
	}
}

// A cursor holds for its own listing and filters alone.
func TestListCursors(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.sell(4)
	cursor := func(key, path string) string {
		t.Helper()
		joint := "?"
		if strings.Contains(path, "?") {
			joint = "&"
		}
		next := s.send("GET", path+joint+"limit=1", key, "").must(t, 0).text("next_cursor")
		if next == "" {
			t.Fatalf("%s ends after one", path)
		}
		return next
	}
	given := cursor(keyAll, "/v1/orders?status=paid&product_id=editor")
	s.send("GET", "/v1/orders?limit=7&product_id=editor&status=paid&cursor="+given, keyAll, "").must(t, 0)
	refused := func(key, target string) {
		t.Helper()
		a := s.send("GET", target, key, "").must(t, 42200)
		if len(a.fields) != 1 || a.fields["cursor"] == "" {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	for _, path := range []string{
		"/v1/orders?", "/v1/orders?status=paid&", "/v1/orders?status=unpaid&product_id=editor&",
		"/v1/orders?status=paid&product_id=editor2&",
		"/v1/orders?status=paid&product_id=editor&buyer_email=ada@example.com&",
		"/v1/licenses?", "/v1/licenses?status=activated&product_id=editor&", "/v1/products?", "/v1/keys?",
	} {
		refused(keyAll, path+"cursor="+given)
	}
	same := "/v1/orders?status=paid&product_id=editor&cursor="
	refused(keyOther, same+given)
	refused(keyLive, same+given)
	last := given[len(given)-1:]
	for _, bad := range []string{
		"", "x", given + "A", given[:len(given)-1], given[1:], "A" + given, given + "%0A", given + "=",
		strings.ToLower(given),
		given[:len(given)-1] + map[bool]string{true: "B", false: "A"}[last == "A"], strings.Repeat("A", 600),
		"AgAAAAAAAAAA",
	} {
		refused(keyAll, same+bad)
	}
	devices := s.license()
	s.activate(devices, "d1").must(t, 0)
	s.activate(devices, "d2").must(t, 0)
	refused(keyAll, "/v1/licenses?cursor="+cursor(keyAll, "/v1/licenses/"+devices+"/devices"))
	refused(keyAll, "/v1/licenses/"+devices+"/devices?cursor="+cursor(keyAll, "/v1/licenses"))
}

// A license key is a secret, so that a cursor must not contain one.
func TestListCursorsHoldNoKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"p","quantity":3}`).must(t, 0)
	a := s.send("GET", "/v1/licenses?limit=1", keyAll, "").must(t, 0)
	id := parsedKey(a.grantedKey()).ID()
	if raw, err := base64.RawURLEncoding.DecodeString(a.text("next_cursor")); err != nil ||
		strings.Contains(string(raw), string(id[8:])) || strings.Contains(string(raw), a.grantedKey()[4:]) {
		t.Errorf("the cursor of %s is %q", a.grantedKey(), raw)
	}
}

// A listing of API keys shows nothing that works as an API key.
func TestListedKeysShowNoSecret(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := s.send("GET", "/v1/keys?limit=100", keyAll, "").must(t, 0)
	for _, text := range []string{keyAll, keyReadOnly, keyExpired, keyRevoked} {
		hash := keyring.HashAPIKey(text)
		if strings.Contains(a.body, text) || strings.Contains(strings.ToLower(a.body), fmt.Sprintf("%x", hash)) ||
			strings.Contains(a.body, base64.StdEncoding.EncodeToString(hash[:])) {
			t.Errorf("%s is in %s", text, a.body)
		}
	}
	for _, item := range a.data["keys"].([]any) {
		for member := range item.(map[string]any) {
			if strings.Contains(member, "hash") || strings.HasSuffix(member, "secret") || member == "api_key" {
				t.Errorf("a listed key has a member %s", member)
			}
		}
	}
}

func TestListScopes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	routes := map[string]string{"/v1/licenses": "licenses", "/v1/orders": "orders", "/v1/products": "products",
		"/v1/keys": "keys"}
	for _, scope := range licensing.Scopes() {
		for _, form := range []string{scope, scope + ":read"} {
			text := testKey(form)
			s.store.addKey(text, licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_scoped",
				Mode: licensing.Test}, Scopes: []string{form}})
			for path, needed := range routes {
				want := 40300
				if needed == scope {
					want = 0
				}
				if a := s.send("GET", path, text, ""); a.code != want {
					t.Errorf("%s with %s: %s", path, form, a.body)
				}
			}
		}
	}
	for path := range routes {
		s.send("GET", path, "", "").must(t, 40100)
	}
}
