package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// sum is how many there are of something, and what they cost in all, in the
// minor unit of each currency.
type sum struct {
	count   int
	amounts map[string]int64
}

func (s sum) String() string {
	text := fmt.Sprint(s.count)
	for _, currency := range slices.Sorted(maps.Keys(s.amounts)) {
		text += fmt.Sprintf("  %s %d", currency, s.amounts[currency])
	}
	return text
}

// sums are the totals of a day by what they are of.
type sums map[string]sum

func (s sums) add(what, currency string, amount int64) {
	total := s[what]
	total.count++
	if currency != "" {
		if total.amounts == nil {
			total.amounts = map[string]int64{}
		}
		total.amounts[currency] += amount
	}
	s[what] = total
}

func (s sums) addOrder(status string, late bool, currency string, amount int64) {
	s.add("orders", currency, amount)
	s.add("orders, "+status, currency, amount)
	if late {
		s.add("orders, paid late", currency, amount)
	}
}

func (s sums) addLicense(status, product string, devices int, granted bool) {
	s.add("licenses", "", 0)
	s.add("licenses, "+status, "", 0)
	s.add("licenses for "+product, "", 0)
	if granted {
		s.add("licenses without an order", "", 0)
	}
	for range devices {
		s.add("devices", "", 0)
	}
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
		s.add("API keys, "+k.status(at), "", 0)
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
		s.add("API keys, "+b.keys[i].Status, "", 0)
	}
	return s
}

// line is a total of both sides.
type line struct {
	what            string
	ledger, service sum
}

func (l line) agrees() bool { return l.ledger.String() == l.service.String() }

// compareSums sets the totals of both sides beside each other.
func compareSums(ledger, service sums) []line {
	names := map[string]bool{}
	for _, side := range []sums{ledger, service} {
		for what := range side {
			names[what] = true
		}
	}
	var list []line
	for _, what := range slices.SortedFunc(maps.Keys(names), byKind) {
		list = append(list, line{what, ledger[what], service[what]})
	}
	return list
}

// byKind puts orders first, then licenses, then the rest.
func byKind(a, b string) int {
	kind := func(what string) int {
		for i, prefix := range []string{"orders", "licenses", "devices"} {
			if strings.HasPrefix(what, prefix) {
				return i
			}
		}
		return len(what)
	}
	if d := kind(a) - kind(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// storedFamilies is how many keys of some families the store must have, as
// licet store verify counts them.
func storedFamilies(l *ledger) map[string]int {
	return map[string]int{"order": len(l.orders), "license": len(l.licenses), "product": len(l.products), "api_key": len(l.keys)}
}

// sumFamilies sets the counts of licet store verify beside what must be.
func sumFamilies(l *ledger, families map[string]int) []line {
	var list []line
	want := storedFamilies(l)
	for _, family := range slices.Sorted(maps.Keys(want)) {
		list = append(list, line{"in the store: " + family, sum{count: want[family]}, sum{count: families[family]}})
	}
	return list
}

// unlike is what a restored store has otherwise than the one that was backed up.
// Nodes register themselves under leases, which end with them.
func unlike(before, after map[string]int) []string {
	c := &comparison{}
	for _, side := range []map[string]int{before, after} {
		delete(side, "node")
	}
	for family := range maps.Keys(before) {
		if before[family] != after[family] {
			c.add("the backup's store has %d keys of the family %s, and the restored one %d", before[family], family, after[family])
		}
	}
	for family := range maps.Keys(after) {
		if _, found := before[family]; !found {
			c.add("the restored store has %d keys of the family %s, and the backup's none", after[family], family)
		}
	}
	return c.found
}
