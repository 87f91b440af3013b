package licensing_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// shelf keeps a license as a store does: it loads one device's entry, or all of them if commands need them, and takes
// back only what is marked as changed.
type shelf struct {
	license  licensing.License
	metadata licensing.Metadata
	devices  map[string]licensing.Device
}

func (s *shelf) load(c licensing.Command) licensing.Record {
	l := s.license
	r := licensing.Record{License: &l}
	if licensing.NeedsMetadata(c) {
		r.Metadata = new(s.metadata)
	}
	if device := c.DeviceID(); device != "" {
		d, bound := s.devices[device]
		d.ID = device
		r.Devices = licensing.Devices{device: {Device: d, Bound: bound}}
	}
	if l.NeedsDevices() {
		r.Leases = licensing.KnownLeases{All: true, Every: true}
		if r.Devices == nil {
			r.Devices = make(licensing.Devices)
		}
		for id, d := range s.devices {
			r.Devices[id] = &licensing.DeviceEntry{Device: d, Bound: true}
		}
	}
	return r
}

func (s *shelf) keep(t *rapid.T, r licensing.Record) {
	if r.Changed {
		s.license = *r.License
	}
	if r.Metadata != nil && r.Metadata.Changed {
		if !r.Changed {
			t.Fatal("the metadata is changed, the record is not")
		}
		s.metadata = *r.Metadata
		s.metadata.Changed = false
	}
	for id, entry := range r.Devices {
		switch {
		case !entry.Changed:
		case !r.Changed && !r.Touched:
			t.Fatalf("the entry of %s is changed, the record is not", id)
		case entry.Bound:
			s.devices[id] = entry.Device
		default:
			delete(s.devices, id)
		}
	}
}

// happening is a command, the step of the clock before the command, which may be negative, and whether the owner
// listens to activations.
type happening struct {
	after     time.Duration
	command   func(now time.Time) licensing.Command
	listening bool
	trusted   bool // the node may act by its clock
}

var deviceIDs = []string{"laptop", "phone", "tablet", "tv"}

func drawClockStep(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{
		0, time.Millisecond, time.Second, time.Minute - time.Millisecond, time.Minute, time.Hour, day, 9 * day,
		-time.Millisecond, -time.Minute, -10 * time.Minute, -day,
	}).Draw(t, "clock")
}

// anyKind and ofDevices are kinds of commands. The words are weights. Revoking is rare: little happens after it.
const (
	anyKind = "activate activate activate activate activate activate activate activate " +
		"remove remove remove remove set_max set_max set_max roll roll roll extend extend renew renew " +
		"deactivate deactivate deactivate validate validate validate note note note redact expire expire " +
		"notice notice notice suspend reinstate reinstate reinstate dispute dispute dispute revoke"
	ofDevices = "change change change change change change activate remove"
)

// drawHappening makes one command of some kinds; one in ten names a license that does not exist, or is not the
// caller's. No command renews to the past: TestRenewRefusals tests that refusal.
func drawHappening(t *rapid.T, kinds string) happening {
	after := drawClockStep(t)
	listening := rapid.IntRange(0, 3).Draw(t, "listening") > 0
	trusted := rapid.IntRange(0, 5).Draw(t, "trusted") > 0
	fixed := func(c licensing.Command) happening {
		return happening{after, func(time.Time) licensing.Command { return c }, listening, trusted}
	}
	target := ours
	if rapid.IntRange(0, 9).Draw(t, "target") == 9 {
		target = rapid.SampledFrom([]licensing.Target{
			{Key: otherKey},
			{Key: shopKey, Caller: licensing.Owner{AccountID: "acc_other", Mode: licensing.Live}},
			{Key: shopKey, Pin: licensing.Owner{Mode: licensing.Test}},
		}).Draw(t, "wrong target")
	}
	switch kind := rapid.SampledFrom(strings.Fields(kinds)).Draw(t, "kind"); kind {
	case "change": // perhaps: the device names components
		return fixed(licensing.Activate{Target: ours, Device: rapid.SampledFrom(deviceIDs).Draw(t, "device"),
			Components: rapid.SampledFrom(compositions[2:]).Draw(t, "components")})
	case "activate":
		c := licensing.Activate{
			Target:    target,
			ProductID: rapid.SampledFrom([]string{"", "", app, app, "other"}).Draw(t, "product"),
			Device:    rapid.SampledFrom(deviceIDs).Draw(t, "device"),
			Named:     rapid.Bool().Draw(t, "named"),
			SeenStep:  rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "step"),

			Components: rapid.SampledFrom(compositions).Draw(t, "components"),
			Receipt:    drawReceipt(t),
		}
		if c.Named {
			c.Name = rapid.SampledFrom([]string{"", "Box", "Tin"}).Draw(t, "name")
		}
		return fixed(c)
	case "remove":
		return fixed(licensing.RemoveDevice{Target: target, Device: rapid.SampledFrom(deviceIDs).Draw(t, "device")})
	case "set_max":
		return fixed(licensing.UpdateLicense{Target: target, MaxDevices: new(rapid.IntRange(0, 5).Draw(t, "max"))})
	case "roll":
		return fixed(licensing.ApplyTerms{
			Target:    target,
			ProductID: rapid.SampledFrom([]string{app, app, app, "other"}).Draw(t, "product"),
			StartedAt: rapid.SampledFrom([]time.Time{noon, noon.Add(day), noon.Add(-1)}).Draw(t, "began"),
			Applies:   licensing.RolloutTerms(rapid.IntRange(1, 1023).Draw(t, "terms")),
			Terms: licensing.Terms{
				InactiveAfter: drawInactive(t), Match: drawMatch(t), Receipts: drawReceiptTerms(t),
				MaxDevices: rapid.IntRange(0, 5).Draw(t, "max"),
				Grace:      licensing.Period{Days: rapid.IntRange(0, 3).Draw(t, "grace")},
				Version:    licensing.TermsVersion(rapid.IntRange(0, 3).Draw(t, "version")),
				SelfService: licensing.SelfService{
					Allowed:          rapid.Bool().Draw(t, "self service"),
					RemovalsPerMonth: rapid.IntRange(0, 3).Draw(t, "per month"),
				},
			},
		})
	case "deactivate":
		return fixed(licensing.DeactivateDevice{Target: target, Device: rapid.SampledFrom(deviceIDs).Draw(t, "device")})
	case "validate":
		return fixed(licensing.ValidateLicense{
			Target:    target,
			ProductID: rapid.SampledFrom([]string{"", app, "other"}).Draw(t, "product"),
			Device:    rapid.SampledFrom(deviceIDs).Draw(t, "device"),
			SeenStep:  rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(t, "step"),
			Receipt:   drawReceipt(t),
		})
	case "note":
		patch := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "ü"}),
			rapid.SampledFrom([]string{`"x"`, `"y"`, `null`}), 0, 3).Draw(t, "notes")
		var members []string
		for _, name := range slices.Sorted(maps.Keys(patch)) {
			members = append(members, strconv.Quote(name)+":"+patch[name])
		}
		c := licensing.UpdateLicense{Target: target, Metadata: "{" + strings.Join(members, ",") + "}"}
		if rapid.Bool().Draw(t, "with max") {
			c.MaxDevices = new(rapid.IntRange(0, 5).Draw(t, "max"))
		}
		if rapid.Bool().Draw(t, "with buyer") {
			c.BuyerEmail = new(drawBuyer(t))
		}
		if rapid.Bool().Draw(t, "with reference") {
			c.CustomerReference = new(rapid.SampledFrom([]string{"", "C-1", "c-1"}).Draw(t, "reference"))
		}
		return fixed(c)
	case "extend":
		return fixed(licensing.RenewLicense{Target: target,
			Extend: licensing.Period{Days: rapid.IntRange(1, 20).Draw(t, "days")}})
	case "renew":
		end := time.Duration(rapid.IntRange(1, 20).Draw(t, "days")) * day
		return happening{after, func(now time.Time) licensing.Command {
			return licensing.RenewLicense{Target: target, ExpiresAt: now.Add(end)}
		}, listening, trusted}
	case "expire":
		return happening{after, func(now time.Time) licensing.Command {
			return licensing.ExpireLicense{Before: now}
		}, listening, trusted}
	case "notice":
		days := rapid.SampledFrom([]licensing.ExpiringDays{
			"", "\x02", "\x07\x02\x01", "\x1e\x07\x01",
		}).Draw(t, "notices")
		return happening{after, func(now time.Time) licensing.Command {
			return licensing.GiveNotice{Now: now, Days: days}
		}, listening, trusted}
	case "redact":
		return fixed(licensing.RedactLicense{Target: target, Of: licensing.Customer{BuyerEmail: drawBuyer(t),
			Reference: rapid.SampledFrom([]string{"", "", "C-1", "C-2"}).Draw(t, "reference")}})
	case "suspend":
		return fixed(licensing.SuspendLicense{Target: target, Reason: drawReason(t)})
	case "dispute":
		begins := rapid.Bool().Draw(t, "begins")
		return fixed(licensing.SuspendForDispute{Target: target, Begin: begins, End: !begins})
	case "reinstate":
		return fixed(licensing.ReinstateLicense{Target: target})
	default:
		return fixed(licensing.RevokeLicense{Target: target, Reason: drawReason(t)})
	}
}

func drawInactive(t *rapid.T) licensing.Period {
	return licensing.Period{Days: rapid.SampledFrom([]int{0, 1, 1, 7}).Draw(t, "inactive after")}
}

func drawReceiptTerms(t *rapid.T) licensing.ReceiptTerms {
	return rapid.SampledFrom([]licensing.ReceiptTerms{{}, {}, {Always: true}, {ValiditySeconds: 60},
		{Always: true, ValiditySeconds: 90 * 24 * 3600, RevocationAgeSeconds: 3600}}).Draw(t, "receipt terms")
}

func drawReceipt(t *rapid.T) licensing.ReceiptAsk {
	return rapid.SampledFrom([]licensing.ReceiptAsk{0, 0, licensing.AskReceipt(true, false, 0),
		licensing.AskReceipt(true, true, 0), licensing.AskReceipt(true, false, time.Hour)}).Draw(t, "receipt")
}

func drawMatch(t *rapid.T) licensing.DeviceMatch {
	return rapid.SampledFrom([]licensing.DeviceMatch{{}, {1, 1}, {1, 4}, {2, 2}}).Draw(t, "match")
}

func drawBuyer(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "ada@example.com", "ADA@example.com", "bob@example.com"}).Draw(t, "buyer")
}

func drawReason(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "chargeback", "fraud"}).Draw(t, "reason")
}

// means reports whether a command names the license of these tests.
func means(c licensing.Command) bool {
	switch c := c.(type) {
	case licensing.Activate:
		return c.Target == ours
	case licensing.RemoveDevice:
		return c.Target == ours
	case licensing.DeactivateDevice:
		return c.Target == ours
	case licensing.ValidateLicense:
		return c.Target == ours
	case licensing.UpdateLicense:
		return c.Target == ours
	case licensing.ApplyTerms:
		return c.Target == ours
	case licensing.RenewLicense:
		return c.Target == ours
	case licensing.RedactLicense:
		return c.Target == ours
	case licensing.ExpireLicense, licensing.GiveNotice:
		return true // they name no key
	case licensing.SuspendLicense:
		return c.Target == ours
	case licensing.ReinstateLicense:
		return c.Target == ours
	case licensing.SuspendForDispute:
		return c.Target == ours
	default:
		return c.(licensing.RevokeLicense).Target == ours
	}
}

// answered turns a result of Apply into an answer.
func answered(result licensing.Result, err error, now time.Time) answer {
	if err != nil {
		return answer{Reason: reason(err)}
	}
	l := result.License
	return answer{
		Status: l.Status(now), Current: l.CurrentDevices, Max: l.MaxDevices, Over: l.AllowedOver,
		ActivatedAt: l.ActivatedAt, ExpiresAt: l.ExpiresAt, Device: result.Device, Removed: result.Removed,
		Invalid: result.Invalid, Why: l.StateReason, Removals: l.Removals.Count,
		Changes: l.Changes.Count,
	}
}

// TestLicenseAgainstNaiveModel runs random commands on a license, see checkAgainstNaive.
func TestLicenseAgainstNaiveModel(t *testing.T) {
	depth.NotRaced(t)
	rapid.Check(t, func(t *rapid.T) { checkAgainstNaive(t, anyKind) })
}

// TestDevicesAgainstNaiveModel does the same with little besides activations, so that devices often change, and many of
// them could be meant.
func TestDevicesAgainstNaiveModel(t *testing.T) {
	depth.NotRaced(t)
	rapid.Check(t, func(t *rapid.T) { checkAgainstNaive(t, ofDevices) })
}

// checkAgainstNaive runs random commands of some kinds three ways: folded on one record, one by one with a store in
// between, and on the naive license.
func checkAgainstNaive(t *rapid.T, kinds string) {
	now := noon
	terms := licensing.Terms{
		MaxDevices:     rapid.IntRange(0, 3).Draw(t, "max"),
		Validity:       licensing.Period{Days: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "validity")},
		FromActivation: rapid.Bool().Draw(t, "from activation"),
		SelfService: licensing.SelfService{
			Allowed:          rapid.IntRange(0, 3).Draw(t, "self service") > 0,
			RemovalsPerMonth: rapid.IntRange(0, 3).Draw(t, "per month"),
		},
		InactiveAfter: drawInactive(t), Match: drawMatch(t), Receipts: drawReceiptTerms(t),
		Grace: licensing.Period{Days: rapid.IntRange(0, 3).Draw(t, "grace")},
	}
	if kinds == ofDevices {
		terms = licensing.Terms{MaxDevices: 3, Match: licensing.DeviceMatch{AtLeast: 1, ChangesPerMonth: 9}}
	}
	order := rapid.SampledFrom([]string{"", "ord_1"}).Draw(t, "order")
	folded := licensing.NewLicense(terms.Issue(shopKey, shop, app, order, now), &licensing.Metadata{}, "key_1")
	folded.Devices, folded.Changed = licensed(nil).Devices, false
	folded.Leases = licensing.KnownLeases{All: true, Every: true}
	singly := slices.Clone(folded.Events) // by the commands one by one
	loaded := folded.Clone()
	stored := &shelf{license: *folded.License, devices: map[string]licensing.Device{}}
	model := &naive{
		max: terms.MaxDevices, devices: map[string]licensing.Device{}, notes: map[string]string{},
		selfService: terms.SelfService.Allowed, perMonth: terms.SelfService.RemovalsPerMonth, sold: order != "",
		inactiveAfter: terms.InactiveAfter.Days, atLeast: terms.Match.AtLeast,
		perMonthMoved: terms.Match.ChangesPerMonth, grace: terms.Grace.Days,
	}
	if !terms.FromActivation && terms.Validity.Days > 0 {
		model.expires = now.Add(time.Duration(terms.Validity.Days) * day)
	} else {
		model.days = terms.Validity.Days
	}

	anyChange, anyTouch, notices := false, false, 0
	var limitReported time.Time
	var receipts papers // by the commands one by one
	few := true         // devices have lost receipts each day, so that each had an entry of its own
	happens := rapid.Custom(func(t *rapid.T) happening { return drawHappening(t, kinds) })
	for _, h := range rapid.SliceOfN(happens, 1, 60).Draw(t, "happenings") {
		now = now.Add(h.after)
		c := h.command(now)
		want := answer{Reason: "license_not_found"}
		if model.leaseClock = folded.License.LeaseClock; h.trusted && now.After(model.leaseClock) {
			model.leaseClock = now
		}
		was := model.look()
		if means(c) {
			want = model.do(c, now)
		}

		before := folded.Clone()
		folded.Listening, folded.ActsByTime = h.listening, h.trusted
		result, err := licensing.Apply(&folded, c, now)
		if diff := cmp.Diff(want, answered(result, err, now)); diff != "" {
			t.Fatalf("%T at %v, folded (-want +got):\n%s", c, now, diff)
		}
		single := stored.load(c)
		single.Listening, single.ActsByTime = h.listening, h.trusted
		result, err = run(t, &single, c, now)
		if diff := cmp.Diff(want, answered(result, err, now)); diff != "" {
			t.Fatalf("%T at %v, on its own (-want +got):\n%s", c, now, diff)
		}
		stored.keep(t, single)
		receipts.change(was, model.look(), single.Revocations, now)
		receipts.issue(c.DeviceID(), result)
		few = few && single.License.Revocations.Count < 16
		if problem := receipts.problem(few); problem != "" {
			t.Fatalf("%T at %v: %s", c, now, problem)
		}
		singly = append(singly, single.Events...)
		explained := explains(before, folded, h.listening, c)
		if model.notices > notices {
			notices, explained = model.notices, append(explained, licensing.EventLicenseExpiring)
		}
		if diff := cmp.Diff(explained, typesOf(single.Events)); diff != "" {
			t.Fatalf("%T at %v recorded events that its change does not explain (-change +events):\n%s", c, now,
				diff)
		}
		if full := want.Reason == licensing.ReasonDeviceLimitReached; full && h.listening &&
			now.Sub(limitReported) >= time.Minute {
			limitReported = now
		}
		if !folded.License.LimitReportedAt.Equal(limitReported) {
			t.Fatalf("%T at %v: the full license was reported at %v, want %v", c, now,
				folded.License.LimitReportedAt, limitReported)
		}
		anyChange = anyChange || single.Changed
		anyTouch = anyTouch || single.Touched

		checkInvariants(t, before, folded)
		checkDevicesKept(t, before, folded, c, model.leaseClock)
		checkReceipts(t, before, folded, result, now)
	}

	if diff := cmp.Diff(singly, folded.Events); diff != "" {
		t.Fatalf("the events, one by one and folded (-single +folded):\n%s", diff)
	}
	for i, e := range singly {
		if e.Sequence != uint64(i+1) {
			t.Fatalf("event %d has the number %d", i+1, e.Sequence)
		}
	}
	receipts.list = nil
	receipts.store(folded.Revocations)
	if problem := receipts.problem(false); problem != "" {
		t.Fatalf("folded: %s", problem)
	}
	if diff := cmp.Diff(stored.license, *folded.License); diff != "" {
		t.Fatalf("the license, one by one and folded (-single +folded):\n%s", diff)
	}
	notes := map[string]string{}
	if stored.metadata.Object != "" {
		if err := json.Unmarshal([]byte(stored.metadata.Object), &notes); err != nil {
			t.Fatal(err)
		}
	}
	folded.Metadata.Changed = false
	if diff := cmp.Diff(model.notes, notes); diff != "" || *folded.Metadata != stored.metadata {
		t.Fatalf("the metadata, one by one %+v and folded %+v (-want +got):\n%s", stored.metadata,
			*folded.Metadata, diff)
	}
	if stored.metadata.Customer != model.customer {
		t.Fatalf("the customer is %+v, want %+v", stored.metadata.Customer, model.customer)
	}
	if folded.Changed != anyChange {
		t.Fatalf("the fold has Changed %v, the commands one by one %v", folded.Changed, anyChange)
	}
	if folded.Touched != anyTouch {
		t.Fatalf("the fold has Touched %v, the commands one by one %v", folded.Touched, anyTouch)
	}
	for id, entry := range folded.Devices {
		d, bound := stored.devices[id]
		d.ID = id
		if diff := cmp.Diff(d, entry.Device); diff != "" || bound != entry.Bound {
			t.Fatalf("%s, one by one bound: %v, folded: %v (-single +folded):\n%s", id, bound, entry.Bound, diff)
		}
		if !entry.Changed && !cmp.Equal(loaded.Devices[id], entry) {
			t.Fatalf("the fold changed the entry of %s without marking the entry as changed", id)
		}
	}
	if diff := cmp.Diff(model.devices, stored.devices); diff != "" {
		t.Fatalf("the devices (-want +got):\n%s", diff)
	}
}

// explains lists the events that a difference must have, by the facts alone. Redaction changes only facts that are not
// in events.
func explains(before, after licensing.Record, listening bool, c licensing.Command) []licensing.EventType {
	var types []licensing.EventType
	add := func(differs bool, event licensing.EventType) {
		if differs && (listening || !event.OfActivation()) {
			types = append(types, event)
		}
	}
	l, was := after.License, before.License
	first := !l.ActivatedAt.Equal(was.ActivatedAt)
	_, redacted := c.(licensing.RedactLicense)
	taken := was.StateReason == licensing.DisputeReason && l.StateReason != licensing.DisputeReason // by the shop
	add((was.SuspendedAt.IsZero() || taken) && !l.SuspendedAt.IsZero() && l.RevokedAt.IsZero(),
		licensing.EventLicenseSuspended)
	add(!was.SuspendedAt.IsZero() && l.SuspendedAt.IsZero(), licensing.EventLicenseReinstated)
	add(!l.RevokedAt.Equal(was.RevokedAt), licensing.EventLicenseRevoked)
	undone := !was.EndRecorded.IsZero() && l.EndRecorded.IsZero()
	add(!first && (!l.ExpiresAt.Equal(was.ExpiresAt) || l.Validity != was.Validity || undone),
		licensing.EventLicenseRenewed)
	add(l.MaxDevices != was.MaxDevices || l.Receipts != was.Receipts || l.InactiveAfter != was.InactiveAfter ||
		l.Match != was.Match || l.SelfService != was.SelfService || l.Terms != was.Terms || l.Grace != was.Grace ||
		!redacted && (after.Metadata.Object != before.Metadata.Object ||
			after.Metadata.Customer != before.Metadata.Customer), licensing.EventLicenseUpdated)
	add(!undone && !l.EndRecorded.Equal(was.EndRecorded), licensing.EventLicenseExpired)
	add(!l.LimitReportedAt.Equal(was.LimitReportedAt), licensing.EventLicenseLimitReached)
	changed := l.Changes != was.Changes && l.Match == was.Match
	add(changed, licensing.EventDeviceChanged)
	for id, entry := range after.Devices {
		add(!changed && !entry.Bound && before.Devices[id].Bound, licensing.EventDeviceRemoved)
	}
	add(first, licensing.EventLicenseActivated)
	for id, entry := range after.Devices {
		add(!changed && entry.Bound && !before.Devices[id].Bound, licensing.EventDeviceBound)
	}
	return types
}

func typesOf(events []licensing.Event) []licensing.EventType {
	var types []licensing.EventType
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

// checkInvariants checks the invariants that no command may break.
func checkInvariants(t *rapid.T, before, after licensing.Record) {
	l, was := after.License, before.License
	bound := 0
	for id, entry := range after.Devices {
		old := before.Devices[id]
		if entry.Device.ID != id {
			t.Fatalf("the entry of %s has device %q", id, entry.Device.ID)
		}
		if !entry.Bound {
			if entry.Device != (licensing.Device{ID: id}) {
				t.Fatalf("%s is not bound, yet has facts: %+v", id, entry.Device)
			}
			continue
		}
		bound++
		if entry.Device.LastSeenAt.Before(entry.Device.BoundAt) {
			t.Fatalf("%s was seen before it was bound: %+v", id, entry.Device)
		}
		if old.Bound &&
			(!entry.Device.BoundAt.Equal(old.Device.BoundAt) || entry.Device.LastSeenAt.Before(old.Device.LastSeenAt)) {
			t.Fatalf("%s was bound at %v, seen at %v; now %v, %v", id,
				old.Device.BoundAt, old.Device.LastSeenAt, entry.Device.BoundAt, entry.Device.LastSeenAt)
		}
	}
	if l.CurrentDevices != bound {
		t.Fatalf("%d devices are bound, counted are %d", bound, l.CurrentDevices)
	}
	if over := l.MaxDevices != 0 && bound > l.MaxDevices; over != (l.AllowedOver != 0) || over &&
		bound > l.AllowedOver {
		t.Fatalf("%d devices of %d are bound, %d allowed", bound, l.MaxDevices, l.AllowedOver)
	}
	if l.CurrentDevices > was.CurrentDevices && l.MaxDevices != 0 && l.CurrentDevices > l.MaxDevices {
		t.Fatalf("a device was bound above the limit: %+v", l)
	}
	if !was.ActivatedAt.IsZero() && !l.ActivatedAt.Equal(was.ActivatedAt) {
		t.Fatalf("activated_at moved from %v to %v", was.ActivatedAt, l.ActivatedAt)
	}
	if l.StateReason != "" && l.SuspendedAt.IsZero() && l.RevokedAt.IsZero() {
		t.Fatalf("the license is neither suspended nor revoked, but has the reason %q", l.StateReason)
	}
	if l.Removals.Count > l.SelfService.RemovalsPerMonth || l.Removals.Month < was.Removals.Month {
		t.Fatalf("removals are %+v after %+v, of %d a month", l.Removals, was.Removals, l.SelfService.RemovalsPerMonth)
	}
	if !was.RevokedAt.IsZero() && !l.RevokedAt.Equal(was.RevokedAt) {
		t.Fatalf("revoked_at moved from %v to %v", was.RevokedAt, l.RevokedAt)
	}
	if bound > 0 && (l.ActivatedAt.IsZero() || !l.Validity.IsZero()) {
		t.Fatalf("a device is bound, yet it was never activated: %+v", l)
	}
}

// checkDevicesKept checks that no command takes a device slot from a device that was seen within the terms, and that a
// device that has changed keeps its slot and the time when it was bound.
func checkDevicesKept(t *rapid.T, before, after licensing.Record, c licensing.Command, leaseClock time.Time) {
	l, was := after.License, before.License
	if l.LeaseClock.Before(was.LeaseClock) || l.LeaseClock.After(leaseClock) {
		t.Fatalf("the lease clock went from %v to %v", was.LeaseClock, l.LeaseClock)
	}
	for id, entry := range after.Devices {
		old := before.Devices[id]
		if entry.Bound && entry.Device.LastSeenAt.Before(l.SeenFrom) {
			t.Fatalf("%s was seen at %v, and none before %v", id, entry.Device.LastSeenAt, l.SeenFrom)
		}
		if entry.Device.Components != "" && l.Match.AtLeast == 0 {
			t.Fatalf("%s has components, and the terms compare none", id)
		}
		if entry.Bound || !old.Bound || id == c.DeviceID() {
			continue
		}
		now := after.Devices[c.DeviceID()].Device
		if l.Changes != was.Changes {
			if same := now.BoundAt.Equal(old.Device.BoundAt); !same || l.CurrentDevices != was.CurrentDevices ||
				l.Changes.Count > l.Match.ChangesPerMonth {
				t.Fatalf("%s became %+v, of %d devices %d, as change %+v", id, now, was.CurrentDevices,
					l.CurrentDevices, l.Changes)
			}
			continue
		}
		if l.LeaseClock.Sub(old.Device.LastSeenAt) < time.Duration(l.InactiveAfter.Days)*day+time.Hour ||
			was.CurrentDevices != was.MaxDevices {
			t.Fatalf("%s, seen at %v, lost its place at %v; %d of %d devices were bound", id, old.Device.LastSeenAt,
				l.LeaseClock, was.CurrentDevices, was.MaxDevices)
		}
	}
}

// checkReceipts checks the times of a receipt, that the license knows until when receipts may be valid, and that a
// license that looks otherwise in receipts has another revision.
func checkReceipts(t *rapid.T, before, after licensing.Record, result licensing.Result, now time.Time) {
	l, was := after.License, before.License
	if l.Revision < was.Revision || l.ReceiptsUntil < was.ReceiptsUntil || (l.Revision == 0) != (l.ReceiptsUntil == 0) {
		t.Fatalf("receipts: revision %d after %d, until %d after %d", l.Revision, was.Revision, l.ReceiptsUntil,
			was.ReceiptsUntil)
	}
	view := func(r licensing.Record) string {
		l := r.License
		return fmt.Sprint(l.MaxDevices, l.ExpiresAt, l.GraceEndsAt(), l.Status(now), l.IsTrial(), l.Terms,
			l.OwnEntitlements, l.Receipts.RevocationAgeSeconds)
	}
	removed := false
	for id, entry := range before.Devices {
		removed = removed || entry.Bound && !after.Devices[id].Bound
	}
	if (removed || view(before) != view(after)) && was.Revision != 0 && l.Revision == was.Revision {
		t.Fatalf("revision %d of %s is of %s too", l.Revision, view(before), view(after))
	}
	issued, end := result.Receipt.IssuedAt, result.Receipt.ExpiresAt
	if issued.IsZero() {
		if l.ReceiptsUntil != was.ReceiptsUntil {
			t.Fatalf("no receipt, and receipts are valid until %d after %d", l.ReceiptsUntil, was.ReceiptsUntil)
		}
		return
	}
	if issued.After(now) || now.Sub(issued) >= time.Minute || end.Before(issued) ||
		end.Sub(issued) > l.Receipts.Validity() || !l.ExpiresAt.IsZero() && end.After(l.Grace.AddTo(l.ExpiresAt)) ||
		end.Add(licensing.ReceiptLeeway).After(l.ReceiptsUntil.Begins()) || result.License.Revision != l.Revision {
		t.Fatalf("at %v, a receipt of revision %d from %v to %v; the license: %+v", now, result.License.Revision,
			issued, end, l)
	}
	if last := was.ReceiptsUntil.Begins(); !last.Before(now.Add(l.Receipts.Validity()+licensing.ReceiptLeeway)) &&
		l.ReceiptsUntil != was.ReceiptsUntil {
		t.Fatalf("at %v, the license is written for a receipt: %d after %d", now, l.ReceiptsUntil, was.ReceiptsUntil)
	}
}

// TestOrderAgainstNaiveModel: the naive order is one word and a count.
func TestOrderAgainstNaiveModel(t *testing.T) {
	depth.NotRaced(t)
	// The next word of each command and word. A command without an entry for a word is refused.
	moves := map[string]map[string]string{
		"pay": {"unpaid": "paid", "expired": "paid", "canceled": "owed", "owed": "owed", "paid": "paid",
			"wished": "wished", "returned": "returned", "refunded": "refunded"},
		"expire": {"unpaid": "unpaid", "expired": "expired", "canceled": "canceled", "owed": "owed", "paid": "paid",
			"wished": "wished", "returned": "returned", "refunded": "refunded"},
		"cancel":  {"unpaid": "canceled", "canceled": "canceled", "owed": "owed"},
		"request": {"paid": "wished", "wished": "wished", "returned": "returned", "refunded": "refunded"},
		"try": {"unpaid": "unpaid", "expired": "expired", "canceled": "canceled", "owed": "owed", "paid": "paid",
			"wished": "wished", "returned": "returned", "refunded": "refunded"},
		"withdraw": {"unpaid": "unpaid", "expired": "expired", "canceled": "canceled", "owed": "owed", "paid": "paid",
			"wished": "paid", "returned": "returned", "refunded": "refunded"},
		"refund": {"owed": "returned", "paid": "refunded", "wished": "refunded", "returned": "returned",
			"refunded": "refunded"},
	}
	published := map[string]licensing.OrderStatus{"owed": "canceled", "wished": "paid", "returned": "refunded"}

	rapid.Check(t, func(t *rapid.T) {
		now := noon
		folded := licensing.NewOrder(ordered(nil).Order, "key_1")
		stored := *folded.Order
		singly := slices.Clone(folded.Events)
		word, recorded, late := "unpaid", false, false
		var issued []*licensing.License
		for i, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"pay", "pay", "expire", "cancel", "request",
			"try", "withdraw", "refund"}), 1, 20).Draw(t, "kinds") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, -time.Minute,
				-2 * time.Hour}).Draw(t, "clock"))
			if word == "unpaid" || word == "expired" {
				word = "unpaid"
				if recorded || now.Sub(stored.ExpiresAt) >= 0 {
					word = "expired"
				}
			}
			next, allowed := moves[kind][word]
			late = late || kind == "pay" && word == "expired"
			recorded = recorded || kind == "expire" && word == "expired"
			pay := payment
			pay.Key = licensing.LicenseID{byte(i)}.Key("LIC")
			c := map[string]licensing.Command{
				"pay": pay, "expire": licensing.ExpireOrder{Before: now}, "cancel": licensing.CancelOrder{},
				"request": licensing.RequestRefund{},
				"try":     licensing.TryRefund{}, "withdraw": licensing.WithdrawRefund{Tries: stored.RefundTries},
				"refund": licensing.RefundOrder{},
			}[kind]

			// One by one.
			o := stored
			single := licensing.Record{Order: &o}
			result, err := run(t, &single, c, now)
			singly = append(singly, single.Events...)
			if diff := cmp.Diff(explainsOrder(&stored, single.Order), typesOf(single.Events)); diff != "" {
				t.Fatalf("%s recorded events that its change does not explain (-change +events):\n%s", kind, diff)
			}
			if single.Changed {
				stored = *single.Order
			}
			issued = append(issued, single.Issued...)
			// Folded.
			foldedResult, foldedErr := licensing.Apply(&folded, c, now)
			if diff := diffOf(result, foldedResult); diff != "" || reason(err) != reason(foldedErr) {
				t.Fatalf("%s answers %v, folded %v (-single +folded):\n%s", kind, err, foldedErr, diff)
			}

			if !allowed {
				if reason(err) != "invalid_order_state" {
					t.Fatalf("%s when %s answers %v", kind, word, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s when %s answers %v", kind, word, err)
			}
			word = next
			want := licensing.OrderStatus(word)
			if status, ok := published[word]; ok {
				want = status
			}
			if got := new(result.Order()).Status(now); got != want {
				t.Fatalf("%s makes it %s, want %s", kind, got, want)
			}
			owing := word == "owed" || word == "wished"
			due := owing && slices.Contains([]string{"pay", "request", "try", "withdraw"}, kind)
			if result.RefundDue != due || stored.RefundDue != owing {
				t.Fatalf("%s when %s answers refund due %v, stored %v", kind, word, result.RefundDue, stored.RefundDue)
			}
			if stored.Late != late {
				t.Fatalf("%s when %s: late is %v, want %v", kind, word, stored.Late, late)
			}
			// Paid means exactly as many licenses as the order is for, here one, and so does refunded after that.
			sold := 0
			if slices.Contains([]string{"paid", "wished", "refunded"}, word) {
				sold = 1
			}
			if len(issued) != sold || !stored.LicenseKey.IsZero() != (sold == 1) {
				t.Fatalf("%s: %d licenses were issued, license key %q", word, len(issued), stored.LicenseKey)
			}
			if sold == 1 && (issued[0].Key != stored.LicenseKey || issued[0].OrderNo != stored.OrderNo) {
				t.Fatalf("the order names %s, issued was %+v", stored.LicenseKey, issued[0])
			}
		}
		if diff := cmp.Diff(singly, folded.Events); diff != "" {
			t.Fatalf("the events, one by one and folded (-single +folded):\n%s", diff)
		}
		if diff := cmp.Diff(stored, *folded.Order); diff != "" {
			t.Fatalf("the order, one by one and folded (-single +folded):\n%s", diff)
		}
		if len(issued) == 1 {
			if diff := cmp.Diff(issued, folded.Issued); diff != "" {
				t.Fatalf("the license, one by one and folded (-single +folded):\n%s", diff)
			}
		} else if folded.Issued != nil {
			t.Fatalf("the fold issued %+v", folded.Issued)
		}
	})
}

// explainsOrder lists the events that a difference of an order must have.
func explainsOrder(before, after *licensing.Order) []licensing.EventType {
	var types []licensing.EventType
	add := func(was, is time.Time, events ...licensing.EventType) {
		if was.IsZero() && !is.IsZero() {
			types = append(types, events...)
		}
	}
	if !after.LicenseKey.IsZero() {
		add(before.PaidAt, after.PaidAt, licensing.EventOrderPaid, licensing.EventLicenseIssued)
	}
	add(before.CanceledAt, after.CanceledAt, licensing.EventOrderCanceled)
	add(before.RefundedAt, after.RefundedAt, licensing.EventOrderRefunded)
	add(before.ExpiredAt, after.ExpiredAt, licensing.EventOrderExpired)
	return types
}
