package licensing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
	"licet/licensing/keyring"
)

// orderTable is the table of the contract, in the notation of licenseTable. A canceled order that was paid is a row of
// its own: a refund is due, and after the refund the order is refunded.
const orderTable = `
from                      | paid     | expire  | cancel   | refund
unpaid                    | paid     | =       | canceled | !state
expired by the clock      | paid     | expired | !state   | !state
expired as recorded       | paid     | =       | !state   | !state
expired, clock behind     | paid     | =       | !state   | !state
canceled                  | canceled | =       | =        | !state
canceled, since run out   | canceled | =       | =        | !state
canceled, refund due      | =        | =       | =        | refunded
paid                      | =        | =       | !state   | refunded
paid, since run out       | =        | =       | !state   | refunded
paid late                 | =        | =       | !state   | refunded
refunded                  | =        | =       | !state   | =
refunded, was canceled    | =        | =       | !state   | =
`

// ordered returns the record of an unpaid order that runs out an hour after
// noon, changed by edit.
func ordered(edit func(*licensing.Order)) licensing.Record {
	o := &licensing.Order{
		OrderNo: "ord_1", Owner: shop, ProductID: app,
		OrderPayment: licensing.OrderPayment{Amount: 990, Currency: "EUR"},
		BuyerEmail:   "ann@example.com", Metadata: `{"a":1}`, PayHash: keyring.HashPayToken("token"),
		Terms:     licensing.Terms{KeyPrefix: "OLD", MaxDevices: 99},
		CreatedAt: noon.Add(-time.Hour), ExpiresAt: noon.Add(time.Hour),
	}
	if edit != nil {
		edit(o)
	}
	return licensing.Record{Order: o}
}

// payment is a payment that a provider reports. Its terms are the product's at that moment, not those of the order.
var payment = licensing.PayOrder{
	Payment: "pi_1",
	Terms:   licensing.Terms{KeyPrefix: "LIC", MaxDevices: 5, Validity: licensing.Period{Months: 1}},
	Key:     shopKey,
}

// orderStates are the rows of orderTable.
func orderStates() map[string][]func(*licensing.Order) {
	ago := noon.Add(-time.Minute)
	ranOut := func(o *licensing.Order) { o.ExpiresAt = noon.Add(-time.Minute) }
	paid := func(o *licensing.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey }
	canceled := func(o *licensing.Order) { o.CanceledAt = ago }
	owed := func(o *licensing.Order) {
		o.PaidAt, o.Payment, o.RefundDue, o.RefundBy = ago, "pi_0", true, licensing.Provider
	}
	refunded := func(o *licensing.Order) { o.RefundedAt, o.RefundDue = ago, false }
	recorded := func(o *licensing.Order) { o.ExpiredAt = ago }
	late := func(o *licensing.Order) { o.Late = true }
	return map[string][]func(*licensing.Order){
		"unpaid":                  nil,
		"expired by the clock":    {ranOut},
		"expired as recorded":     {ranOut, recorded},
		"expired, clock behind":   {recorded},
		"canceled":                {canceled},
		"canceled, since run out": {canceled, ranOut},
		"canceled, refund due":    {canceled, owed},
		"paid":                    {paid},
		"paid, since run out":     {paid, ranOut},
		"paid late":               {ranOut, recorded, paid, late},
		"refunded":                {paid, refunded},
		"refunded, was canceled":  {canceled, owed, refunded},
	}
}

func TestOrderTransitions(t *testing.T) {
	rows := orderStates()
	columns := map[string]licensing.Command{
		"paid": payment, "expire": licensing.ExpireOrder{Before: noon}, "cancel": licensing.CancelOrder{},
		"refund": licensing.RefundOrder{},
	}
	eachCell(t, orderTable, len(rows), len(columns), func(t *testing.T, row, column, want string) {
		r := ordered(func(o *licensing.Order) {
			for _, fact := range rows[row] {
				fact(o)
			}
		})
		before := r.Order.Status(noon)
		if !strings.HasPrefix(row, string(before)) {
			t.Fatalf("the row is wrong: its order is %s before the command", before)
		}
		lateBefore := r.Order.Late
		result, err := run(t, &r, columns[column], noon)
		checkCell(t, want, "invalid_order_state", string(before), string(r.Order.Status(noon)), r.Changed, err)
		if err == nil {
			if diff := cmp.Diff(*r.Order, result.Order()); diff != "" {
				t.Errorf("the answer is not the order (-stored +answered):\n%s", diff)
			}
		}
		if issued := r.Issued != nil; issued != (want == "paid") {
			t.Errorf("a license was issued: %v", issued)
		}
		wantLate := lateBefore || (want == "paid" && before == licensing.OrderExpired)
		if r.Order.Late != wantLate {
			t.Errorf("late is %v, want %v", r.Order.Late, wantLate)
		}
		wantDue := column == "paid" && before == licensing.OrderCanceled
		if result.RefundDue != wantDue {
			t.Errorf("answered that a refund is due: %v, want %v", result.RefundDue, wantDue)
		}
	})
}

// TestOrderFacts checks every fact of the order after a command.
func TestOrderFacts(t *testing.T) {
	ago := noon.Add(-time.Minute)
	for _, c := range []struct {
		name    string
		before  func(*licensing.Order)
		command licensing.Command
		change  func(*licensing.Order)
	}{
		{
			name:    "paid",
			command: payment,
			change: func(o *licensing.Order) {
				o.PaidAt, o.Payment, o.Paid, o.LicenseKey = noon, "pi_1", 990, shopKey
			},
		},
		{
			name:    "paid late",
			before:  func(o *licensing.Order) { o.ExpiresAt = noon },
			command: payment,
			change: func(o *licensing.Order) {
				o.PaidAt, o.Payment, o.Paid, o.LicenseKey, o.Late = noon, "pi_1", 990, shopKey,
					true
			},
		},
		{
			name:    "paid late keeps the recorded expiry",
			before:  func(o *licensing.Order) { o.ExpiresAt, o.ExpiredAt = ago, ago },
			command: payment,
			change: func(o *licensing.Order) {
				o.PaidAt, o.Payment, o.Paid, o.LicenseKey, o.Late = noon, "pi_1", 990, shopKey,
					true
			},
		},
		{
			name:    "paid in the last millisecond",
			before:  func(o *licensing.Order) { o.ExpiresAt = noon.Add(time.Millisecond) },
			command: payment,
			change: func(o *licensing.Order) {
				o.PaidAt, o.Payment, o.Paid, o.LicenseKey = noon, "pi_1", 990, shopKey
			},
		},
		{
			name:    "paid again, with other money",
			before:  func(o *licensing.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey },
			command: payment,
		},
		{
			name:    "paid when canceled",
			before:  func(o *licensing.Order) { o.CanceledAt = ago },
			command: payment,
			change: func(o *licensing.Order) {
				o.PaidAt, o.Payment, o.Paid, o.RefundDue, o.RefundBy = noon, "pi_1", 990, true, licensing.Provider
			},
		},
		{
			name: "paid again when canceled",
			before: func(o *licensing.Order) {
				o.CanceledAt, o.PaidAt, o.Payment, o.RefundDue = ago, ago, "pi_0",
					true
			},
			command: payment,
		},
		{
			name:    "canceled",
			command: licensing.CancelOrder{},
			change:  func(o *licensing.Order) { o.CanceledAt = noon },
		},
		{
			name:    "canceled again keeps the time",
			before:  func(o *licensing.Order) { o.CanceledAt = ago },
			command: licensing.CancelOrder{},
		},
		{
			name:    "expired",
			before:  func(o *licensing.Order) { o.ExpiresAt = ago },
			command: licensing.ExpireOrder{Before: noon},
			change:  func(o *licensing.Order) { o.ExpiredAt = noon },
		},
		{
			name:    "expired again keeps the time",
			before:  func(o *licensing.Order) { o.ExpiresAt, o.ExpiredAt = ago, ago },
			command: licensing.ExpireOrder{Before: noon},
		},
		{
			name:    "expired too early",
			command: licensing.ExpireOrder{Before: noon},
		},
		{
			name:    "refunded keeps the license key",
			before:  func(o *licensing.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey },
			command: licensing.RefundOrder{},
			change:  func(o *licensing.Order) { o.RefundedAt, o.Refunded, o.Refunds = noon, 990, 1 },
		},
		{
			name: "refunded after it was canceled",
			before: func(o *licensing.Order) {
				o.CanceledAt, o.PaidAt, o.Payment, o.RefundDue = ago, ago, "pi_0",
					true
			},
			command: licensing.RefundOrder{},
			change: func(o *licensing.Order) {
				o.RefundedAt, o.RefundDue, o.Refunded, o.Refunds = noon, false, 990, 1
			},
		},
		{
			name:    "refunded again keeps the time",
			before:  func(o *licensing.Order) { o.PaidAt, o.LicenseKey, o.RefundedAt = ago, otherKey, ago },
			command: licensing.RefundOrder{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ordered(c.before)
			want := *r.Order
			if c.change != nil {
				c.change(&want)
			}
			must(t, &r, c.command, noon)
			want.Sequence = r.Order.Sequence // see TestOrderEvents
			if diff := cmp.Diff(want, *r.Order); diff != "" {
				t.Errorf("the order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPayOrderIssuesTheLicense(t *testing.T) {
	year := licensing.Period{Years: 1}
	for _, c := range []struct {
		name  string
		terms licensing.Terms
		want  licensing.License
	}{
		{"perpetual", licensing.Terms{MaxDevices: 5}, licensing.License{MaxDevices: 5}},
		{"unlimited", licensing.Terms{}, licensing.License{}},
		{"a year from issue", licensing.Terms{MaxDevices: 1, Validity: year},
			licensing.License{MaxDevices: 1, ExpiresAt: noon.AddDate(1, 0, 0)}},
		{"a year from activation", licensing.Terms{MaxDevices: 1, Validity: year, FromActivation: true},
			licensing.License{MaxDevices: 1, Validity: year}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ordered(nil)
			must(t, &r, licensing.PayOrder{Payment: "pi_1", Terms: c.terms, Key: shopKey}, noon)
			c.want.Key, c.want.Owner, c.want.ProductID = shopKey, shop, app
			c.want.OrderNo, c.want.CreatedAt = "ord_1", noon
			c.want.Sequence = 1
			if diff := cmp.Diff([]*licensing.License{&c.want}, r.Issued); diff != "" {
				t.Errorf("issued (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHundredCallbacksMakeOneLicense folds a hundred reports of a payment on one record: they issue one license.
func TestHundredCallbacksMakeOneLicense(t *testing.T) {
	r := ordered(nil)
	for i := range 100 {
		c := payment
		if i > 0 {
			c.Key = otherKey
		}
		result, err := licensing.Apply(&r, c, noon.Add(time.Duration(i)*time.Minute))
		if o := result.Order(); err != nil || result.RefundDue || o.LicenseKey != shopKey || !o.PaidAt.Equal(noon) {
			t.Fatalf("callback %d answered %+v, %v", i, result.Order(), err)
		}
	}
	if len(r.Issued) != 1 || r.Issued[0].Key != shopKey || !r.Issued[0].CreatedAt.Equal(noon) {
		t.Errorf("issued %+v", r.Issued)
	}
}

// TestMoneyForACanceledOrder goes from the callback to the refund, with every
// step done twice.
func TestMoneyForACanceledOrder(t *testing.T) {
	r := ordered(nil)
	must(t, &r, licensing.CancelOrder{}, noon)
	refuses(t, &r, licensing.RefundOrder{}, noon, licensing.ReasonInvalidOrderState)
	for range 2 {
		if result := must(t, &r, payment, noon); !result.RefundDue || !result.Order().RefundDue {
			t.Fatal("no refund is due")
		}
	}
	for range 2 {
		must(t, &r, licensing.RefundOrder{}, noon.Add(time.Minute))
		if got := r.Order.Status(noon); got != licensing.OrderRefunded || r.Order.RefundDue {
			t.Fatalf("after the refund the order is %s, refund due: %v", got, r.Order.RefundDue)
		}
	}
	if result := must(t, &r, payment, noon.Add(time.Hour)); result.RefundDue {
		t.Error("a late duplicate of the callback wants another refund")
	}
	if r.Issued != nil || !r.Order.LicenseKey.IsZero() {
		t.Errorf("issued %+v, license key %q", r.Issued, r.Order.LicenseKey)
	}
}

func TestOrderCommandsWithoutOrder(t *testing.T) {
	for _, c := range []licensing.Command{
		payment, licensing.CancelOrder{}, licensing.ExpireOrder{}, licensing.RequestRefund{}, licensing.TryRefund{},
		licensing.WithdrawRefund{}, licensing.RefundOrder{},
		licensing.StartCheckout{}, licensing.NoteCheckout{}, licensing.NoteAnswer{}, licensing.PutOffAsk{},
		licensing.RedactOrder{BuyerEmail: "ann@example.com"},
	} {
		for name, r := range map[string]licensing.Record{"nothing": {}, "a license": licensed(nil)} {
			if _, err := run(t, &r, c, noon); err != licensing.ErrOrderNotFound {
				t.Errorf("%T on %s answered %v", c, name, err)
			}
		}
	}
}

func TestInvalidOrderStateNamesTheState(t *testing.T) {
	f := func(edit func(*licensing.Order), c licensing.Command, want string) {
		t.Helper()
		r := ordered(edit)
		e := refuses(t, &r, c, noon, licensing.ReasonInvalidOrderState)
		if e.Message != want {
			t.Errorf("says %q, want %q", e.Message, want)
		}
	}
	f(nil, licensing.RefundOrder{}, "an order that is unpaid can't be refunded")
	f(func(o *licensing.Order) { o.ExpiresAt = noon }, licensing.CancelOrder{},
		"an order that is expired can't be canceled")
	f(func(o *licensing.Order) { o.PaidAt = noon }, licensing.CancelOrder{}, "an order that is paid can't be canceled")
	f(func(o *licensing.Order) { o.RefundedAt = noon }, licensing.CancelOrder{},
		"an order that is refunded can't be canceled")
}

func TestOrderStatus(t *testing.T) {
	past, future := noon.Add(-time.Hour), noon.Add(time.Hour)
	paid := licensing.OrderPayment{PaidAt: past}
	owed := licensing.OrderPayment{PaidAt: past, RefundDue: true}
	returned := licensing.OrderPayment{PaidAt: past, RefundedAt: past}
	for name, c := range map[string]struct {
		order licensing.Order
		want  licensing.OrderStatus
	}{
		"time left": {licensing.Order{ExpiresAt: future}, licensing.OrderUnpaid},
		"a millisecond left": {licensing.Order{ExpiresAt: noon.Add(time.Millisecond)},
			licensing.OrderUnpaid},
		"at the end":    {licensing.Order{ExpiresAt: noon}, licensing.OrderExpired},
		"after the end": {licensing.Order{ExpiresAt: past}, licensing.OrderExpired},
		"recorded":      {licensing.Order{ExpiresAt: past, ExpiredAt: past}, licensing.OrderExpired},
		"recorded by a clock ahead": {licensing.Order{ExpiresAt: future, ExpiredAt: future},
			licensing.OrderExpired},
		"paid":                {licensing.Order{ExpiresAt: future, OrderPayment: paid}, licensing.OrderPaid},
		"paid, since run out": {licensing.Order{ExpiresAt: past, OrderPayment: paid}, licensing.OrderPaid},
		"paid after it was recorded": {licensing.Order{ExpiresAt: past, ExpiredAt: past, OrderPayment: paid},
			licensing.OrderPaid},
		"canceled": {licensing.Order{ExpiresAt: future, CanceledAt: past},
			licensing.OrderCanceled},
		"canceled, since run out": {licensing.Order{ExpiresAt: past, CanceledAt: past}, licensing.OrderCanceled},
		"canceled, money to be returned": {licensing.Order{ExpiresAt: past, CanceledAt: past, OrderPayment: owed},
			licensing.OrderCanceled},
		"canceled, money returned": {licensing.Order{ExpiresAt: past, CanceledAt: past, OrderPayment: returned},
			licensing.OrderRefunded},
		"refunded": {licensing.Order{ExpiresAt: future, OrderPayment: returned},
			licensing.OrderRefunded},
		"refunded, since run out": {licensing.Order{ExpiresAt: past, OrderPayment: returned},
			licensing.OrderRefunded},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.order.Status(noon); got != c.want {
				t.Errorf("status %s, want %s", got, c.want)
			}
		})
	}
}

func TestValidOrderNo(t *testing.T) {
	const good = "ord_VQ01ARZ3NDEKTSV4RRFFQ69G5FAV"
	f := func(text string, want bool) {
		t.Helper()
		if got := licensing.ValidOrderNo(text); got != want {
			t.Errorf("ValidOrderNo(%q) = %v", text, got)
		}
	}
	f(good, true)
	f(licensing.NewOrderNo(shop, "01ARZ3NDEKTSV4RRFFQ69G5FAV"), true)
	f(licensing.NewOrderNo(shop, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), true)
	f("ord_"+strings.Repeat("0", 28), true)

	f("", false)
	f("ord_", false)
	f(good[:len(good)-1], false)
	f(good+"0", false)
	f(good[4:], false)
	f("ord-"+good[4:], false)
	f("ORD_"+good[4:], false)
	f(" "+good, false)
	f(good+" ", false)
	f(good+"\n", false)
	f(strings.ToLower(good), false)
	for _, bad := range []string{"I", "L", "O", "U", "a", "-", "/", "%", " ", "\x00", "\x7f", "\xff"} {
		for _, at := range []int{4, 5, 17, len(good) - 1} {
			f(good[:at]+bad+good[at+1:], false)
		}
	}
	f(good[:len(good)-2]+"É", false) // two bytes, so that the length is right
	f(good[:len(good)-3]+"０", false) // full-width
}

func TestNewOrderNo(t *testing.T) {
	const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	acme := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	if got, want := licensing.NewOrderNo(acme, ulid), "ord_VQ"+ulid; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	earlier, later := licensing.NewOrderNo(acme, ulid), licensing.NewOrderNo(acme, "01ARZ3NDEM0000000000000000")
	if earlier >= later {
		t.Errorf("%s does not sort before %s", earlier, later)
	}
}

// TestPaySeedEnds: an order that is paid, canceled or expired loses the seed of its pay token, and keeps the hash by
// which its pay page still opens.
func TestPaySeedEnds(t *testing.T) {
	for name, cmd := range map[string]licensing.Command{
		"paid": payment, "canceled": licensing.CancelOrder{}, "expired": licensing.ExpireOrder{Before: noon},
	} {
		r := ordered(func(o *licensing.Order) {
			o.PaySeed = licensing.PaySeed{MasterID: "m1", Salt: [16]byte{1}}
			if name == "expired" {
				o.ExpiresAt = noon
			}
		})
		if _, err := run(t, &r, cmd, noon); err != nil {
			t.Fatal(err)
		}
		if o := r.Order; o.PaySeed != (licensing.PaySeed{}) || o.PayHash != keyring.HashPayToken("token") {
			t.Errorf("%s: the order has the seed %v and the hash %x", name, o.PaySeed, o.PayHash)
		}
	}
}
