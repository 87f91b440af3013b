package main

import (
	"maps"
	"slices"

	"licet/loadtest/trial"
	"licet/loadtest/webhooks"
)

// proof is the result of comparing a journal with a store: counts, and every contradiction as a problem.
type proof struct {
	trial.Report
	Facts []fact `json:"facts"`
}

// fact is a count of what was acknowledged, and the same count of what is stored.
type fact struct {
	What         string `json:"what"`
	Acknowledged int    `json:"acknowledged"`
	Stored       int    `json:"stored"`
	Uncertain    int    `json:"uncertain"` // of unknown outcome: stored or not, both is right
}

// compare compares a journal with what is stored.
func compare(j *journal, st *stored) *proof {
	p := &proof{}
	for _, answer := range j.wrong {
		p.Problem("a wrong answer: %s", answer)
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
			p.Problem("license %s has %d devices and allows %d", key, len(found.devices), found.MaxDevices)
		}
		if found.CurrentDevices != len(found.devices) {
			p.Problem("license %s counts %d devices and lists %d", key, found.CurrentDevices, len(found.devices))
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
				p.Problem("license %s: device %s was acknowledged as bound, and is not", key, id)
			case found.devices[id] && !bound:
				p.Problem("license %s: device %s is bound, although its removal was acknowledged, or no request "+
					"bound it", key, id)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(found.devices)) {
			devices.Stored++
			if history.devices[id] == nil {
				p.Problem("license %s: device %s is bound, and no request bound it", key, id)
			}
		}
		if history.full > 0 && removals == 0 && len(found.devices) != found.MaxDevices {
			p.Problem("license %s refused a device as full, and has %d of %d", key, len(found.devices),
				found.MaxDevices)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.licenses)) {
		if st.licenses[key] == nil {
			p.Problem("license %s was used, and is not there", key)
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
			p.Problem("order %s was acknowledged, and is not there", number)
			continue
		}
		orders.Stored++
		switch canceled := found.Status == "canceled"; {
		case canceled && len(history.cancels) == 0:
			p.Problem("order %s is canceled, and no request canceled it", number)
		case !canceled && slices.ContainsFunc(history.cancels, func(e effect) bool { return e.known }):
			p.Problem("order %s was acknowledged as canceled, and is %s", number, found.Status)
		}
		if found.Status != "paid" {
			if sure {
				p.Problem("order %s was acknowledged as paid, and is %s", number, found.Status)
			}
			if found.LicenseKey != "" {
				p.Problem("order %s is %s, and has a license", number, found.Status)
			}
			continue
		}
		paid.Stored++
		if len(history.pays) == 0 {
			p.Problem("order %s is paid, and no request paid it", number)
		}
		for _, seen := range history.licenses {
			if seen != found.LicenseKey {
				p.Problem("order %s showed license %s, and has %s", number, seen, found.LicenseKey)
			}
		}
		if other, taken := owner[found.LicenseKey]; taken {
			p.Problem("orders %s and %s have the same license", other, number)
		}
		owner[found.LicenseKey] = number
		switch license := st.licenses[found.LicenseKey]; {
		case license == nil:
			p.Problem("order %s is paid, and its license is not there", number)
		case license.OrderNo != number:
			p.Problem("order %s has a license that names another order", number)
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
		p.Problem("the store has %d licenses, and %d were granted or paid for", st.totals["license"], len(st.licenses))
	}
	least, most := len(st.orders), len(st.orders)+j.unanswered()
	p.Facts = append(p.Facts, fact{What: "orders in the whole store", Acknowledged: least, Stored: st.totals["order"],
		Uncertain: most - least})
	if n := st.totals["order"]; n < least || n > most {
		p.Problem("the store has %d orders, and %d to %d were made", n, least, most)
	}
}

// addEvents adds what the audit of the webhook endpoints has found. A nil result is a no-op.
func (p *proof) addEvents(r *webhooks.Result) {
	if r == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Accepted)) {
		p.Facts = append(p.Facts, fact{What: "events that the endpoint " + name + " has accepted",
			Acknowledged: r.Events, Stored: r.Accepted[name]})
	}
	p.Notes, p.Problems = append(p.Notes, r.Notes...), append(p.Problems, r.Problems...)
}
