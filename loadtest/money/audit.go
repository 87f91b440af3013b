package main

import (
	"fmt"
	"slices"

	"licet/client"
)

// audit returns what is wrong: every purchase whose licenses or money are not what the ledgers of Stripe and of the
// shop demand, and every sum that differs.
func audit(buyers []*buyer, b *books) []string {
	a := &auditor{books: b, money: moneyOf(buyers, b.stripe), of: map[string]*buyer{}}
	for _, one := range buyers {
		if one.order != "" {
			a.of[one.order] = one
		}
	}
	a.strangers()
	for _, one := range buyers {
		if one.order != "" {
			a.purchase(one)
		}
	}
	for _, l := range sumBooks(buyers, b) {
		if !l.equal() {
			a.add("%v", l)
		}
	}
	return a.found
}

type auditor struct {
	*books
	money map[string]*money
	of    map[string]*buyer
	found []string
}

func (a *auditor) add(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// strangers finds what belongs to no purchase, and what is listed twice.
func (a *auditor) strangers() {
	listed := map[string]bool{}
	for i := range a.orders {
		no := a.orders[i].OrderNo
		if a.of[no] == nil || listed[no] {
			a.add("order %s is listed twice, or no buyer made it", no)
		}
		listed[no] = true
	}
	for no := range a.of {
		if !listed[no] {
			a.add("%v is not listed", a.of[no])
		}
	}
	for _, e := range a.stripe {
		if a.of[e.OrderNo] == nil {
			a.add("Stripe has %d %s of the order %q, which no buyer made", e.Amount, e.Currency, e.OrderNo)
		}
	}
	keys := map[string]bool{}
	for i := range a.licenses {
		l := &a.licenses[i]
		if keys[l.LicenseKey] || a.of[l.OrderNo] == nil {
			a.add("license %s of the order %q is listed twice, or nobody bought it", l.LicenseKey, l.OrderNo)
		}
		keys[l.LicenseKey] = true
	}
}

// purchase compares one order with the money that Stripe and the shop have of it.
func (a *auditor) purchase(b *buyer) {
	now, m := a.details[b.order], a.money[b.order]
	if now == nil {
		return // not listed
	}
	wrong := func(format string, args ...any) { a.add("%v: %s", b, fmt.Sprintf(format, args...)) }
	if trouble := unsettled(b, now, m); trouble != "" {
		wrong("%s", trouble)
	}
	if now.Amount != b.amount || now.Currency != b.price.currency || now.Quantity != b.quantity {
		wrong("the order is for %d licenses, %d %s, and must be for %d, %d %s", now.Quantity, now.Amount, now.Currency,
			b.quantity, b.amount, b.price.currency)
	}
	if b.refunded && m.kept() != 0 {
		wrong("a refund was acknowledged, and %d %s are kept", m.kept(), b.price.currency)
	}
	a.licensesOf(b, now, m, wrong)
	var paid []string
	for _, p := range a.payments[b.order] {
		if p.Type == "refund" { // sumBooks compares refunds
			continue
		}
		paid = append(paid, p.Reference)
		if p.Amount != b.amount || p.Currency != b.price.currency {
			wrong("the payment %s is of %d %s, and must be of %d %s", p.Reference, p.Amount, p.Currency, b.amount,
				b.price.currency)
		}
	}
	if m.kept() == b.amount && !slices.Equal(paid, m.payments) {
		wrong("the payments are %q, and must be %q", paid, m.payments)
	}
	if m.charged+m.outside == 0 && len(paid) > 0 {
		wrong("the payments %q are recorded, and nobody has the money", paid)
	}
}

// licensesOf compares the licenses of an order with its quantity.
func (a *auditor) licensesOf(b *buyer, now *client.Order, m *money, wrong func(string, ...any)) {
	var usable []string
	for i := range a.licenses {
		if l := &a.licenses[i]; l.OrderNo == b.order && l.Status != "revoked" {
			usable = append(usable, l.LicenseKey)
		}
	}
	want := 0
	if m.kept() > 0 {
		want = b.quantity
	}
	if len(usable) != want {
		wrong("%d licenses can be used, and %d are paid", len(usable), want)
	}
	if want > 0 && !slices.Equal(slices.Sorted(slices.Values(usable)),
		slices.Sorted(slices.Values(now.LicenseKeys))) {
		wrong("license_keys are %q, and its licenses are %q", now.LicenseKeys, usable)
	}
}

// unsettled returns how the order differs from what its money demands; empty if it does not.
func unsettled(b *buyer, now *client.Order, m *money) string {
	switch kept := m.kept(); {
	case kept != 0 && kept != b.amount:
		return fmt.Sprintf("%d %s are kept of a price of %d", kept, b.price.currency, b.amount)
	case now.RefundDue:
		return "a refund is due"
	case kept > 0 && now.Status != "paid":
		return fmt.Sprintf("%d %s are paid, and the order is %s", kept, b.price.currency, now.Status)
	case kept > 0 && now.LicensesIssued != b.quantity:
		return fmt.Sprintf("%d licenses are paid, and %d are issued", b.quantity, now.LicensesIssued)
	case kept == 0 && m.returned > 0 && now.Status != "refunded":
		return fmt.Sprintf("the money was returned, and the order is %s", now.Status)
	case m.charged+m.outside == 0 && (now.Status == "paid" || now.Status == "refunded"):
		return fmt.Sprintf("nothing is paid, and the order is %s", now.Status)
	}
	return ""
}
