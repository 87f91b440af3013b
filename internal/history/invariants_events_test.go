package history

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// events: each change has exactly its event, in its own revision; each record's are
// numbered without a gap; each stands in the epoch of its revision; and the feed is all
// of them, in one order, however it is read (invariant 7).
func (i *inspection) events(t *timeline) {
	for id, states := range t.licenses {
		record := licenseRecord(id)
		tables := make([]stateOf, len(states))
		for n, s := range states {
			tables[n] = stateOf{s.revision, s.latest, s.gone}
		}
		i.numbers(t, record, tables)
		i.checkLicenseEvents(t, id.Key("LIC"), states, t.keysOf[record])
	}
	for number, states := range t.orders {
		record := "o" + strings.TrimPrefix(number, "ord_")
		tables := make([]stateOf, len(states))
		for n, s := range states {
			tables[n] = stateOf{s.revision, s.latest, false}
		}
		i.numbers(t, record, tables)
		i.checkOrderEvents(number, states, t.keysOf[record])
	}
	usage := usageRecord(t.account)
	tables := make([]stateOf, len(t.usages))
	for n, s := range t.usages {
		tables[n] = stateOf{s.revision, s.latest, false}
	}
	i.numbers(t, usage, tables)
	i.checkUsageEvents(t.usages, t.keysOf[usage])
	for record := range t.keysOf {
		known := record == usage || len(t.orders["ord_"+record[1:]]) > 0
		if record[0] == 'l' && len(record) == 1+16 {
			owner := licensing.Owner{AccountID: t.account, Mode: licensing.Test}
			known = len(t.licenses[licenseIn(licensing.SlotOf(owner), record[1:])]) > 0
		}
		if !known {
			i.add("events", "%q has events, and is not there", record)
		}
	}
	for _, key := range t.changed {
		i.add("events", "the events %q have changed", key)
	}
	i.feeds(t)
}

// stateOf is what a revision of a record says of its latest event.
type stateOf struct {
	revision int64
	latest   latestAt
	gone     bool // the record was deleted, and says nothing
}

// numbers: the events of a record are numbered without a gap from 1 on, each key in
// the revision of a change, and knows where those before stand; the record knows where
// the latest does.
func (i *inspection) numbers(t *timeline, record string, states []stateOf) {
	keys := t.keysOf[record]
	var now latestAt
	for _, s := range states {
		if len(keys) > 0 && keys[0].revision == s.revision {
			k := keys[0]
			keys = keys[1:]
			if k.before != now.location {
				i.add("events", "%q: the events of revision %d come after those at %v, and say %v", record, s.revision,
					now.location, k.before)
			}
			begun := sort.Search(len(t.epochs), func(n int) bool { return t.epochs[n] >= k.revision })
			if begun == 0 || uint64(t.epochs[begun-1]) != k.location.epoch {
				i.add("events", "%q: the events of revision %d stand in epoch %d", record, s.revision, k.location.epoch)
			}
			for _, e := range k.events {
				if e.sequence != now.sequence+1 {
					i.add("events", "%q: number %d comes after %d, in revision %d", record, e.sequence, now.sequence,
						s.revision)
				}
				now = latestAt{k.location, e.sequence}
			}
		}
		if s.latest != now && !s.gone {
			i.add("events", "%q: at revision %d its latest event is %v, and it says %v", record, s.revision, now,
				s.latest)
		}
	}
	for _, k := range keys {
		i.add("events", "%q: revision %d has events and no change of the record", record, k.revision)
	}
}

// recorded reports whether activations of a revision have events.
func (r *run) recorded(revision int64) bool {
	return r.listening == listensAlways || r.listensAfter != 0 && revision > r.listensAfter
}

// checkLicenseEvents checks that the events of each revision lead from the state before to the state after, and that
// there are no other events.
func (i *inspection) checkLicenseEvents(t *timeline, key licensing.LicenseKey, states []*licenseAt, keys []*eventsOf) {
	eventsAt := map[int64][]eventAt{}
	for _, k := range keys {
		eventsAt[k.revision] = k.events
	}
	before := &licenseAt{devices: map[string]int64{}}
	var limit int64
	given := map[noticed]bool{}
	for n, s := range states {
		recorded := i.run.recorded(s.revision)
		now := *before
		now.devices = maps.Clone(before.devices)
		wrong := func(e eventAt) {
			i.add("events", "%s: the event %s can't lead from %s to %s", key, e.text(), before,
				s)
		}
		var seen []licensing.EventType
		for _, e := range eventsAt[s.revision] {
			seen = append(seen, e.kind)
			if e.kind.OfActivation() && !recorded {
				wrong(e)
			}
			_, bound := now.devices[e.device]
			switch e.kind {
			case licensing.EventLicenseIssued:
				if n > 0 {
					wrong(e)
				}
			case licensing.EventLicenseSuspended:
				if now.suspended != 0 && !i.disputed(s.order) { // then the shop suspends what a dispute has suspended
					wrong(e)
				}
				now.suspended = e.at
			case licensing.EventLicenseReinstated:
				if now.suspended == 0 {
					wrong(e)
				}
				now.suspended = 0
			case licensing.EventLicenseRevoked:
				if now.revoked != 0 {
					wrong(e)
				}
				now.revoked = e.at
			case licensing.EventLicenseActivated:
				if now.activated != 0 {
					wrong(e)
				}
				now.activated = e.at
			case licensing.EventDeviceBound:
				if bound || e.boundAt != e.at {
					wrong(e)
				}
				now.devices[e.device] = e.boundAt
			case licensing.EventDeviceChanged:
				if at, was := now.devices[e.previous]; bound || !was || at != e.boundAt {
					wrong(e)
				}
				delete(now.devices, e.previous)
				now.devices[e.device] = e.boundAt
			case licensing.EventDeviceRemoved, licensing.EventDeviceLeaseLapsed:
				if now.devices[e.device] != e.boundAt || !bound {
					wrong(e)
				}
				delete(now.devices, e.device)
			case licensing.EventLicenseDeleted:
				if !s.gone {
					wrong(e)
				}
				clear(now.devices)
			case licensing.EventLicenseLimitReached:
				if e.at-limit < time.Minute.Milliseconds() || bound {
					wrong(e)
				}
				limit = e.at
			case licensing.EventLicenseExpiring:
				i.notices(key, s, e, given)
			case licensing.EventLicenseExpired:
				now.endRecorded = s.endRecorded
			case licensing.EventLicenseRenewed, licensing.EventLicenseUpgraded:
				now.endRecorded = 0
			case licensing.EventLicenseReissued:
				if !strings.HasPrefix(s.reissues, now.reissues) || len(s.reissues) < len(now.reissues)+reissueSize {
					wrong(e)
					break
				}
				now.reissues = s.reissues[:len(now.reissues)+reissueSize]
				name := now.reissues[len(now.reissues)-reissueSize:][:licensing.LicenseBlockSize]
				if w := t.aliases[name]; len(w) != 1 || w[0].revision != s.revision || w[0].license != key.ID() {
					i.add("aliases", "%s: its new key has the aliases %+v at revision %d", key, w, s.revision)
				}
			}
		}
		has := func(kind licensing.EventType) bool { return slices.Contains(seen, kind) }
		fits := now.suspended == s.suspended && now.revoked == s.revoked && now.endRecorded == s.endRecorded &&
			now.reissues == s.reissues && (n == 0) == has(licensing.EventLicenseIssued)
		if recorded {
			fits = fits && now.activated == s.activated && maps.Equal(now.devices, s.devices)
		}
		if n > 0 && s.gone {
			fits = slices.Equal(seen, []licensing.EventType{licensing.EventLicenseDeleted})
		} else if n > 0 {
			upgraded := has(licensing.EventLicenseUpgraded)
			fits = fits && (s.order == before.order) == !upgraded &&
				(s.expires == before.expires || has(licensing.EventLicenseRenewed) || upgraded ||
					has(licensing.EventLicenseUpdated) && t.takesBack(s.order, s.revision)) &&
				(upgraded || s.max == before.max && !s.noteWritten || has(licensing.EventLicenseUpdated) ||
					s.max == before.max && t.redacts(s.order, s.revision))
		}
		if !fits {
			i.add("events", "%s: the events %v lead from %s to %s", key, seen, before, s)
		}
		before = s
	}
}

func (e eventAt) text() string {
	return fmt.Sprintf("%d %s %s (bound at %d) at %d in revision %d", e.sequence, e.kind, e.device, e.boundAt, e.at,
		e.revision)
}

// redacts reports whether an order, and so its license, was redacted in a revision.
func (t *timeline) redacts(order string, revision int64) bool {
	return slices.ContainsFunc(t.orders[order],
		func(o *orderAt) bool { return o.revision == revision && o.email == "" })
}

// checkOrderEvents checks that the events of each revision say what the revision has changed.
func (i *inspection) checkOrderEvents(number string, states []*orderAt, keys []*eventsOf) {
	eventsAt := map[int64][]licensing.EventType{}
	for _, k := range keys {
		for _, e := range k.events {
			eventsAt[k.revision] = append(eventsAt[k.revision], e.kind)
		}
	}
	before := &orderAt{}
	for n, s := range states {
		var want []licensing.EventType
		for _, c := range []struct {
			is   bool
			kind licensing.EventType
		}{
			{n == 0, licensing.EventOrderCreated},
			{before.expired == 0 && s.expired != 0, licensing.EventOrderExpired},
			{before.canceled == 0 && s.canceled != 0, licensing.EventOrderCanceled},
			{before.key.IsZero() && !s.key.IsZero(), licensing.EventOrderPaid},
			{s.disputed, licensing.EventOrderDisputed},
			{before.refunded == 0 && s.refunded != 0, licensing.EventOrderRefunded},
			{s.second || s.further || !s.disputed &&
				(s.sums.updates(&before.sums) && (before.refunded != 0) == (s.refunded != 0) ||
					s.billed.returned != before.billed.returned || s.open < before.open),
				licensing.EventOrderRefundUpdated},
			{s.billed.invoices > before.billed.invoices && !s.second, licensing.EventOrderPaymentSucceeded},
			{s.billed.fails(&before.billed), licensing.EventOrderPaymentFailed},
			{s.billed.changes(&before.billed), licensing.EventOrderSubscriptionChanged},
		} {
			if c.is {
				want = append(want, c.kind)
			}
		}
		if !slices.Equal(eventsAt[s.revision], want) {
			i.add("events", "%s: the events %v lead from %+v to %+v", number, eventsAt[s.revision], before, s)
		}
		before = s
	}
}

// feeds: the feed has each event once, in the order of their revisions and orders before
// licenses, whether it was read from page to page while they were made or from the beginning in the end; and so
// do the histories. What a revision tells of several records stands in blocks, or else
// each record's apart: that order is made of it.
func (i *inspection) feeds(t *timeline) {
	type seen struct {
		record   string
		sequence uint64
		kind     licensing.EventType
		at       int64
		device   string
		revision int64
	}
	stored := map[seen]bool{}
	byRecord := map[string][]seen{}
	inBlocks := map[int64]bool{}
	for record, keys := range t.keysOf {
		for _, k := range keys {
			if before, known := inBlocks[k.revision]; known && before != (k.location.block != 0) {
				i.add("events", "revision %d tells of some records in blocks, and of some apart", k.revision)
			}
			inBlocks[k.revision] = k.location.block != 0
			for _, e := range k.events {
				s := seen{record, e.sequence, e.kind, e.at, e.device, e.revision}
				stored[s] = true
				byRecord[record] = append(byRecord[record], s)
			}
		}
	}
	tell := func(events []store.RecordedEvent) []seen {
		var list []seen
		for _, e := range events {
			record, _ := recordOf(e)
			s := seen{record: record, sequence: e.Sequence, kind: e.Type, at: e.At.UnixMilli(), revision: e.Revision}
			if e.Device != nil {
				s.device = e.Device.ID
			}
			list = append(list, s)
		}
		return list
	}
	for name, events := range map[string][]store.RecordedEvent{"read from page to page": i.run.followed,
		"read in the end": i.run.feed} {
		list := tell(events)
		known, ids := map[seen]bool{}, map[string]bool{}
		for n, s := range list {
			if !stored[s] || known[s] || ids[events[n].ID] {
				i.add("feed", "%s: the feed has %+v, %s, twice, or the event is not stored", name, s, events[n].ID)
			}
			known[s], ids[events[n].ID] = true, true
			if n > 0 && !events[n-1].Before(&events[n]) {
				i.add("feed", "%s: %+v comes after %+v", name, s, list[n-1])
			}
			if n > 0 && list[n-1].revision == s.revision && list[n-1].record[0] == 'l' && s.record[0] == 'o' {
				i.add("feed", "%s: %+v, of an order, comes after a license's of the same revision", name, s)
			}
		}
		if len(known) != len(stored) {
			i.add("feed", "%s: it has %d of %d events", name, len(known), len(stored))
		}
	}
	if !slices.Equal(tell(i.run.followed), tell(i.run.feed)) {
		i.add("feed", "read from page to page it has another order")
	}
	for id, states := range t.licenses {
		if states[len(states)-1].gone { // only the feed has its events
			delete(byRecord, licenseRecord(id))
		}
	}
	for record, want := range byRecord {
		if got := tell(i.run.histories[record]); !slices.Equal(got, want) {
			i.add("feed", "the history of %q is %+v, want %+v", record, got, want)
		}
	}
}
