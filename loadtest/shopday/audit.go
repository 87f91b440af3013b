package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"licet/client"
)

// comparison collects differences, with both sides.
type comparison struct{ found []string }

func (c *comparison) add(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func differ[T comparable](c *comparison, what string, ledger, service T) {
	if ledger != service {
		c.add("%s is %v by the ledger, and %v by the service", what, ledger, service)
	}
}

func (c *comparison) times(what string, ledger, service time.Time) {
	if !ledger.Equal(service) {
		c.add("%s is %v by the ledger, and %v by the service", what, ledger, service)
	}
}

// set compares two sets, and names what only one of them has.
func (c *comparison) set(what string, ledger, service []string) {
	ledger, service = slices.Sorted(slices.Values(ledger)), slices.Sorted(slices.Values(service))
	if slices.Equal(ledger, service) {
		return
	}
	only := func(a, b []string) (list []string) {
		for _, item := range a {
			if !slices.Contains(b, item) {
				list = append(list, item)
			}
		}
		return list
	}
	c.add("%s: %d by the ledger, %d by the service; only in the ledger: %v; only in the service: %v",
		what, len(ledger), len(service), only(ledger, service), only(service, ledger))
}

// differences returns how an order of the service differs from the ledger.
func (o *orderEntry) differences(now *client.Order, products []product, at time.Time) []string {
	c := &comparison{}
	status := o.status(at)
	differ(c, "status", status, now.Status)
	differ(c, "product_id", products[o.plan.product].id, now.ProductID)
	differ(c, "amount", o.plan.amount, now.Amount)
	differ(c, "currency", o.plan.currency, now.Currency)
	differ(c, "description", o.description, now.Description)
	differ(c, "buyer_email", o.email, now.BuyerEmail)
	differ(c, "success_url", o.plan.successURL, now.SuccessURL)
	differ(c, "late", o.late, now.Late)
	differ(c, "license_key", o.license, now.LicenseKey)
	differ(c, "state_reason", o.reason, now.StateReason)
	differ(c, "refund_due", false, now.RefundDue)
	differ(c, "whether it was paid", o.paid, !now.PaidAt.IsZero())
	differ(c, "whether it was canceled", o.canceled, !now.CanceledAt.IsZero())
	differ(c, "whether it was refunded", o.refunded, !now.RefundedAt.IsZero())
	if now.PayURL != "" || !o.early {
		differ(c, "whether it can be paid", status == stateUnpaid, now.PayURL != "")
	}
	if now.PayURL != "" {
		differ(c, "pay_url", o.payURL, now.PayURL)
	}
	c.times("created_at", o.made, now.CreatedAt)
	c.times("expires_at", o.ends, now.ExpiresAt)
	if !sameJSON(now.Metadata, whole(o.metadata)) {
		c.add("metadata is %v by the ledger, and %s by the service", o.metadata, now.Metadata)
	}
	return c.found
}

// whole returns the metadata that the service shows: empty metadata if none was given.
func whole(metadata map[string]any) map[string]any {
	if metadata == nil {
		return map[string]any{}
	}
	return metadata
}

// differences returns how a license of the service differs from the ledger.
func (l *licenseEntry) differences(now *client.License, at time.Time) []string {
	c := &comparison{}
	differ(c, "license_key", l.key, now.LicenseKey)
	differ(c, "status", l.status(at), now.Status)
	differ(c, "product_id", l.product, now.ProductID)
	differ(c, "order_no", l.order, now.OrderNo)
	differ(c, "the prefix of its key", l.terms.prefix, strings.SplitN(now.LicenseKey, "-", 2)[0])
	differ(c, "max_devices", l.maxDevices, now.MaxDevices)
	differ(c, "current_devices", len(l.devices), now.CurrentDevices)
	differ(c, "whether it is suspended", l.suspended, !now.SuspendedAt.IsZero())
	differ(c, "whether it is revoked", l.revoked, !now.RevokedAt.IsZero())
	c.times("activated_at", l.activated, now.ActivatedAt)
	c.times("expires_at", l.ends, now.ExpiresAt)
	c.times("created_at", l.made, now.CreatedAt)
	differ(c, "state_reason", l.reason, now.StateReason)
	if !sameJSON(now.Metadata, l.metadata) {
		c.add("metadata is %v by the ledger, and %s by the service", l.metadata, now.Metadata)
	}
	if len(now.Devices) > 0 || now.DevicesNextCursor == "" { // a list may leave them out
		var names []string
		for _, d := range now.Devices {
			names = append(names, d.DeviceID+" called "+d.DeviceName)
		}
		var known []string
		for id, name := range l.devices {
			known = append(known, id+" called "+name)
		}
		c.set("devices", known, names)
	}
	return c.found
}

// audit compares the ledger with the books, in both directions.
func audit(l *ledger, b *books, at time.Time) []string {
	c := &comparison{}
	c.orders(l, b, at)
	c.licenses(l, b, at)
	c.filters(l, b, at)
	c.catalog(l, b)
	c.keys(l, b, at)
	return c.found
}

func (c *comparison) orders(l *ledger, b *books, at time.Time) {
	listed := map[string]bool{}
	for i := range b.orders {
		now := &b.orders[i]
		entry := l.orders[now.OrderNo]
		switch {
		case listed[now.OrderNo]:
			c.add("order %s is listed twice", now.OrderNo)
		case entry == nil:
			c.add("order %s (%s) is listed, and no request created it", now.OrderNo, now.Status)
		default:
			for _, difference := range entry.differences(now, l.products, at) {
				c.add("order %s, %s: %s", now.OrderNo, entry.plan, difference)
			}
		}
		listed[now.OrderNo] = true
	}
	for _, entry := range l.allOrders() {
		if !listed[entry.number] {
			c.add("order %s, %s was acknowledged, and is not listed", entry.number, entry.plan)
		}
	}
}

func (c *comparison) licenses(l *ledger, b *books, at time.Time) {
	listed := map[string]bool{}
	of := map[string]int{} // orders: how many licenses name them
	for i := range b.licenses {
		now := &b.licenses[i]
		entry := l.licenses[now.LicenseKey]
		switch {
		case listed[now.LicenseKey]:
			c.add("license %s is listed twice", now.LicenseKey)
		case entry == nil:
			c.add("license %s (%s, of order %q) is listed, and no response returned it", now.LicenseKey, now.Status,
				now.OrderNo)
		default:
			for _, difference := range entry.differences(now, at) {
				c.add("license %s in the list: %s", now.LicenseKey, difference)
			}
		}
		listed[now.LicenseKey] = true
		if now.OrderNo != "" {
			of[now.OrderNo]++
		}
	}
	for _, entry := range l.allLicenses() {
		if !listed[entry.key] {
			c.add("license %s was acknowledged, and is not listed", entry.key)
		}
		if b.details[entry.key] == nil {
			c.add("license %s was acknowledged, and is not there", entry.key)
			continue
		}
		for _, difference := range entry.differences(b.details[entry.key], at) {
			c.add("license %s: %s", entry.key, difference)
		}
	}
	for i := range b.orders { // by what the service says alone
		now := &b.orders[i]
		want := 0
		if now.Status == statePaid || now.Status == stateRefunded && now.CanceledAt.IsZero() {
			want = 1
		}
		if got := of[now.OrderNo]; got != want {
			c.add("order %s is %s, and %d licenses name it", now.OrderNo, now.Status, got)
		}
	}
}

// filters compares what each filter returns with what it must return.
func (c *comparison) filters(l *ledger, b *books, at time.Time) {
	for f, got := range b.ordersBy {
		var want []string
		for _, o := range l.allOrders() {
			if (f.Status == "" || f.Status == o.status(at)) &&
				(f.ProductID == "" || f.ProductID == l.products[o.plan.product].id) &&
				(f.BuyerEmail == "" || strings.EqualFold(f.BuyerEmail, o.email)) {
				want = append(want, o.number)
			}
		}
		c.set(fmt.Sprintf("orders by %+v", f), want, got)
	}
	for f, got := range b.licensesBy {
		var want []string
		for _, e := range l.allLicenses() {
			if (f.Status == "" || f.Status == e.status(at)) && (f.ProductID == "" || f.ProductID == e.product) &&
				(f.OrderNo == "" || f.OrderNo == e.order) &&
				(f.BuyerEmail == "" || strings.EqualFold(f.BuyerEmail, e.email)) {
				want = append(want, e.key)
			}
		}
		c.set(fmt.Sprintf("licenses by %+v", f), want, got)
	}
}

func (c *comparison) catalog(l *ledger, b *books) {
	var want, got []string
	for _, p := range l.products {
		want = append(want, p.id)
	}
	for _, p := range b.products {
		got = append(got, p.ProductID)
	}
	c.set("products", want, got)
}

func (c *comparison) keys(l *ledger, b *books, at time.Time) {
	var want, got []string
	for id := range maps.Keys(l.keys) {
		want = append(want, id)
	}
	for _, now := range b.keys {
		got = append(got, now.ID)
		entry := l.keys[now.ID]
		if entry == nil {
			continue // the sets tell
		}
		about := "API key " + now.ID + ", of the " + entry.name + ": "
		differ(c, about+"name", entry.name, now.Name)
		differ(c, about+"status", entry.status(at), now.Status)
		differ(c, about+"require_signature", entry.signed, now.RequireSignature)
		c.times(about+"expires_at", entry.ends, now.ExpiresAt)
		c.set(about+"scopes", entry.scopes, now.Scopes)
	}
	c.set("API keys", want, got)
}
