package licensing

import "time"

// RolloutTerms is a set of terms of a product, which a rollout applies to licenses. The other terms can't be applied
// later: the prefix is part of the key, and the end of a license may have been renewed.
type RolloutTerms uint16

// The terms of a rollout. Their values are stored.
const (
	RolloutEntitlements RolloutTerms = 1 << iota
	RolloutMaxDevices
	RolloutSelfService
	RolloutRemovals // by end users in a month
	RolloutInactive
	RolloutMatch
	RolloutGrace
	RolloutReceipt
	RolloutReceiptValidity
	RolloutRevocationAge
	RolloutLease
	RolloutLongestLease
)

// Valid reports whether the set has terms, and no others.
func (t RolloutTerms) Valid() bool { return t != 0 && t < RolloutLongestLease<<1 }

// Rollout applies terms of a product to the product's licenses that were issued before the rollout began. The zero
// Rollout has never begun.
type Rollout struct {
	Terms     Terms        // of the product when the rollout began
	Applies   RolloutTerms // which of them
	DryRun    bool         // only counts
	By        Actor        // the author, for the events
	StartedAt time.Time
	EndedAt   time.Time // zero: it is under way
	Canceled  bool
	// OverBudget: the account's budget has refused changes of licenses. The rollout tries again at NextAt.
	OverBudget bool

	Cursor string    // the position in the owner's list of licenses up to which the rollout has come
	NextAt time.Time // when any node may continue the rollout
	Counts RolloutCounts
}

// RolloutCounts says what a rollout has done.
type RolloutCounts struct {
	Licenses   int // of the product that were issued before the rollout began
	Updated    int // that the rollout has changed, or would change
	LimitsKept int // that keep their device limit; see ApplyTerms
	Failed     int // that could not be changed
}

func (c RolloutCounts) plus(other RolloutCounts) RolloutCounts {
	c.Licenses += other.Licenses
	c.Updated += other.Updated
	c.LimitsKept += other.LimitsKept
	c.Failed += other.Failed
	return c
}

// RolloutStatus is the state of a rollout.
type RolloutStatus string

// The states of rollouts.
const (
	RolloutRunning  RolloutStatus = "running"
	RolloutPaused   RolloutStatus = "paused" // see Rollout.OverBudget
	RolloutDone     RolloutStatus = "done"
	RolloutCanceled RolloutStatus = "canceled"
)

// Status returns the state of a rollout that has begun.
func (o *Rollout) Status() RolloutStatus {
	switch {
	case o.Canceled:
		return RolloutCanceled
	case !o.EndedAt.IsZero():
		return RolloutDone
	case o.OverBudget:
		return RolloutPaused
	}
	return RolloutRunning
}

// UnderWay reports whether a rollout has begun and has not ended.
func (o *Rollout) UnderWay() bool { return !o.StartedAt.IsZero() && o.EndedAt.IsZero() }

// InRollout reports whether the product's rollout changes a license.
func (p *Product) InRollout(l *License) bool { return p.ApplyTerms(l).concerns(l) }

// ApplyTerms returns the command that applies the terms of the product's rollout to a license.
func (p *Product) ApplyTerms(l *License) ApplyTerms {
	o := &p.Rollout
	return ApplyTerms{Target: Target{Key: l.Key, Caller: p.Owner, By: o.By}, ProductID: p.ID, StartedAt: o.StartedAt,
		Terms: o.Terms, Applies: o.Applies}
}

// BeginRollout begins a rollout of the present terms of a product. It changes nothing if the same rollout is under way:
// the command may be repeated. A node that must not act by its clock begins no rollout: it could leave out earlier
// licenses, or change later licenses.
type BeginRollout struct {
	Applies RolloutTerms
	DryRun  bool
	By      Actor
	Lapse   time.Duration // see AdvanceRollout
}

// DeviceID is empty: no device is touched.
func (BeginRollout) DeviceID() string { return "" }

func (c BeginRollout) growth(r *Record, _ time.Time) Growth {
	if r.Product == nil {
		return NoGrowth
	}
	return OrdinaryGrowth
}

func (c BeginRollout) apply(r *Record, now time.Time) (Result, error) {
	p := r.Product
	if p == nil {
		return Result{}, ErrProductNotFound
	}
	begun := Rollout{Terms: p.Terms, Applies: c.Applies, DryRun: c.DryRun, By: c.By, StartedAt: now,
		NextAt: now.Add(c.Lapse)}
	if o := &p.Rollout; o.UnderWay() {
		if o.Terms != begun.Terms || o.Applies != begun.Applies || o.DryRun != begun.DryRun {
			return Result{}, ErrRolloutInProgress
		}
		return Result{Product: p}, nil
	}
	if !r.ActsByTime {
		return Result{}, ErrClockInDoubt
	}
	return r.setRollout(begun), nil
}

// AdvanceRollout stores how far a rollout has come. It fails if another node, or a cancellation, was first.
type AdvanceRollout struct {
	StartedAt time.Time // of the rollout
	Cursor    string    // from which the page began
	Next      string    // where the next page begins
	Done      bool      // there is no next page
	// OverBudget: see Rollout. The rest of the page is to be done again.
	OverBudget bool
	Counts     RolloutCounts // of the page
	Lapse      time.Duration // after which another node may continue
}

// DeviceID is empty: no device is touched.
func (AdvanceRollout) DeviceID() string { return "" }

func (AdvanceRollout) growth(*Record, time.Time) Growth { return NoGrowth }

func (c AdvanceRollout) apply(r *Record, now time.Time) (Result, error) {
	if r.Product == nil {
		return Result{}, ErrProductNotFound
	}
	next := r.Product.Rollout
	if !next.UnderWay() || !next.StartedAt.Equal(c.StartedAt) || next.Cursor != c.Cursor {
		return Result{}, ErrRolloutNotFound
	}
	next.Cursor, next.NextAt, next.OverBudget = c.Next, now.Add(c.Lapse), c.OverBudget
	next.Counts = next.Counts.plus(c.Counts)
	if c.Done {
		next.EndedAt = now
	}
	return r.setRollout(next), nil
}

// CancelRollout ends a rollout that is under way. Licenses that have the terms keep them.
type CancelRollout struct{}

// DeviceID is empty: no device is touched.
func (CancelRollout) DeviceID() string { return "" }

func (CancelRollout) growth(*Record, time.Time) Growth { return NoGrowth }

func (c CancelRollout) apply(r *Record, now time.Time) (Result, error) {
	switch {
	case r.Product == nil:
		return Result{}, ErrProductNotFound
	case r.Product.Rollout.StartedAt.IsZero():
		return Result{}, ErrRolloutNotFound
	}
	next := r.Product.Rollout
	if !next.UnderWay() {
		return Result{Product: r.Product}, nil
	}
	next.EndedAt, next.Canceled = now, true
	return r.setRollout(next), nil
}

func (r *Record) setRollout(o Rollout) Result {
	next := *r.Product
	next.Rollout = o
	r.Product, r.Changed = &next, true
	return Result{Product: &next}
}

// ApplyTerms gives a license some terms of its product, whatever state the license is in. It removes no device: if more
// devices are bound than the terms allow, the license keeps its device limit. It is a no-op if the license is not in
// the rollout any more, for example since a subscription has given it another product: see Product.InRollout.
type ApplyTerms struct {
	Target
	ProductID string    // of the rollout
	StartedAt time.Time // of the rollout
	Terms     Terms
	Applies   RolloutTerms
}

// DeviceID is empty: no device is touched.
func (ApplyTerms) DeviceID() string { return "" }

func (c ApplyTerms) growth(r *Record, _ time.Time) Growth {
	l, err := c.license(r)
	switch {
	case err != nil, c.changed(l) == *l:
		return NoGrowth
	case c.Applies&RolloutMaxDevices != 0 && l.letsBindMore(c.Terms.MaxDevices):
		return UrgentGrowth
	}
	return BoundedGrowth
}

// concerns reports whether the rollout changes a license. A trial keeps its terms. An upgraded trial, and a license
// that got another product, got their terms then, so a rollout that began earlier does not change them.
func (c ApplyTerms) concerns(l *License) bool {
	return l.ProductID == c.ProductID && !l.CreatedAt.After(c.StartedAt) && !l.IsTrial() &&
		!l.UpgradedAt.After(c.StartedAt)
}

// KeepsLimit reports whether a license keeps its device limit, since more devices are bound than the terms allow, or
// since its leases do not allow such a limit.
func (c ApplyTerms) KeepsLimit(l *License) bool {
	most := c.Terms.MaxDevices
	return c.Applies&RolloutMaxDevices != 0 && most != l.MaxDevices &&
		(most != 0 && l.CurrentDevices > most || l.Lease.DevicesProblem(most) != "")
}

// changed returns a license with the terms, if it is in the rollout.
func (c ApplyTerms) changed(before *License) License {
	l := *before
	if !c.concerns(before) {
		return l
	}
	if c.Applies&RolloutEntitlements != 0 {
		l.Terms = c.Terms.Version
	}
	if c.Applies&RolloutMaxDevices != 0 && c.Terms.MaxDevices != l.MaxDevices && !c.KeepsLimit(before) {
		l.MaxDevices, l.AllowedOver = c.Terms.MaxDevices, 0
	}
	if c.Applies&RolloutSelfService != 0 {
		l.SelfService.Allowed = c.Terms.SelfService.Allowed
	}
	if c.Applies&RolloutRemovals != 0 {
		l.SelfService.RemovalsPerMonth = c.Terms.SelfService.RemovalsPerMonth
		l.Removals.Count = min(l.Removals.Count, l.SelfService.RemovalsPerMonth) // 0 for any number counts nothing
	}
	if c.Applies&RolloutReceipt != 0 {
		l.Receipts.Always = c.Terms.Receipts.Always
	}
	if c.Applies&RolloutReceiptValidity != 0 {
		l.Receipts.ValiditySeconds = c.Terms.Receipts.ValiditySeconds
	}
	if c.Applies&RolloutRevocationAge != 0 {
		l.Receipts.RevocationAgeSeconds = c.Terms.Receipts.RevocationAgeSeconds
	}
	if c.Applies&RolloutInactive != 0 && !l.Lease.Leased() && c.Terms.InactiveAfter != l.InactiveAfter {
		l.InactiveAfter = c.Terms.InactiveAfter
	}
	if c.Applies&RolloutMatch != 0 && !l.Lease.Leased() && c.Terms.Match != l.Match {
		if l.Match = c.Terms.Match; l.Match.AtLeast == 0 {
			l.Changes = Removals{}
		}
	}
	if c.Applies&RolloutGrace != 0 {
		l.Grace = c.Terms.Grace
	}
	l.Lease = c.leaseTerms(l.Lease)
	return l
}

// leaseTerms returns the lengths of leases of a license with the terms. A license without leases gets none, and a
// license with leases keeps them. No lease changes: the lengths are for later leases and renewals.
func (c ApplyTerms) leaseTerms(before LeaseTerms) LeaseTerms {
	t := before
	if !t.Leased() || !c.Terms.Lease.Leased() {
		return t
	}
	if c.Applies&RolloutLease != 0 {
		t.Length = c.Terms.Lease.Length
	}
	if c.Applies&RolloutLongestLease != 0 {
		t.Longest = c.Terms.Lease.Longest
	}
	if t != before {
		t.Longest = max(t.Longest, t.Length)
	}
	return t
}

func (c ApplyTerms) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	if next := c.changed(l); next != *l {
		if *l = next; l.Match.AtLeast == 0 {
			r.dropComponents()
		}
		r.recordLicense(l, EventLicenseUpdated, c.By, now, nil)
	}
	return Result{License: *l}, nil
}
