package main

import (
	"fmt"
	"maps"
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
	if trouble := unsettled(b, now, m, a.subscriptions); trouble != "" {
		wrong("%s", trouble)
	}
	if now.Amount != b.amount || now.Currency != b.price.currency || now.Quantity != b.quantity {
		wrong("the order is for %d licenses, %d %s, and must be for %d, %d %s", now.Quantity, now.Amount, now.Currency,
			b.quantity, b.amount, b.price.currency)
	}
	if b.refunded > 0 && m.returned != b.refunded {
		wrong("the service has promised to send %d %s back, and Stripe has sent %d", b.refunded, b.price.currency,
			m.returned)
	}
	a.licensesOf(b, now, m, wrong)
	a.endOf(b, now, m, wrong)
	a.paymentsOf(b, m, wrong)
}

// paymentsOf compares the payment records of an order with its payments and refunds.
func (a *auditor) paymentsOf(b *buyer, m *money, wrong func(string, ...any)) {
	var paid []string
	returned, invoices := int64(0), map[string]int64{}
	for _, p := range a.payments[b.order] {
		if p.Currency != b.price.currency {
			wrong("the %s %s is in %s", p.Type, p.Reference, p.Currency)
		}
		switch {
		case p.Type == "refund" && p.Status == "succeeded":
			returned += p.Amount
		case p.Type == "refund":
			wrong("the refund %s is %s", p.Reference, p.Status)
		case p.Type == "invoice":
			invoices[p.Reference] += p.Amount
		default:
			paid = append(paid, p.Reference)
			if p.Amount != b.amount {
				wrong("the payment %s is of %d, and must be of %d", p.Reference, p.Amount, b.amount)
			}
		}
	}
	if !slices.Equal(paid, m.payments) {
		wrong("the payments are %q, and must be %q", paid, m.payments)
	}
	if !maps.Equal(invoices, m.invoices) {
		wrong("the invoices are %v, and must be %v", invoices, m.invoices)
	}
	if returned != m.returned {
		wrong("the refunds are of %d, and must be of %d", returned, m.returned)
	}
}

// endOf compares the end of the license of a subscription with the end of the period that is paid for: each invoice
// extends the license exactly once.
func (a *auditor) endOf(b *buyer, now *client.Order, m *money, wrong func(string, ...any)) {
	if m.until.IsZero() {
		return
	}
	if s := now.Subscription; s != nil && !s.CurrentPeriodEnd.Equal(m.until) {
		wrong("the paid period ends at %s, and must end at %s", s.CurrentPeriodEnd, m.until)
	}
	for i := range a.licenses {
		l := &a.licenses[i]
		switch {
		case l.OrderNo != b.order || l.Status == "revoked":
		case l.ExpiresAt.Before(m.until):
			wrong("the license expires at %s, and is paid until %s", l.ExpiresAt, m.until)
		case !l.ExpiresAt.Equal(m.until.Add(grace)):
			wrong("the license ends at %s, which is not %s after %s", l.ExpiresAt, grace, m.until)
		}
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
func unsettled(b *buyer, now *client.Order, m *money, subscriptions map[string]string) string {
	status := now.Status
	switch kept := m.kept(); {
	case m.paid != 0 && m.paid != b.amount, kept < 0:
		return fmt.Sprintf("%d %s are paid and %d returned of a price of %d", m.paid, b.price.currency, m.returned,
			b.amount)
	case now.RefundDue || now.RefundPending > 0:
		return "a refund is due"
	case now.AmountRefunded != m.returned:
		return fmt.Sprintf("%d %s are returned, and amount_refunded is %d", m.returned, b.price.currency,
			now.AmountRefunded)
	case kept > 0 && status != "paid":
		return fmt.Sprintf("%d %s are paid, and the order is %s", kept, b.price.currency, status)
	case kept > 0 && now.LicensesIssued != b.quantity:
		return fmt.Sprintf("%d licenses are paid, and %d are issued", b.quantity, now.LicensesIssued)
	case kept == 0 && m.paid > 0 && status != "refunded":
		return fmt.Sprintf("the money was returned, and the order is %s", status)
	case m.paid == 0 && (status == "paid" || status == "refunded"):
		return fmt.Sprintf("nothing is paid, and the order is %s", status)
	}
	want, has := subscriptions[b.order], ""
	if now.Subscription != nil {
		has = now.Subscription.Status
	}
	if has != want || !m.until.IsZero() && now.Subscription.CurrentPeriodEnd.Before(m.until) {
		return fmt.Sprintf("the subscription is %q at Stripe, paid until %s, and %+v at the service", want, m.until,
			now.Subscription)
	}
	return ""
}
