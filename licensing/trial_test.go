package licensing

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var (
	trialOwner = Owner{AccountID: "acct_1", Mode: Live}
	trialNow   = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	trialKey   = LicenseID{1}.Key("TRY")
)

// startTrial starts a trial of 14 days on a record without one.
func startTrial(t *testing.T) (r Record, license Record) {
	t.Helper()
	product := Product{ID: "pro", Owner: trialOwner, Terms: Terms{MaxDevices: 5, FromActivation: true, Version: 7},
		Trial: TrialTerms{Validity: Period{Days: 14}, MaxDevices: 2, Entitled: true, Version: 9}}
	result, err := Apply(&r, StartTrial{Name: TrialName{1}, ProductID: "pro", Owner: trialOwner,
		Terms: product.TrialTerms(), Key: trialKey, Device: "pc", Mark: TrialDevice{2}, By: EndUser}, trialNow)
	if err != nil || !result.Created || !result.Bound || result.Device.ID != "pc" {
		t.Fatalf("%+v, %v", result, err)
	}
	l := *r.Issued[0]
	return r, Record{License: &l, Metadata: &Metadata{}, Devices: r.IssuedDevices.clone()}
}

func kinds(events []Event) (types []EventType) {
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

func TestTrialStartsOnce(t *testing.T) {
	r, issued := startTrial(t)
	l := issued.License
	if !l.IsTrial() || l.MaxDevices != 2 || l.Terms != 9 || l.CurrentDevices != 1 || !r.IssuedDevices["pc"].Bound ||
		!l.ExpiresAt.Equal(trialNow.AddDate(0, 0, 14)) || !l.ActivatedAt.Equal(trialNow) {
		t.Errorf("issued %+v", l)
	}
	if *r.Trial != (Trial{License: trialKey, Device: TrialDevice{2}}) ||
		!slices.Equal(kinds(r.Events), []EventType{EventLicenseIssued}) {
		t.Errorf("stored %+v with %v", r.Trial, kinds(r.Events))
	}
	again := Record{Trial: r.Trial}
	result, err := Apply(&again, StartTrial{Key: LicenseID{2}.Key("TRY"), Device: "other"}, trialNow)
	if err != nil || again.Changed || again.Issued != nil || result.Created || result.Trial() != *r.Trial {
		t.Errorf("again: %+v, %+v, %v", result, again, err)
	}
	if GrowthOf(StartTrial{}, &again, trialNow) != NoGrowth {
		t.Error("a trial that exists grows")
	}
}

func TestTrialRecordsEventsOfItsDevice(t *testing.T) {
	r := Record{Listening: true}
	if _, err := Apply(&r, StartTrial{Key: trialKey, Name: TrialName{1}, Terms: Terms{MaxDevices: 1}, Device: "pc"},
		trialNow); err != nil {
		t.Fatal(err)
	}
	want := []EventType{EventLicenseIssued, EventLicenseActivated, EventDeviceBound}
	if !slices.Equal(kinds(r.Events), want) {
		t.Errorf("recorded %v, want %v", kinds(r.Events), want)
	}
}

func TestUpgradeOfTrial(t *testing.T) {
	order := Order{OrderNo: "ord_1", Owner: trialOwner, ProductID: "pro",
		OrderPayment: OrderPayment{PaidAt: trialNow}, LicenseKey: trialKey}
	terms := Terms{MaxDevices: 1, Validity: Period{Years: 1}, FromActivation: true, Version: 3,
		SelfService: SelfService{Allowed: true}}
	later := trialNow.Add(time.Hour)
	for name, test := range map[string]struct {
		change  func(*License, *Order)
		refused bool
		upgrade bool
	}{
		"a trial":           {func(*License, *Order) {}, false, true},
		"an expired trial":  {func(l *License, _ *Order) { l.EndRecorded = l.ExpiresAt }, false, true},
		"a suspended trial": {func(l *License, _ *Order) { l.SuspendedAt = trialNow }, true, false},
		"a revoked trial":   {func(l *License, _ *Order) { l.RevokedAt = trialNow }, true, false},
		"upgraded by another": {func(l *License, _ *Order) { l.UpgradedAt, l.OrderNo = trialNow, "ord_2" },
			true, false},
		"upgraded by the same": {func(l *License, _ *Order) { l.UpgradedAt, l.OrderNo = trialNow, "ord_1" },
			false, false},
		"another product":  {func(l *License, _ *Order) { l.ProductID = "lite" }, true, false},
		"another owner":    {func(l *License, _ *Order) { l.Owner.Mode = Test }, true, false},
		"no trial":         {func(l *License, _ *Order) { l.Trial = TrialName{} }, true, false},
		"a canceled order": {func(_ *License, o *Order) { o.LicenseKey = LicenseKey{} }, false, false},
		"an order with another license": {func(_ *License, o *Order) { o.LicenseKey = LicenseID{9}.Key("TRY") },
			false, false},
	} {
		_, r := startTrial(t)
		o := order
		test.change(r.License, &o)
		before := *r.License
		_, err := Apply(&r, UpgradeTrial{Key: trialKey, Order: o, Terms: terms, By: Provider}, later)
		if errors.Is(err, ErrTrialGone) != test.refused || r.Changed != test.upgrade {
			t.Errorf("%s: %v, changed %v", name, err, r.Changed)
		}
		if !test.upgrade {
			if *r.License != before {
				t.Errorf("%s: changed", name)
			}
			continue
		}
		want := before
		want.OrderNo, want.UpgradedAt, want.MaxDevices, want.SelfService = "ord_1", later, 1, terms.SelfService
		want.ExpiresAt, want.EndRecorded, want.Terms = later.AddDate(1, 0, 0), time.Time{}, 3
		want.Notice = Notice{End: want.ExpiresAt, Day: MaxExpiringDay}
		want.Sequence++
		if *r.License != want || r.License.IsTrial() {
			t.Errorf("%s: %+v, want %+v", name, r.License, want)
		}
	}
	gone := Record{}
	if _, err := Apply(&gone, UpgradeTrial{Key: trialKey, Order: order}, later); !errors.Is(err, ErrTrialGone) {
		t.Errorf("a trial that is gone: %v", err)
	}
}

// TestForgetRevokedTrial: a trial that is revoked is due an hour later. A license that was revoked after its upgrade
// stays, and so does a trial that is suspended.
func TestForgetRevokedTrial(t *testing.T) {
	_, r := startTrial(t)
	target := Target{Key: trialKey, Caller: r.License.Owner}
	upgraded, suspended := r.Clone(), r.Clone()
	upgraded.License.UpgradedAt, upgraded.License.OrderNo = trialNow, "ord_1"
	for _, c := range []struct {
		record  *Record
		command Command
		deleted bool
	}{
		{&r, RevokeLicense{Target: target}, true},
		{&upgraded, RevokeLicense{Target: target}, false},
		{&suspended, SuspendLicense{Target: target}, false},
	} {
		if _, err := Apply(c.record, c.command, trialNow); err != nil {
			t.Fatal(err)
		}
		later := trialNow.Add(RevokedTrialMemory)
		if due := c.record.License.Due(); (due == Due{DueTrial, later}) != c.deleted {
			t.Errorf("%T: due %v", c.command, due)
		}
		if early, err := Apply(c.record, ForgetTrial{Before: later.Add(-1)}, later); err != nil || early.Removed {
			t.Errorf("%T: early: %+v, %v", c.command, early, err)
		}
		result, err := Apply(c.record, ForgetTrial{Before: later}, later)
		if err != nil || result.Removed != c.deleted || c.record.Removed != c.deleted {
			t.Errorf("%T: forgotten: %+v, %v", c.command, result, err)
		}
	}
}

// TestKeepSuspendedTrial: a suspended trial stays until it is reinstated, or an hour after it is revoked.
func TestKeepSuspendedTrial(t *testing.T) {
	_, r := startTrial(t)
	target := Target{Key: trialKey, Caller: r.License.Owner}
	ended := r.License.ExpiresAt.Add(TrialMemory)
	for _, c := range []struct {
		command Command
		due     Due
	}{
		{SuspendLicense{Target: target}, Due{}},
		{ReinstateLicense{Target: target}, Due{DueTrial, ended}},
		{SuspendLicense{Target: target}, Due{}},
		{RevokeLicense{Target: target}, Due{DueTrial, ended.Add(RevokedTrialMemory)}},
	} {
		if _, err := Apply(&r, c.command, ended); err != nil {
			t.Fatal(err)
		}
		if due := r.License.trialDue(); due != c.due {
			t.Errorf("%T: due %v, want %v", c.command, due, c.due)
		}
		kept := r.Clone()
		result, err := Apply(&kept, ForgetTrial{Before: ended.Add(time.Minute)}, ended)
		if _, is := c.command.(ReinstateLicense); err != nil || result.Removed != is {
			t.Errorf("%T: forgotten: %+v, %v", c.command, result, err)
		}
	}
}

func TestForgetTrial(t *testing.T) {
	_, r := startTrial(t)
	due := r.License.ExpiresAt.Add(TrialMemory)
	if at := r.License.trialDue(); at != (Due{DueTrial, due}) {
		t.Errorf("due %v", at)
	}
	early, err := Apply(&r, ForgetTrial{Before: due.Add(-1)}, due)
	if err != nil || early.Removed || r.Changed {
		t.Errorf("early: %+v, %v", early, err)
	}
	upgraded := r.Clone()
	upgraded.License.UpgradedAt, upgraded.License.OrderNo = trialNow, "ord_1"
	result, err := Apply(&r, ForgetTrial{Before: due}, due)
	if err != nil || !result.Removed || !r.Removed || !r.Changed ||
		!slices.Equal(kinds(r.Events), []EventType{EventLicenseDeleted}) {
		t.Errorf("forgotten: %+v, %+v, %v", result, r, err)
	}
	result, err = Apply(&upgraded, ForgetTrial{Before: trialNow.Add(TrialMemory)}, due)
	if err != nil || !result.Removed || upgraded.Removed || !upgraded.License.Trial.IsZero() || !upgraded.Changed ||
		upgraded.License.Due().Kind == DueTrial || upgraded.License.TermsSince() != trialNow {
		t.Errorf("forgotten after the upgrade: %+v, %+v, %v", result, upgraded.License, err)
	}
	for _, drop := range []DropTrial{{License: trialKey, Drop: true}, {License: trialKey},
		{License: LicenseID{9}.Key("TRY"), Drop: true}} {
		trial := Record{Trial: &Trial{License: trialKey}}
		if _, err := Apply(&trial, drop, due); err != nil {
			t.Fatal(err)
		}
		if drops := drop.Drop && drop.License == trialKey; (trial.Trial == nil) != drops || trial.Changed != drops {
			t.Errorf("%+v leaves %+v", drop, trial)
		}
	}
}

// TestUpgradeTakesTheTermsOfDevices: an upgraded license gets the product's terms of devices, and keeps no components
// that the product does not compare. The order names the buyer.
func TestUpgradeTakesTheTermsOfDevices(t *testing.T) {
	order := Order{OrderNo: "ord_1", Owner: trialOwner, ProductID: "pro",
		OrderPayment: OrderPayment{PaidAt: trialNow}, LicenseKey: trialKey}
	for _, terms := range []Terms{{},
		{InactiveAfter: Period{Days: 30}, Match: DeviceMatch{AtLeast: 2, ChangesPerMonth: 4}}} {
		_, r := startTrial(t)
		const components = "\x04disk12345678"
		r.License.InactiveAfter, r.License.Match = Period{Days: 7}, DeviceMatch{AtLeast: 1, ChangesPerMonth: 3}
		r.License.Changes = Removals{Month: 2, Count: 1}
		r.Devices["pc"].Device.Components = components
		r.Metadata.Customer = Customer{BuyerEmail: "ada@example.com", Reference: "C-1"}
		if _, err := Apply(&r, UpgradeTrial{Key: trialKey, Order: order, Terms: terms}, trialNow); err != nil {
			t.Fatal(err)
		}
		l, kept := r.License, r.Devices["pc"].Device.Components != ""
		if l.InactiveAfter != terms.InactiveAfter || l.Match != terms.Match || kept != (l.Match.AtLeast > 0) ||
			l.Match.AtLeast == 0 && l.Changes != (Removals{}) {
			t.Errorf("%+v, components kept: %v, want %+v", l, kept, terms)
		}
		if !r.Metadata.Changed || r.Metadata.Customer != (Customer{Reference: "C-1"}) {
			t.Errorf("the customer is %+v", r.Metadata)
		}
	}
	leased := Record{License: &License{Key: trialKey, Owner: trialOwner, ProductID: "pro", Trial: TrialName{1},
		Lease: LeaseTerms{Length: time.Hour, Longest: time.Hour}}, Metadata: &Metadata{}}
	if _, err := Apply(&leased, UpgradeTrial{Key: trialKey, Order: order, Terms: Terms{MaxDevices: 1,
		InactiveAfter: Period{Days: 30}}}, trialNow); err != nil || !leased.License.InactiveAfter.IsZero() {
		t.Errorf("%v: leases and inactive devices: %+v", err, leased.License)
	}
}

func TestTrialKeepsItsTerms(t *testing.T) {
	_, r := startTrial(t)
	for _, limit := range []int{0, 17} {
		_, err := Apply(&r, UpdateLicense{Target: Target{Key: trialKey}, MaxDevices: &limit}, trialNow)
		if !errors.Is(err, InvalidField("", "")) || r.Changed {
			t.Errorf("max_devices %d: %v", limit, err)
		}
	}
	p := Product{ID: "pro", Owner: trialOwner, Rollout: Rollout{StartedAt: trialNow.Add(time.Hour)}}
	if p.InRollout(r.License) {
		t.Error("a rollout changes a trial")
	}
	if r.License.UpgradedAt = trialNow.Add(2 * time.Hour); p.InRollout(r.License) {
		t.Error("a rollout changes a license that was upgraded after it began")
	}
	if r.License.UpgradedAt = trialNow; !p.InRollout(r.License) {
		t.Error("a rollout leaves out a license that was upgraded before it began")
	}
}

func TestBudgetOfTrials(t *testing.T) {
	for _, test := range []struct {
		budget Budget
		size   Size
		refuse bool
	}{
		{Budget{}, Size{Trials: 1 << 40}, false},
		{Budget{Keys: 640}, Size{Trials: 9}, false},
		{Budget{Keys: 640}, Size{Trials: 10}, true},
		{Budget{Bytes: 160 << 10}, Size{Trials: 10}, true},
		{Budget{Keys: 640, Bytes: 16 << 10}, Size{Trials: 1}, true},
		{Budget{Keys: 640}, Size{Keys: 512}, true},
	} {
		if err := test.budget.RefuseTrial(test.size); (err != nil) != test.refuse {
			t.Errorf("%+v with %+v: %v", test.budget, test.size, err)
		}
	}
}
