package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// sums are the totals of a day: how many there are of each kind, and what orders cost in
// all, in the minor unit of each currency.
type sums map[string]int64

func (s sums) addOrder(status string, late bool, currency string, amount int64) {
	kinds := []string{"orders", "orders, " + status}
	if late {
		kinds = append(kinds, "orders, paid late")
	}
	for _, kind := range kinds {
		s[kind]++
		s[kind+", in "+currency] += amount
	}
}

func (s sums) addLicense(status, product string, devices int, granted bool) {
	s["licenses"]++
	s["licenses, "+status]++
	s["licenses for "+product]++
	if granted {
		s["licenses without an order"]++
	}
	s["devices"] += int64(devices)
}

// sumLedger adds up what must be.
func sumLedger(l *ledger, at time.Time) sums {
	s := sums{}
	for _, o := range l.allOrders() {
		s.addOrder(o.status(at), o.late, o.plan.currency, o.plan.amount)
	}
	for _, e := range l.allLicenses() {
		s.addLicense(e.status(at), e.product, len(e.devices), e.order == "")
	}
	for _, k := range l.keys {
		s["API keys, "+k.status(at)]++
	}
	return s
}

// sumBooks adds up what the service lists.
func sumBooks(b *books) sums {
	s := sums{}
	for i := range b.orders {
		o := &b.orders[i]
		s.addOrder(o.Status, o.Late, o.Currency, o.Amount)
	}
	for i := range b.licenses {
		l := &b.licenses[i]
		s.addLicense(l.Status, l.ProductID, l.CurrentDevices, l.OrderNo == "")
	}
	for i := range b.keys {
		s["API keys, "+b.keys[i].Status]++
	}
	return s
}

// line is a total of both sides.
type line struct {
	what            string
	ledger, service int64
}

// compareSums puts the totals of both sides side by side: orders, licenses, devices, then
// the rest.
func compareSums(ledger, service sums) []line {
	all := maps.Clone(ledger)
	maps.Copy(all, service)
	kind := func(what string) int {
		kinds := []string{"orders", "licenses", "devices", ""}
		return slices.IndexFunc(kinds, func(prefix string) bool { return strings.HasPrefix(what, prefix) })
	}
	var list []line
	for _, what := range slices.SortedFunc(maps.Keys(all),
		func(a, b string) int { return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(a, b)) }) {
		list = append(list, line{what, ledger[what], service[what]})
	}
	return list
}

// sumFamilies compares how many keys of some families licet store verify counts with how
// many there must be.
func sumFamilies(l *ledger, families map[string]int) []line {
	var list []line
	want := map[string]int{"order": len(l.orders), "license": len(l.licenses), "product": len(l.products),
		"api_key": len(l.keys)}
	for _, family := range slices.Sorted(maps.Keys(want)) {
		list = append(list, line{"in the store: " + family, int64(want[family]), int64(families[family])})
	}
	return list
}

// unlike returns the differences between a store and its restored backup. Nodes register
// themselves under leases, which end with the nodes.
func unlike(before, after map[string]int) []string {
	c := &comparison{}
	all := maps.Clone(before)
	maps.Copy(all, after)
	delete(all, "node")
	for family := range all {
		if before[family] != after[family] {
			c.add("the backup's store has %d keys of the family %s, and the restored store has %d", before[family],
				family, after[family])
		}
	}
	return c.found
}
