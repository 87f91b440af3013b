package licensing

import (
	"strconv"
	"time"
)

// Size is an amount of stored data.
type Size struct {
	Bytes, Keys int64
	Trials      int64 // how many of the keys remember a trial
}

// Plus returns the sum of two sizes.
func (s Size) Plus(other Size) Size {
	return Size{s.Bytes + other.Bytes, s.Keys + other.Keys, s.Trials + other.Trials}
}

// Minus returns the difference of two sizes.
func (s Size) Minus(other Size) Size {
	return Size{s.Bytes - other.Bytes, s.Keys - other.Keys, s.Trials - other.Trials}
}

// Budget is how much an account may store in each mode. A zero field sets no limit.
//
// Ordinary growth ends at four fifths of a budget. The last fifth is a reserve for growth that no budget refuses,
// such as the license of a paid order; that growth may also exceed the budget.
type Budget struct{ Bytes, Keys int64 }

// reserve is the inverse of the part of a budget that ordinary growth must leave.
const reserve = 5

// Ordinary returns the size at which ordinary growth ends. A zero field sets no limit.
func (b Budget) Ordinary() Size {
	return Size{Bytes: b.Bytes - b.Bytes/reserve, Keys: b.Keys - b.Keys/reserve}
}

// Trials are at most an eighth of a budget, if each takes as much as this, which is more than most take.
const (
	trialShare = 8
	trialBytes = 2 << 10
	trialKeys  = 8
)

// Trials returns how many trials a budget has room for: anyone may start them. ok is false if there is no limit.
func (b Budget) Trials() (most int64, ok bool) {
	switch bytes, keys := b.Bytes/(trialShare*trialBytes), b.Keys/(trialShare*trialKeys); {
	case b == Budget{}:
		return 0, false
	case b.Keys == 0:
		return bytes, true
	case b.Bytes == 0:
		return keys, true
	default:
		return min(bytes, keys), true
	}
}

// RefuseTrial returns ErrTrialBudgetReached if a size has so many trials that the budget refuses another one; else nil.
// The refusal has no sizes: strangers see it.
func (b Budget) RefuseTrial(s Size) error {
	if most, limited := b.Trials(); limited && s.Trials >= most || b.Reached(s) {
		return ErrTrialBudgetReached
	}
	return nil
}

// Reached reports whether a size is so large that the budget refuses ordinary growth.
func (b Budget) Reached(s Size) bool { return atLeast(s, b.Ordinary()) }

// Exceeded reports whether a size is at or above the whole budget, including the reserve.
func (b Budget) Exceeded(s Size) bool { return atLeast(s, Size{Bytes: b.Bytes, Keys: b.Keys}) }

// Warns reports whether a size is at least four fifths of the size at which ordinary growth ends.
func (b Budget) Warns(s Size) bool { return atLeast(s, b.warning()) }

func (b Budget) warning() Size {
	most := b.Ordinary()
	return Size{Bytes: most.Bytes - most.Bytes/5, Keys: most.Keys - most.Keys/5}
}

// atLeast reports whether a size has reached one of the fields of a limit that are not zero.
func atLeast(s, limit Size) bool {
	return limit.Bytes > 0 && s.Bytes >= limit.Bytes || limit.Keys > 0 && s.Keys >= limit.Keys
}

// budgetReached returns the refusal of growth.
func budgetReached(u Size, b Budget) *Error {
	most := b.Ordinary()
	return &Error{
		Reason: ReasonAccountBudgetReached,
		Message: "the account has reached its budget of stored data, so nothing can be added: delete what you no " +
			"longer need, leave out or shorten a long reason, or ask the operator of the service for a larger budget",
		Details: map[string]int{
			"stored_bytes": int(u.Bytes), "stored_keys": int(u.Keys),
			"limit_bytes": int(most.Bytes), "limit_keys": int(most.Keys),
		},
	}
}

// RefuseMore returns ErrAccountBudgetReached, with both sizes, if ordinary growth would end before so much more than a
// size is stored; else nil.
func (b Budget) RefuseMore(s, more Size) error {
	if !b.Reached(s.Plus(more)) {
		return nil
	}
	return budgetReached(s, b)
}

// Refuse returns ErrAccountBudgetReached, with both sizes, if a size is so large that the budget refuses ordinary
// growth; else nil.
func (b Budget) Refuse(s Size) error {
	if !b.Reached(s) {
		return nil
	}
	return budgetReached(s, b)
}

// Usage is how much an owner stores. Events are not part of it: they have a budget of their own.
//
// Nodes add the growth of their changes every few seconds, and a recount corrects the sum now and then. A recount
// counts the keys at one revision of the store while nodes add further growth. So each growth has the revision of
// its changes, and Usage keeps apart the growth that the recount under way does not see.
type Usage struct {
	Owner Owner
	Size  // may be off, even below zero, until the next recount
	// CountedAt is the revision of the last recount that has ended. Size already contains growth up to it.
	CountedAt int64
	// RecountAt is the revision of the latest recount that has begun. Since is the growth after this revision.
	RecountAt int64
	Since     Size
	// WarnedAt is when the latest EventBudgetWarning was recorded; zero: none was. Warned reports whether Size was at
	// or above the budget's warning after the latest change.
	WarnedAt time.Time
	Warned   bool
	// Sequence is the number of events recorded for the record.
	Sequence uint64
}

// UsageRef names the usage of an owner.
func UsageRef(owner Owner) Ref { return Ref{Kind: KindUsage, Owner: owner} }

// SizeChange is the change of an owner's stored data by changes that have landed at one revision of the store.
type SizeChange struct {
	Revision int64
	Size
}

// AddUsage adds changes of size to an owner's usage. Changes up to the last recount are in the sum already.
type AddUsage struct {
	Owner   Owner
	Changes []SizeChange
	Budget  Budget
}

// DeviceID is empty: no device is touched.
func (AddUsage) DeviceID() string { return "" }

func (AddUsage) growth(*Record, time.Time) Growth { return NoGrowth }

func (c AddUsage) apply(r *Record, now time.Time) (Result, error) {
	u := r.changeUsage(c.Owner)
	if r.RecountAt != u.RecountAt {
		u.RecountAt, u.Since = r.RecountAt, Size{}
	}
	for _, change := range c.Changes {
		if change.Revision > u.CountedAt {
			u.Size = u.Size.Plus(change.Size)
		}
		if change.Revision > u.RecountAt {
			u.Since = u.Since.Plus(change.Size)
		}
	}
	r.warn(c.Budget, now)
	return Result{rare: &rareResult{Stored: u.Size}}, nil
}

// SetUsage stores the result of a recount of an owner's keys at a revision of the store. SetUsage is a no-op if a later
// recount has begun.
type SetUsage struct {
	Owner     Owner
	Counted   Size
	RecountAt int64
	Budget    Budget
}

// DeviceID is empty: no device is touched.
func (SetUsage) DeviceID() string { return "" }

func (SetUsage) growth(*Record, time.Time) Growth { return NoGrowth }

func (c SetUsage) apply(r *Record, now time.Time) (Result, error) {
	var before Size
	if r.Usage != nil {
		before = r.Usage.Size
	}
	if r.RecountAt != c.RecountAt || r.Usage != nil && r.Usage.CountedAt >= c.RecountAt {
		return Result{rare: &rareResult{Stored: before}}, nil
	}
	u := r.changeUsage(c.Owner)
	since := Size{} // if no growth was added after the recount began
	if u.RecountAt == c.RecountAt {
		since = u.Since
	}
	u.Size, u.CountedAt = c.Counted.Plus(since), c.RecountAt
	r.warn(c.Budget, now)
	return Result{rare: &rareResult{Stored: u.Size, Corrected: u.Size.Minus(before)}}, nil
}

// changeUsage returns a copy of the record's usage, which replaces it.
func (r *Record) changeUsage(owner Owner) *Usage {
	next := Usage{Owner: owner}
	if r.Usage != nil {
		next = *r.Usage
	}
	r.Usage, r.Changed = &next, true
	return r.Usage
}

// warnAgain is the least time between two warnings of one owner. Without it, a size that goes up and down at the
// limit, or nodes with different budgets, would record a warning every few seconds.
const warnAgain = time.Hour

// warn records EventBudgetWarning when the size of the record's usage crosses the budget's warning.
func (r *Record) warn(b Budget, now time.Time) {
	u := r.Usage
	crossed := b.Warns(u.Size) && !u.Warned
	u.Warned = b.Warns(u.Size)
	if !crossed || now.Sub(u.WarnedAt).Abs() < warnAgain { // a clock that was days ahead may have set WarnedAt
		return
	}
	u.WarnedAt = now
	u.Sequence++
	r.record(Event{
		Type: EventBudgetWarning, At: now, Sequence: u.Sequence, Actor: System, Members: budgetMembers(u, b),
	})
}

// budgetMembers returns the data of an EventBudgetWarning.
func budgetMembers(u *Usage, b Budget) []EventMember {
	most := b.Ordinary()
	member := func(name string, value int64) EventMember {
		return EventMember{Of: "account", Name: name, JSON: strconv.FormatInt(value, 10)}
	}
	return []EventMember{
		member("stored_bytes", max(u.Bytes, 0)), member("stored_keys", max(u.Keys, 0)),
		member("limit_bytes", most.Bytes), member("limit_keys", most.Keys),
		member("budget_bytes", b.Bytes), member("budget_keys", b.Keys),
	}
}

// Growth says how much a change adds to the store, and who may refuse the change for that. A limit of the store refuses
// all growth above a certain value; [Growth.Budgeted] says what a budget refuses.
type Growth byte

// The values of Growth, in ascending order. All but the first add data; any change also records its event.
const (
	// NoGrowth: the change removes data, replaces data by data of about the same size, or does not happen. Such
	// are removals, suspensions, revocations, cancellations, deletions and new secrets, and also activations of
	// bound devices. Their reasons have at most MaxSmallReason bytes. No limit of size refuses these changes.
	NoGrowth Growth = iota
	// RequiredGrowth: payments, refunds and renewals. A customer has paid for the change, or gets money back. No
	// limit of size refuses these changes either, nor the receipt keys of an owner, which are made once.
	RequiredGrowth
	// UrgentGrowth: small growth of existing records: new keys of licenses, reasons of more than MaxSmallReason bytes,
	// and a larger finite MaxDevices, which lets devices be bound as BoundedGrowth. The budget of an account refuses
	// it. A store that is almost full does not: a key may have leaked, and the store limits the changes of each owner.
	UrgentGrowth
	// BoundedGrowth: existing records bound the growth. Such are devices within a finite MaxDevices, and
	// records of the end of a license or an order. The budget of an account does not refuse this growth; a store
	// that is almost full does.
	BoundedGrowth
	// Replacement: the change replaces metadata, a product or a webhook endpoint, and the new data is not larger. The
	// budget of an account does not refuse it. A store that is almost full does, since etcd keeps the old data until
	// the next compaction.
	Replacement
	// OrdinaryGrowth: all other growth, such as grants, orders, products, webhook endpoints, API keys, metadata,
	// and devices of licenses with unlimited devices.
	OrdinaryGrowth
)

// Budgeted reports whether the budget of an account refuses a growth.
func (g Growth) Budgeted() bool { return g == UrgentGrowth || g == OrdinaryGrowth }

// MaxSmallReason is the most bytes of a reason for which no budget refuses a change.
const MaxSmallReason = 255

// withReason returns the growth of a change that also stores a reason.
func (g Growth) withReason(reason string) Growth {
	if len(reason) > MaxSmallReason {
		return UrgentGrowth
	}
	return g
}

// GrowthOf returns the growth of a command that is about to run on a record. It is NoGrowth if the command will fail
// because of the record: then the caller learns that error, and nothing about another owner.
func GrowthOf(c Command, r *Record, now time.Time) Growth { return c.growth(r, now) }

// growthFrom returns the growth of replacing data of a size by data of another size.
func growthFrom(before, after int) Growth {
	if after <= before {
		return Replacement
	}
	return OrdinaryGrowth
}
