package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"licet/client"
)

// audit returns what is wrong: every purchase whose licenses or money are not what the ledgers of Stripe and of the
// shop demand, and every sum that differs. suspend says whether the account suspends licenses during a dispute.
func audit(buyers []*buyer, b *books, suspend bool) []string {
	a := &auditor{books: b, money: moneyOf(buyers, b), of: map[string]*buyer{},
		sold: map[string][]*client.License{}, suspend: suspend}
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
	money   map[string]*money
	of      map[string]*buyer
	sold    map[string][]*client.License // by the number of the order
	suspend bool
	found   []string
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
			a.add("license %s of the order %q is listed twice, or no purchase explains it", l.LicenseKey, l.OrderNo)
		}
		keys[l.LicenseKey], a.sold[l.OrderNo] = true, append(a.sold[l.OrderNo], l)
	}
}

// purchase compares one order with the money that Stripe and the shop have of it.
func (a *auditor) purchase(b *buyer) {
	now, m := a.details[b.order], a.money[b.order]
	if now == nil {
		return // not listed
	}
	wrong := func(format string, args ...any) { a.add("%v: %s", b, fmt.Sprintf(format, args...)) }
	if trouble := difference(b, now, a.payments[b.order], m, a.subscriptions); trouble != "" {
		wrong("%s", trouble)
	}
	if now.Amount != b.amount || now.Currency != b.price.currency || now.Quantity != b.quantity {
		wrong("the order is for %d licenses, %d %s, and must be for %d, %d %s", now.Quantity, now.Amount, now.Currency,
			b.quantity, b.amount, b.price.currency)
	}
	held, further := m.dispute.held(), m.further()-m.given
	if m.cash != m.kept()+further-held {
		wrong("the shop has %d, and must have %d, plus %d of further payments, less %d that a bank holds", m.cash,
			m.kept(), further, held)
	}
	if sent := m.sent(); b.refunded > 0 && sent != b.refunded {
		wrong("the service has promised to send %d %s back, and Stripe has sent %d", b.refunded, b.price.currency, sent)
	}
	if status := a.subscriptions[b.order]; b.status != "" && status != b.status {
		wrong("the service has promised that the subscription is %s, and it is %q at Stripe", b.status, status)
	}
	if b.invoiced > 0 && (m.invoiced > b.invoiced || m.invoiced < b.invoiced-b.invoiced/50) {
		wrong("the service has promised further invoices of %d, and they are of %d", b.invoiced, m.invoiced)
	}
	a.licensesOf(b, now, m, wrong)
	a.endOf(b, now, m, wrong)
	a.paymentsOf(b, m, wrong)
}

// paymentsOf compares the payment records of an order with its payments and refunds.
func (a *auditor) paymentsOf(b *buyer, m *money, wrong func(string, ...any)) {
	var paid []string
	sent, invoices, seconds := int64(0), map[string]int64{}, map[string]int64{}
	for _, p := range a.payments[b.order] {
		if p.Currency != b.price.currency {
			wrong("the %s %s is in %s", p.Type, p.Reference, p.Currency)
		}
		if fee, kept := m.fees[p.Reference]; p.Type != "dispute" && !feeAgrees(p.Fee, fee, kept) {
			wrong("the fee of the %s %s is %v, and must be %d", p.Type, p.Reference, feeText(p.Fee), fee)
		}
		switch {
		case p.Type == "dispute": // see difference
		case p.Type == "refund" && p.Status == "succeeded":
			sent += p.Amount
		case p.Type == "refund":
			wrong("the refund %s is %s", p.Reference, p.Status)
		case p.Type == "invoice":
			invoices[p.Reference] += p.Amount
		case p.Type == "second":
			seconds[p.Reference] += p.Amount
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
	if !maps.Equal(seconds, m.seconds) {
		wrong("the second payments are %v, and must be %v", seconds, m.seconds)
	}
	if sent != m.sent() {
		wrong("the refunds are of %d, and must be of %d", sent, m.sent())
	}
}

// feeAgrees reports whether a fee is known exactly if Stripe keeps one, and is what Stripe keeps.
func feeAgrees(fee *int64, want int64, kept bool) bool {
	return (fee != nil) == kept && (fee == nil || *fee == want)
}

// feeText returns a fee as text.
func feeText(fee *int64) string {
	if fee == nil {
		return "not known"
	}
	return strconv.FormatInt(*fee, 10)
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
	for _, l := range a.sold[b.order] {
		switch {
		case l.Status == "revoked":
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
	suspended := a.suspend && m.dispute.held() > 0 // no second payment is disputed without a decision
	for _, l := range a.sold[b.order] {
		if l.Status == "revoked" {
			continue
		}
		usable = append(usable, l.LicenseKey)
		if (l.Status == "suspended") != suspended {
			wrong("the license is %s, and the dispute is %v", l.Status, m.dispute)
		}
		if b.product != "" && l.ProductID != b.product {
			wrong("the license is for %s, and must be for %s", l.ProductID, b.product)
		}
	}
	want := 0
	if !m.back(b) && m.kept() > 0 {
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

// difference returns how the order differs from what its money demands; empty if it does not.
func difference(
	b *buyer, now *client.Order, payments []client.Payment, m *money, subscriptions map[string]string,
) string {
	status := now.Status
	switch kept, back := m.kept(), m.back(b); {
	case m.paid != 0 && m.paid != b.amount, kept < 0:
		return fmt.Sprintf("%d %s are paid and %d returned of a price of %d", m.paid, b.price.currency, m.returned,
			b.amount)
	case now.RefundDue || now.RefundPending > 0:
		return "a refund is due"
	case now.AmountRefunded != m.returned+m.given:
		return fmt.Sprintf("%d %s are returned, and amount_refunded is %d", m.returned+m.given, b.price.currency,
			now.AmountRefunded)
	case back && status != "refunded":
		return fmt.Sprintf("the money was returned, and the order is %s", status)
	case !back && kept > 0 && status != "paid":
		return fmt.Sprintf("%d %s are paid, and the order is %s", kept, b.price.currency, status)
	case !back && kept > 0 && now.LicensesIssued != b.quantity:
		return fmt.Sprintf("%d licenses are paid, and %d are issued", b.quantity, now.LicensesIssued)
	case m.paid == 0 && (status == "paid" || status == "refunded"):
		return fmt.Sprintf("nothing is paid, and the order is %s", status)
	}
	if d := disputeOf(payments); !m.dispute.equal(d) {
		return fmt.Sprintf("the dispute is %v, and must be %v", d, m.dispute)
	}
	want, has := subscriptions[b.order], ""
	if now.Subscription != nil {
		has = now.Subscription.Status
	}
	if has != want || b.status != "" && want != b.status ||
		!m.until.IsZero() && now.Subscription.CurrentPeriodEnd.Before(m.until) {
		return fmt.Sprintf("the subscription is %q at Stripe, paid until %s, and %+v at the service, which has "+
			"promised %q", want, m.until, now.Subscription, b.status)
	}
	if paid := m.paid + m.further(); now.AmountPaid != paid {
		return fmt.Sprintf("%d %s are paid, and amount_paid is %d", paid, b.price.currency, now.AmountPaid)
	}
	if !feeAgrees(now.Fee, m.fee, m.fee != 0) {
		return fmt.Sprintf("Stripe keeps %d %s, and fee is %s", m.fee, b.price.currency, feeText(now.Fee))
	}
	return ""
}
