package main

import (
	"fmt"
	"maps"
	"slices"
)

// proof is the result of comparing a journal with a store: counts, and every
// contradiction.
type proof struct {
	Facts    []fact   `json:"facts"`
	Problems []string `json:"problems"`
}

// fact is a count of what was acknowledged, and the same count of what is stored.
type fact struct {
	What         string `json:"what"`
	Acknowledged int    `json:"acknowledged"`
	Stored       int    `json:"stored"`
	Uncertain    int    `json:"uncertain"` // of unknown outcome: stored or not, both is right
}

func (p *proof) err() error {
	if len(p.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("contradictions between what was acknowledged and what is stored: %d; the first: %s",
		len(p.Problems), p.Problems[0])
}

func (p *proof) problem(format string, args ...any) {
	p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
}

// compare compares a journal with what is stored.
func compare(j *journal, st *stored) *proof {
	p := &proof{}
	for _, answer := range j.wrong {
		p.problem("a wrong answer: %s", answer)
	}
	p.compareDevices(j, st)
	p.compareOrders(j, st)
	p.compareLists(j, st)
	p.compareTotals(j, st)
	return p
}

func (p *proof) compareDevices(j *journal, st *stored) {
	devices, lapsed := fact{What: "bound devices"}, fact{What: "leases that have lapsed"}
	for _, key := range slices.Sorted(maps.Keys(st.licenses)) {
		history, found := j.license(key), st.licenses[key]
		if found.MaxDevices > 0 && len(found.devices) > found.MaxDevices {
			p.problem("license %s has %d devices and allows %d", key, len(found.devices), found.MaxDevices)
		}
		if found.CurrentDevices != len(found.devices) {
			p.problem("license %s counts %d devices and lists %d", key, found.CurrentDevices, len(found.devices))
		}
		if len(history.leases) > 0 {
			p.compareLeases(key, history.leases, found, &lapsed)
			continue
		}
		removals := 0
		for _, id := range slices.Sorted(maps.Keys(history.devices)) {
			d := history.devices[id]
			removals += len(d.removals)
			bound, free := d.mayBeBound(), d.mayBeFree()
			switch {
			case bound && free:
				devices.Uncertain++
			case bound:
				devices.Acknowledged++
			}
			switch {
			case !found.devices[id] && !free:
				p.problem("license %s: device %s was acknowledged as bound, and is not", key, id)
			case found.devices[id] && !bound:
				p.problem("license %s: device %s is bound, although its removal was acknowledged, or no request "+
					"bound it", key, id)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(found.devices)) {
			devices.Stored++
			if history.devices[id] == nil {
				p.problem("license %s: device %s is bound, and no request bound it", key, id)
			}
		}
		if history.full > 0 && removals == 0 && len(found.devices) != found.MaxDevices {
			p.problem("license %s refused a device as full, and has %d of %d", key, len(found.devices),
				found.MaxDevices)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.licenses)) {
		if st.licenses[key] == nil {
			p.problem("license %s was used, and is not there", key)
		}
	}
	if p.Facts = append(p.Facts, devices); lapsed.Acknowledged > 0 {
		p.Facts = append(p.Facts, lapsed)
	}
}

func (p *proof) compareOrders(j *journal, st *stored) {
	orders, paid := fact{What: "orders"}, fact{What: "paid orders, each with its license"}
	owner := map[string]string{} // of a license: its order
	for _, number := range slices.Sorted(maps.Keys(j.orders)) {
		history, found := j.orders[number], st.orders[number]
		if history.created {
			orders.Acknowledged++
		}
		sure := len(history.licenses) > 0 || slices.ContainsFunc(history.pays, func(e effect) bool { return e.known })
		if sure {
			paid.Acknowledged++
		} else if len(history.pays) > 0 {
			paid.Uncertain++
		}
		if found == nil {
			p.problem("order %s was acknowledged, and is not there", number)
			continue
		}
		orders.Stored++
		if found.Status != "paid" {
			if sure {
				p.problem("order %s was acknowledged as paid, and is %s", number, found.Status)
			}
			if found.LicenseKey != "" {
				p.problem("order %s is %s, and has a license", number, found.Status)
			}
			continue
		}
		paid.Stored++
		if len(history.pays) == 0 {
			p.problem("order %s is paid, and no request paid it", number)
		}
		for _, seen := range history.licenses {
			if seen != found.LicenseKey {
				p.problem("order %s showed license %s, and has %s", number, seen, found.LicenseKey)
			}
		}
		if other, taken := owner[found.LicenseKey]; taken {
			p.problem("orders %s and %s have the same license", other, number)
		}
		owner[found.LicenseKey] = number
		switch license := st.licenses[found.LicenseKey]; {
		case license == nil:
			p.problem("order %s is paid, and its license is not there", number)
		case license.OrderNo != number:
			p.problem("order %s has a license that names another order", number)
		}
	}
	if orders.Acknowledged > 0 || len(j.keys) > 0 {
		orders.Uncertain = j.unanswered()
		p.Facts = append(p.Facts, orders, paid)
	}
}

// compareTotals counts the whole store, if no other run uses it.
func (p *proof) compareTotals(j *journal, st *stored) {
	if st.totals == nil {
		return
	}
	p.Facts = append(p.Facts,
		fact{What: "licenses in the whole store", Acknowledged: len(st.licenses), Stored: st.totals["license"]})
	if st.totals["license"] != len(st.licenses) {
		p.problem("the store has %d licenses, and %d were granted or paid for", st.totals["license"], len(st.licenses))
	}
	least, most := len(st.orders), len(st.orders)+j.unanswered()
	p.Facts = append(p.Facts, fact{What: "orders in the whole store", Acknowledged: least, Stored: st.totals["order"],
		Uncertain: most - least})
	if n := st.totals["order"]; n < least || n > most {
		p.problem("the store has %d orders, and %d to %d were made", n, least, most)
	}
}
