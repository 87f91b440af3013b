package main

import (
	"slices"

	"licet/loadtest/webhooks"
)

// changesOf returns the changes of a load whose devices are bound once and removed at most once. A change is true if it
// was acknowledged, so there must be an event, and false if its outcome is unknown, so there may be an event.
func changesOf(j *journal, st *stored) map[webhooks.Change]bool {
	all := map[webhooks.Change]bool{}
	add := func(kind, subject, device string, effects []effect) {
		if len(effects) > 0 {
			all[webhooks.Change{Kind: kind, Subject: subject, Device: device}] = slices.ContainsFunc(effects,
				func(e effect) bool { return e.known })
		}
	}
	certain := []effect{{known: true}}
	for key := range st.licenses {
		add("license.issued", key, "", certain)
	}
	for key, l := range j.licenses {
		add("license.issued", key, "", certain)
		var binds []effect
		for id, d := range l.devices {
			add("device.bound", key, id, d.binds)
			add("device.removed", key, id, d.removals)
			binds = append(binds, d.binds...)
		}
		add("license.activated", key, "", binds)
	}
	for number, o := range j.orders {
		add("order.created", number, "", certain)
		add("order.canceled", number, "", o.cancels)
		pays := o.pays
		if len(o.licenses) > 0 {
			pays = certain
		}
		add("order.paid", number, "", pays)
	}
	return all
}
