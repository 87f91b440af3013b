package licensing

import (
	"fmt"
	"net/netip"
	"time"
)

const (
	// MaxTrialDevices bounds the devices of a trial license: they all stand in its record, so the sweep deletes it
	// whole.
	MaxTrialDevices = 16
	// TrialMemory is how long after its end a trial is remembered, or after its upgrade. Then the same device or
	// address may start another one.
	TrialMemory = 90 * 24 * time.Hour
	// RevokedTrialMemory is how long after its revocation a trial is remembered: longer than any request under way. A
	// StartTrial with an unknown outcome that was sent again after the deletion would issue the license once more.
	RevokedTrialMemory = time.Hour
)

// TrialTerms say how a product may be tried. The zero TrialTerms offer no trial.
type TrialTerms struct {
	Validity   Period // from the issue
	MaxDevices int
	PerEmail   bool // once for an e-mail address; else once for a device
	// Entitled: Version names the entitlements of trials; else trials have those of the product.
	Entitled bool
	Version  TermsVersion
}

// Offered reports whether the product may be tried.
func (t TrialTerms) Offered() bool { return !t.Validity.IsZero() }

// TrialTerms returns the terms of a license for a trial of the product.
func (p *Product) TrialTerms() Terms {
	t := p.Terms
	t.MaxDevices, t.Validity, t.FromActivation = p.Trial.MaxDevices, p.Trial.Validity, false
	t.Grace = Period{} // a trial ends
	if p.Trial.Entitled {
		t.Version = p.Trial.Version
	}
	return t
}

// TrialName names a trial in its account and mode: an HMAC of the product, and of the device or the address; see
// keyring.LicenseKeys.TrialOf.
type TrialName [16]byte

// IsZero reports whether there is no trial.
func (n TrialName) IsZero() bool { return n == TrialName{} }

// TrialDevice stands for the device that has started a trial; see keyring.LicenseKeys.TrialDeviceOf.
type TrialDevice [16]byte

// Trial remembers that a device or an address has tried a product. It exists as long as its license names it.
type Trial struct {
	License LicenseKey // the first key of the license
	Device  TrialDevice
}

// TrialRef names a trial of an owner.
func TrialRef(owner Owner, name TrialName) Ref {
	return Ref{Kind: KindTrial, Owner: owner, ID: string(name[:])}
}

// IsTrial reports whether the license is for a trial.
func (l *License) IsTrial() bool { return !l.Trial.IsZero() && l.UpgradedAt.IsZero() }

// TermsSince returns when the license was issued, or when it was upgraded, or got another product. A validity of the
// product's entitlements counts from then, see [Entitled.At].
func (l *License) TermsSince() time.Time {
	if !l.UpgradedAt.IsZero() {
		return l.UpgradedAt
	}
	return l.CreatedAt
}

// TrialRef names the trial of the license, which has one.
func (l *License) TrialRef() Ref { return TrialRef(l.Owner, l.Trial) }

// trialDue returns when the trial of the license is to be forgotten: soon if it is revoked before an upgrade, so that
// the shop can make room for other trials, and not while it is suspended, so that the shop can keep a device from
// another trial.
func (l *License) trialDue() Due {
	var due Due
	switch {
	case l.Trial.IsZero():
		return due
	case !l.UpgradedAt.IsZero():
		return Due{Kind: DueTrial, At: l.UpgradedAt.Add(TrialMemory)}
	case !l.ExpiresAt.IsZero() && l.SuspendedAt.IsZero():
		due = Due{Kind: DueTrial, At: l.ExpiresAt.Add(TrialMemory)}
	}
	if !l.RevokedAt.IsZero() {
		due = due.or(Due{Kind: DueTrial, At: l.RevokedAt.Add(RevokedTrialMemory)})
	}
	return due
}

// checkTrialDevices refuses a limit of devices that a trial can't have.
func checkTrialDevices(l *License, limit int) error {
	if l.IsTrial() && (limit < 1 || limit > MaxTrialDevices) {
		return InvalidField("max_devices", fmt.Sprintf("must be 1 to %d for a trial", MaxTrialDevices))
	}
	return nil
}

// StartTrial issues a license for a trial and binds its first device, unless the trial exists. The result has Created,
// or the earlier Trial.
type StartTrial struct {
	Name       TrialName
	ProductID  string
	Owner      Owner
	Terms      Terms      // see Product.TrialTerms
	Key        LicenseKey // a new key with the terms' prefix; used only if a license is issued
	Device     string
	DeviceName string
	Named      bool // false: no name was given
	Components Components
	Lease      time.Duration // see Activate
	Mark       TrialDevice
	BuyerEmail string // of the license; empty: none
	Receipt    ReceiptAsk
	By         Actor
	Network    netip.Addr // of an end user
}

// DeviceID is empty: no device of the record is touched.
func (StartTrial) DeviceID() string { return "" }

func (StartTrial) growth(r *Record, _ time.Time) Growth {
	if r.Trial != nil {
		return NoGrowth
	}
	return OrdinaryGrowth
}

func (c StartTrial) apply(r *Record, now time.Time) (Result, error) {
	if r.Trial != nil {
		return Result{rare: &rareResult{Trial: *r.Trial}}, nil
	}
	license := c.Terms.Issue(c.Key, c.Owner, c.ProductID, "", now)
	license.Trial = c.Name
	devices := Devices{c.Device: {Device: Device{ID: c.Device}}}
	issued := Record{License: license, Devices: devices, Listening: r.Listening, ActsByTime: r.ActsByTime,
		Behind: r.Behind, Documents: r.Documents, Leases: KnownLeases{All: true, Every: true}}
	if c.BuyerEmail != "" {
		issued.Metadata = &Metadata{Customer: Customer{BuyerEmail: c.BuyerEmail}, Changed: true}
	}
	issued.recordLicense(license, EventLicenseIssued, c.By, now, nil)
	result, err := Activate{
		Target: Target{Key: c.Key, By: c.By}, Device: c.Device, Name: c.DeviceName, Named: c.Named,
		Receipt: c.Receipt, Lease: c.Lease, Components: c.Components,
	}.apply(&issued, now)
	if err != nil {
		return Result{}, err
	}
	r.Trial, r.Changed = &Trial{License: c.Key, Device: c.Mark}, true
	r.Issued, r.IssuedDevices, r.Metadata, r.Events = []*License{license}, devices, issued.Metadata, issued.Events
	result.Created, result.rare = true, &rareResult{Trial: *r.Trial}
	return result, nil
}

// UpgradeTrial makes the license of a trial the license of an order that names it, in the transaction that records the
// payment. It is a no-op if the order has no license, or another one, or this one already. It fails with ErrTrialGone
// if the license is not a trial that can be upgraded.
type UpgradeTrial struct {
	Key   LicenseKey
	Order Order // with the payment
	Terms Terms
	By    Actor
}

// DeviceID is empty: no device is touched.
func (UpgradeTrial) DeviceID() string { return "" }

func (UpgradeTrial) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c UpgradeTrial) apply(r *Record, now time.Time) (Result, error) {
	l, o := r.License, &c.Order
	switch {
	case o.LicenseKey != c.Key, l != nil && l.OrderNo == o.OrderNo:
		return Result{}, nil
	case !c.upgrades(l):
		return Result{}, ErrTrialGone
	}
	l.OrderNo, l.UpgradedAt = o.OrderNo, now
	l.Validity, l.ExpiresAt, l.EndRecorded = Period{}, time.Time{}, time.Time{}
	l.Grace, l.GraceRecorded, l.Notice = c.Terms.Grace, time.Time{}, Notice{}
	switch {
	case !o.PaidEnd.IsZero():
		l.ExpiresAt = o.PaidUntil(o.PaidEnd)
	case c.Terms.Validity.IsZero():
	case c.Terms.FromActivation && l.ActivatedAt.IsZero():
		l.Validity = c.Terms.Validity
	default: // a device has activated the license
		l.ExpiresAt = c.Terms.Validity.AddTo(now)
	}
	l.planEarly(now)
	r.takeTerms(c.Terms)
	if r.Metadata.BuyerEmail != "" { // the order names the buyer
		r.Metadata.BuyerEmail, r.Metadata.Changed = "", true
	}
	r.recordLicense(l, EventLicenseUpgraded, c.By, now, nil)
	return Result{License: *l}, nil
}

// upgrades reports whether the license is a trial that the order may upgrade. A suspended or revoked license stays as
// it is: the buyer gets a license that works.
func (c UpgradeTrial) upgrades(l *License) bool {
	return l != nil && l.Key == c.Key && l.IsTrial() && l.Owner == c.Order.Owner && l.ProductID == c.Order.ProductID &&
		l.SuspendedAt.IsZero() && l.RevokedAt.IsZero()
}

// takeTerms gives the record's license the terms of a product that it was not issued with, except its end and its
// grace. No device is removed. The devices stay leased, or bound without leases.
func (r *Record) takeTerms(t Terms) {
	l := r.License
	if l.Lease.Leased() && t.Lease.Leased() {
		l.Lease = t.Lease
	}
	l.limitDevices(t.MaxDevices)
	l.SelfService, l.Removals, l.Terms = t.SelfService, Removals{}, t.Version
	if !l.Lease.Leased() {
		l.InactiveAfter, l.Match = t.InactiveAfter, t.Match
	}
	if l.Match.AtLeast == 0 {
		l.Changes = Removals{}
		r.dropComponents()
	}
	l.Receipts = t.Receipts
}

// limitDevices sets the most devices of a license, or the most that its leases allow.
func (l *License) limitDevices(most int) {
	if l.Lease.DevicesProblem(most) != "" { // the devices of its product are no longer leased
		most = MaxLeasedDevices
	}
	l.MaxDevices, l.AllowedOver = most, 0
	if most != 0 && l.CurrentDevices > most {
		l.AllowedOver = l.CurrentDevices
	}
}

// CheckUpgrade returns an error unless the license is a trial of the product of an order.
func (l *License) CheckUpgrade(productID string) error {
	switch {
	case !l.IsTrial():
		return InvalidField("upgrade_of", "must be the key of a trial")
	case l.ProductID != productID:
		return InvalidField("upgrade_of", "must be the key of a trial of the order's product")
	}
	return nil
}

// ForgetTrial deletes the license of a trial that ended TrialMemory ago, or was revoked RevokedTrialMemory ago. A
// license that was upgraded TrialMemory ago stays, and no longer names its trial. The same transaction must delete the
// trial. ForgetTrial is a no-op if that is not due by Before, see ExpireLicense; else the result is Removed.
type ForgetTrial struct{ Before time.Time }

// DeviceID is empty: all devices go.
func (ForgetTrial) DeviceID() string { return "" }

func (ForgetTrial) growth(*Record, time.Time) Growth { return NoGrowth }

func (c ForgetTrial) apply(r *Record, now time.Time) (Result, error) {
	l := r.License
	if l == nil {
		return Result{}, ErrLicenseNotFound
	}
	due := l.trialDue()
	if due.Kind == 0 || due.At.After(c.Before) {
		return Result{License: *l}, nil
	}
	if l.IsTrial() {
		r.recordLicense(l, EventLicenseDeleted, System, now, nil)
		r.Removed = true
	}
	forgotten := *l
	l.Trial, r.Changed = TrialName{}, true
	return Result{License: forgotten, Removed: true}, nil
}

// DropTrial deletes a trial whose license ForgetTrial has changed.
type DropTrial struct {
	License LicenseKey
	Drop    bool // false: it was not due
}

// DeviceID is empty: no device is touched.
func (DropTrial) DeviceID() string { return "" }

func (DropTrial) growth(*Record, time.Time) Growth { return NoGrowth }

func (c DropTrial) apply(r *Record, _ time.Time) (Result, error) {
	if c.Drop && r.Trial != nil && r.Trial.License == c.License {
		r.Trial, r.Changed = nil, true
	}
	return Result{}, nil
}
