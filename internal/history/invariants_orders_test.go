package history

import (
	"slices"
	"strings"

	"licet/licensing"
)

// order: paid once, with its license in the same revision, and never otherwise
// (invariant 6). Redacted along with its license, and for good.
func (i *inspection) order(number string, states []*orderAt) {
	before := &orderAt{email: "somebody's"}
	for _, s := range states {
		if s.email == "" && s.description+s.metadata != "" || before.email == "" && s.email != "" {
			i.add("orders", "%s was redacted, and not all of it, or not for good: %+v, then %+v", number, before, s)
		}
		if s.email == "" && before.email != "" && s.noted != "" {
			i.add("orders", "%s was redacted, and its license was not: %+v", number, s)
		}
		if before.paid != 0 && (s.paid != before.paid || s.payment != before.payment) {
			i.add("orders", "%s was paid twice: %+v, then %+v", number, before, s)
		}
		if !before.key.IsZero() && s.key != before.key {
			i.add("orders", "%s has changed its license: %+v, then %+v", number, before, s)
		}
		if before.canceled != 0 && (s.canceled != before.canceled || !s.key.IsZero()) {
			i.add("orders", "%s was canceled: %+v, then %+v", number, before, s)
		}
		if before.refunded != 0 && s.refunded != before.refunded {
			i.add("orders", "%s was refunded twice: %+v, then %+v", number, before, s)
		}
		i.quantity(number, before, s)
		issued := !s.key.IsZero() && before.key.IsZero()
		made := s.licensesMade
		if issued && s.key == s.upgradeOf {
			made = s.upgrades
		}
		own := []licensing.LicenseID{s.key.ID()}
		if issued && (s.paid == 0 || s.quantity == 0 && !slices.Equal(made, own)) {
			i.add("orders", "%s got a license that was not made with its payment: %+v", number, s)
		}
		if !issued && s.quantity == 0 && len(s.licensesMade)+len(s.upgrades) > 0 {
			i.add("orders", "%s was written along with licenses: %+v", number, s)
		}
		before = s
	}
}

// orders: exactly the licenses that an order counts name it, and
// all other licenses were created or granted (invariant 8). What was
// acknowledged is so.
func (i *inspection) orders(t *timeline) {
	named := map[string][]licensing.LicenseKey{}
	known := map[licensing.LicenseKey]bool{}
	for _, l := range i.run.licenses {
		known[l.key] = true
	}
	for _, d := range i.run.deeds {
		switch {
		case d.What == "grant", d.What == "grant rolled":
			if want := map[string]int{"grant": granted, "grant rolled": rolledOut}[d.What]; len(d.Keys) != want {
				i.add("orders", "%d licenses were granted, want %d", len(d.Keys), want)
			}
			for _, key := range d.Keys {
				if known[key] = true; len(t.licenses[key.ID()]) == 0 {
					i.add("orders", "%s was granted and is not there", key)
				}
			}
		case d.Out.Verdict == accepted && d.What != "import" && d.What != "try":
			i.deed(d, t.orders[d.Order])
		}
	}
	for _, writes := range t.aliases { // of licenses whose requests may have got no answer
		known[writes[0].license.Key("LIC")] = true
	}
	for id, states := range t.licenses {
		key := id.Key("LIC")
		if order := states[len(states)-1].order; order != "" {
			named[order] = append(named[order], key)
		} else if !known[key] && states[0].trial == "" {
			i.add("orders", "%s has no order, and no request granted it", key)
		}
	}
	asked := map[string]string{}
	for number, states := range t.orders {
		if twin, made := asked[states[0].description]; made {
			i.add("orders", "%s and %s were made under one Idempotency-Key", number, twin)
		}
		asked[states[0].description] = number
		last := states[len(states)-1]
		want := last.keys(i.run.owner)
		i.complete(number, last)
		byID := func(a, b licensing.LicenseKey) int { return strings.Compare(a.String(), b.String()) }
		slices.SortFunc(want, byID)
		if !slices.Equal(slices.SortedFunc(slices.Values(named[number]), byID), want) {
			i.add("orders", "%s has the license %v, and the licenses %v name it", number, want, named[number])
		}
		delete(named, number)
	}
	for number, states := range t.orders {
		i.refunded(number, states, t)
	}
	for number, keys := range named {
		i.add("orders", "the licenses %v name the order %s, which is not there", keys, number)
	}
}

// refunded: the first license of an order is revoked in the revision that refunds the order, if it was not before, and
// the others by the end.
func (i *inspection) refunded(number string, states []*orderAt, t *timeline) {
	for n, s := range states {
		if s.refunded == 0 {
			continue
		}
		last := n == len(states)-1
		for at, key := range s.keys(i.run.owner) {
			revoked := slices.ContainsFunc(t.licenses[key.ID()], func(l *licenseAt) bool {
				return l.revoked != 0 && (l.revision <= s.revision || at > 0)
			})
			if !revoked && (at == 0 || last) {
				i.add("orders", "%s was refunded, and its license %s was not revoked with that: %+v", number, key, s)
			}
		}
	}
}

// deed: an acknowledged step of an order is stored.
func (i *inspection) deed(d deed, states []*orderAt) {
	if len(states) == 0 || states[0].revision > d.After {
		i.add("orders", "%s: %s was acknowledged, and the order was not there", d.Order, d.What)
		return
	}
	last := states[len(states)-1]
	ok := len(d.Keys) == 0 || d.Keys[0] == last.key
	switch d.What {
	case "pay":
		ok = ok && last.paid != 0
	case "cancel":
		ok = ok && last.canceled != 0
	case "refund":
		ok = ok && last.refunded != 0 && !last.refundDue
	case "redact":
		ok = ok && last.email == ""
	}
	if !ok {
		i.add("orders", "%s: %s was acknowledged with %v, and is stored as %+v", d.Order, d.What, d.Keys, last)
	}
}
