package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/client"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// agreeing makes a ledger, and books that agree with it: three orders, of which
// one is refunded, a license that was granted, and an API key.
func agreeing(t *testing.T) (*ledger, *books) {
	t.Helper()
	l := newLedger()
	b := &books{
		ordersBy: map[client.OrderFilter][]string{}, licensesBy: map[client.LicenseFilter][]string{},
		details: map[string]*client.License{},
	}
	for n, f := range []fate{leftUnpaid, paidOnce, paidTwice} {
		p := &orderPlan{n: n, fate: f, product: studio, email: "Anna@example.com", amount: int64(100 + n),
			currency: "USD", metadata: map[string]any{"n": n}}
		o := &orderEntry{plan: p, number: fmt.Sprint("ord_", n), payURL: fmt.Sprint("/pay/", n), made: noon,
			ends: noon.Add(time.Hour), email: p.email, metadata: p.metadata}
		l.ordered(o)
		now := client.Order{
			OrderNo: o.number, Status: stateUnpaid, ProductID: "studio", Amount: p.amount, Currency: "USD",
			BuyerEmail: p.email,
			Metadata:   json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), PayURL: o.payURL,
			CreatedAt: noon, ExpiresAt: o.ends,
		}
		if f != leftUnpaid {
			key := fmt.Sprint("STUDIO-", n)
			entry := l.issued(o, key, noon)
			entry.bound("a", "A", noon)
			now.Status, now.PaidAt, now.LicenseKey, now.PayURL = statePaid, noon, key, ""
			license := client.License{
				LicenseKey: key, Status: stateActivated, ProductID: "studio", OrderNo: o.number, MaxDevices: 2,
				CurrentDevices: 1,
				Devices:        []client.Device{{DeviceID: "a", DeviceName: "A"}}, ActivatedAt: noon, CreatedAt: noon,
				ExpiresAt: time.Date(2027, 11, 22, 12, 0, 0, 0, time.UTC), Metadata: json.RawMessage(`{}`),
			}
			if f == paidTwice {
				o.refunded, o.reason, entry.revoked, entry.reason = true, "no", true, "no"
				now.Status, now.RefundedAt, now.StateReason = stateRefunded, noon, "no"
				license.Status, license.RevokedAt, license.StateReason = stateRevoked, noon, "no"
			}
			b.licenses = append(b.licenses, license)
		}
		b.orders = append(b.orders, now)
	}
	l.license(editor, "EDIT-1", noon)
	b.licenses = append(b.licenses, client.License{
		LicenseKey: "EDIT-1", Status: stateNotActivated, ProductID: "editor", MaxDevices: 3, CreatedAt: noon,
		Metadata: json.RawMessage(`{}`),
	})
	for i := range b.licenses {
		found := b.licenses[i]
		b.details[found.LicenseKey] = &found
	}
	l.opened(&keyEntry{id: "key_1", name: "till", scopes: []string{"orders"}})
	b.keys = append(b.keys, client.Key{ID: "key_1", Name: "till", Status: stateActive, Scopes: []string{"orders"}})
	for _, id := range []string{"editor", "studio", "cloud"} {
		b.products = append(b.products, client.Product{ProductID: id})
	}
	for _, f := range l.orderFilters() {
		b.ordersBy[f] = nil
	}
	all := []string{"ord_0", "ord_1", "ord_2"}
	b.ordersBy[client.OrderFilter{Status: stateUnpaid}] = all[:1]
	b.ordersBy[client.OrderFilter{Status: statePaid}] = all[1:2]
	b.ordersBy[client.OrderFilter{Status: stateRefunded}] = all[2:]
	b.ordersBy[client.OrderFilter{ProductID: "studio"}] = all
	b.ordersBy[client.OrderFilter{ProductID: "studio", Status: statePaid}] = all[1:2]
	b.ordersBy[client.OrderFilter{BuyerEmail: "Anna@example.com"}] = all
	b.ordersBy[client.OrderFilter{BuyerEmail: "Anna@example.com", Status: stateRefunded}] = all[2:]
	b.licensesBy[client.LicenseFilter{OrderNo: "ord_0"}] = nil
	b.licensesBy[client.LicenseFilter{OrderNo: "ord_1"}] = []string{"STUDIO-1"}
	b.licensesBy[client.LicenseFilter{BuyerEmail: "Anna@example.com"}] = []string{"STUDIO-1", "STUDIO-2"}
	b.licensesBy[client.LicenseFilter{Status: stateRevoked}] = []string{"STUDIO-2"}
	return l, b
}

// wrongs finds everything that is wrong, sums included.
func wrongs(l *ledger, b *books) string {
	found := audit(l, b, noon)
	for _, line := range compareSums(sumLedger(l, noon), sumBooks(b)) {
		if line.ledger != line.service {
			found = append(found, fmt.Sprintf("%s differs: %d / %d", line.what, line.ledger, line.service))
		}
	}
	return strings.Join(found, "\n")
}

func TestLedgerAndBooksAgree(t *testing.T) {
	if found := wrongs(agreeing(t)); found != "" {
		t.Error(found)
	}
}

// TestEveryMistakeIsFound makes one mistake at a time in what agrees, on either
// side.
func TestEveryMistakeIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		mistake func(*ledger, *books)
		want    []string // each is part of what is found
	}{
		"an order is lost": {
			func(_ *ledger, b *books) { b.orders = b.orders[1:] },
			[]string{"order ord_0, order 1 (left unpaid) was acknowledged, and is not listed", "orders differs: 3 / 2",
				"orders, in USD differs: 303 / 203"},
		},
		"an unpaid order has no link": {
			func(_ *ledger, b *books) { b.orders[0].PayURL = "" },
			[]string{"whether it can be paid is true by the ledger, and false by the service"},
		},
		"an early order has another link": {
			func(l *ledger, b *books) { l.orders["ord_0"].early, b.orders[0].PayURL = true, "/pay/1" },
			[]string{"pay_url is /pay/0 by the ledger, and /pay/1 by the service"},
		},
		"an early order has a link after its payment": {
			func(l *ledger, b *books) { l.orders["ord_1"].early, b.orders[1].PayURL = true, "/pay/1" },
			[]string{"whether it can be paid is false by the ledger, and true by the service"},
		},
		"an order without a request": {
			func(l *ledger, _ *books) { delete(l.orders, "ord_0") },
			[]string{"order ord_0 (unpaid) is listed, and no request created it", "only in the service: [ord_0]",
				"orders, unpaid differs: 0 / 1", "orders, unpaid, in USD differs: 0 / 100"},
		},
		"an order is listed twice": {
			func(_ *ledger, b *books) { b.orders = append(b.orders, b.orders[0]) },
			[]string{"order ord_0 is listed twice"},
		},
		"a payment is lost": {
			func(_ *ledger, b *books) { b.orders[1].Status, b.orders[1].LicenseKey = stateUnpaid, "" },
			[]string{"status is paid by the ledger, and unpaid by the service", "license_key is STUDIO-1 by the ledger",
				"orders, paid differs: 1 / 0", "orders, paid, in USD differs: 101 / 0",
				"order ord_1 is unpaid, and 1 licenses name it"},
		},
		"an amount": {
			func(_ *ledger, b *books) { b.orders[1].Amount++ },
			[]string{"amount is 101 by the ledger, and 102 by the service", "orders, paid, in USD differs: 101 / 102"},
		},
		"a currency": {
			func(_ *ledger, b *books) { b.orders[1].Currency = "JPY" },
			[]string{"currency is USD", "orders, paid, in USD differs: 101 / 0",
				"orders, paid, in JPY differs: 0 / 101"},
		},
		"a late payment": {
			func(_ *ledger, b *books) { b.orders[1].Late = true },
			[]string{"late is false", "orders, paid late differs: 0 / 1", "orders, paid late, in USD differs: 0 / 101"},
		},
		"a refund is lost": {
			func(_ *ledger, b *books) { b.orders[2].Status, b.orders[2].RefundedAt = statePaid, time.Time{} },
			[]string{"whether it was refunded is true by the ledger, and false by the service"},
		},
		"a refund that hangs": {
			func(_ *ledger, b *books) { b.orders[2].RefundDue = true },
			[]string{"refund_due is false by the ledger, and true by the service"},
		},
		"a reason": {
			func(_ *ledger, b *books) { b.orders[2].StateReason = "another" },
			[]string{"state_reason is no by the ledger, and another by the service"},
		},
		"metadata": {
			func(_ *ledger, b *books) { b.orders[0].Metadata = json.RawMessage(`{"n":"0"}`) },
			[]string{`metadata is map[n:0] by the ledger, and {"n":"0"} by the service`},
		},
		"a pay address": {
			func(_ *ledger, b *books) { b.orders[0].PayURL = "" },
			[]string{"whether it can be paid is true by the ledger, and false by the service"},
		},
		"a time": {
			func(_ *ledger, b *books) { b.orders[0].ExpiresAt = noon.Add(time.Minute + time.Hour) },
			[]string{"expires_at is"},
		},
		"a license is lost": {
			func(_ *ledger, b *books) { b.licenses = b.licenses[1:]; delete(b.details, "STUDIO-1") },
			[]string{"license STUDIO-1 was acknowledged, and is not listed",
				"license STUDIO-1 was acknowledged, and is not there", "order ord_1 is paid, and 0 licenses name it",
				"devices differs: 2 / 1"},
		},
		"a second license of one order": {
			func(l *ledger, b *books) { b.licenses[2].OrderNo = "ord_1" },
			[]string{"order ord_1 is paid, and 2 licenses name it",
				"order_no is  by the ledger, and ord_1 by the service"},
		},
		"a license without a request": {
			func(_ *ledger, b *books) {
				more := b.licenses[2]
				more.LicenseKey = "EDIT-2"
				b.licenses = append(b.licenses, more)
			},
			[]string{`license EDIT-2 (not_activated, of order "") is listed, and no response returned it`,
				"licenses without an order differs: 1 / 2"},
		},
		"a license is not revoked": {
			func(_ *ledger, b *books) { b.licenses[1].Status, b.licenses[1].RevokedAt = stateActivated, time.Time{} },
			[]string{"license STUDIO-2 in the list: status is revoked", "licenses, revoked differs: 1 / 0"},
		},
		"a device is lost": {
			func(_ *ledger, b *books) { b.details["STUDIO-1"].Devices = nil },
			[]string{"license STUDIO-1: devices: 1 by the ledger, 0 by the service; only in the ledger: [a called A]"},
		},
		"a device without a request": {
			func(l *ledger, _ *books) { delete(l.licenses["STUDIO-1"].devices, "a") },
			[]string{"current_devices is 0 by the ledger, and 1 by the service", "only in the service: [a called A]"},
		},
		"terms": {
			func(l *ledger, _ *books) { l.licenses["STUDIO-1"].terms.prefix = "STUDIO2" },
			[]string{"the prefix of its key is STUDIO2 by the ledger, and STUDIO by the service"},
		},
		"an end": {
			func(l *ledger, _ *books) { l.licenses["STUDIO-1"].renewed(noon.AddDate(2, 0, 0)) },
			[]string{"license STUDIO-1: expires_at is 2028-11-22"},
		},
		"a license's metadata": {
			func(l *ledger, _ *books) { l.licenses["EDIT-1"].metadata["seat"] = "3B" },
			[]string{"license EDIT-1: metadata is map[seat:3B] by the ledger, and {} by the service"},
		},
		"a filter of orders leaves one out": {
			func(_ *ledger, b *books) {
				b.ordersBy[client.OrderFilter{BuyerEmail: "Anna@example.com"}] = []string{"ord_0", "ord_2"}
			},
			[]string{"BuyerEmail:Anna@example.com ",
				": 3 by the ledger, 2 by the service; only in the ledger: [ord_1]"},
		},
		"a filter of orders gives one twice": {
			func(_ *ledger, b *books) {
				b.ordersBy[client.OrderFilter{Status: stateUnpaid}] = []string{"ord_0", "ord_0"}
			},
			[]string{"1 by the ledger, 2 by the service"},
		},
		"a filter of licenses": {
			func(_ *ledger, b *books) { b.licensesBy[client.LicenseFilter{OrderNo: "ord_0"}] = []string{"STUDIO-1"} },
			[]string{"OrderNo:ord_0 ", ": 0 by the ledger, 1 by the service; only in the ledger: []; " +
				"only in the service: [STUDIO-1]"},
		},
		"a product": {
			func(_ *ledger, b *books) { b.products = b.products[1:] },
			[]string{"products: 3 by the ledger, 2 by the service"},
		},
		"an API key is alive": {
			func(l *ledger, _ *books) { l.keys["key_1"].revoked = true },
			[]string{"status is revoked by the ledger, and active by the service", "API keys, active differs: 0 / 1"},
		},
		"an API key may do more": {
			func(_ *ledger, b *books) { b.keys[0].Scopes = []string{"orders", "keys"} },
			[]string{"scopes: 1 by the ledger, 2 by the service"},
		},
		"an API key without a request": {
			func(_ *ledger, b *books) { b.keys = append(b.keys, client.Key{ID: "key_2", Status: stateActive}) },
			[]string{"only in the service: [key_2]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, b := agreeing(t)
			c.mistake(l, b)
			found := wrongs(l, b)
			for _, want := range c.want {
				if !strings.Contains(found, want) {
					t.Errorf("it does not say %q:\n%s", want, found)
				}
			}
		})
	}
}

func TestFamilies(t *testing.T) {
	l, _ := agreeing(t)
	stored := map[string]int{"order": 3, "license": 3, "product": 3, "api_key": 1, "due": 7}
	for _, line := range sumFamilies(l, stored) {
		if line.ledger != line.service {
			t.Errorf("%+v differs", line)
		}
	}
	stored["license"]++
	differing := 0
	for _, line := range sumFamilies(l, stored) {
		if line.ledger != line.service {
			differing++
		}
	}
	if differing != 1 {
		t.Errorf("a license too many makes %d differences", differing)
	}
}

func TestUnlikeStores(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]int
		want          int
	}{
		"the same, but for the nodes": {map[string]int{"order": 3, "node": 2}, map[string]int{"order": 3}, 0},
		"one lost":                    {map[string]int{"order": 3}, map[string]int{"order": 2}, 1},
		"a family lost":               {map[string]int{"order": 3, "license": 1}, map[string]int{"order": 3}, 1},
		"a family won":                {map[string]int{"order": 3}, map[string]int{"order": 3, "license": 1}, 1},
	} {
		if got := unlike(c.before, c.after); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
