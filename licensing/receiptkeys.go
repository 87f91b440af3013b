package licensing

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"
)

// Limits of receipts and of the keys that sign them.
const (
	MinReceiptValidity     = time.Minute
	DefaultReceiptValidity = 7 * 24 * time.Hour
	MaxReceiptValidity     = 90 * 24 * time.Hour
	// ReceiptLeeway is how far the clock of a device may be behind the service's: by the service's clock, the device
	// accepts a receipt for as long after the receipt's end. It is the Leeway of package receipt.
	ReceiptLeeway = 5 * time.Minute

	// MaxReceiptKeys is how many receipt keys an owner may have at once.
	MaxReceiptKeys = 16
	// receiptKeyRest is how long a receipt key is in the set of keys before it signs: caches may keep the earlier set.
	receiptKeyRest = 10 * time.Minute
	// receiptKeyGuard is how much longer a node may sign with the receipt key before: it may not know the next one yet,
	// or its clock may be behind.
	receiptKeyGuard = time.Hour
)

// ReceiptKeys are the keys that sign the receipts of an owner: all of them are derived from one root secret. They never
// change in place.
type ReceiptKeys struct {
	Owner Owner
	Root  SealedRoot
	Keys  []ReceiptKey // in the order in which they were made; the first of all has number 1
}

// SealedRoot is the root secret of an owner, sealed under a master key.
type SealedRoot struct {
	MasterID string
	Sealed   [SealedRootSize]byte
}

// ReceiptKey is a key that signs receipts.
type ReceiptKey struct {
	Number    uint64
	CreatedAt time.Time
}

// ReceiptKeysRef names the receipt keys of an owner.
func ReceiptKeysRef(owner Owner) Ref { return Ref{Kind: KindReceiptKeys, Owner: owner} }

// signsFrom returns when a key begins to sign.
func (k *ReceiptKeys) signsFrom(i int) time.Time {
	if k.Keys[i].Number == 1 { // there was no set without it
		return k.Keys[i].CreatedAt
	}
	return k.Keys[i].CreatedAt.Add(receiptKeyRest)
}

// Signing returns the key that signs now.
func (k *ReceiptKeys) Signing(now time.Time) ReceiptKey {
	for i := len(k.Keys) - 1; i > 0; i-- {
		if !now.Before(k.signsFrom(i)) {
			return k.Keys[i]
		}
	}
	return k.Keys[0]
}

// ListedReceiptKey is a key in the set of receipt keys.
type ListedReceiptKey struct {
	ReceiptKey
	SignsFrom time.Time
	EndsAt    time.Time // then it leaves the set; zero: not known yet
}

// Listed returns the set of receipt keys: the keys that sign now or later, and the keys whose receipts may still be
// valid.
func (k *ReceiptKeys) Listed(now time.Time) (listed []ListedReceiptKey) {
	for i, key := range k.Keys {
		l := ListedReceiptKey{ReceiptKey: key, SignsFrom: k.signsFrom(i)}
		if i+1 < len(k.Keys) {
			l.EndsAt = k.signsFrom(i + 1).Add(receiptKeyGuard + MaxReceiptValidity)
		}
		if l.EndsAt.IsZero() || now.Before(l.EndsAt) {
			listed = append(listed, l)
		}
	}
	return listed
}

// MakeReceiptKeys makes the receipt keys of an owner, and is a no-op if there are some.
type MakeReceiptKeys struct {
	Owner Owner
	Root  SealedRoot // a new one
}

// DeviceID is empty: no device is touched.
func (MakeReceiptKeys) DeviceID() string { return "" }

func (MakeReceiptKeys) growth(r *Record, _ time.Time) Growth {
	if r.ReceiptKeys != nil {
		return NoGrowth
	}
	return RequiredGrowth // one small record of an owner, for the receipts of the owner's bound devices
}

func (c MakeReceiptKeys) apply(r *Record, now time.Time) (Result, error) {
	if r.ReceiptKeys == nil {
		if !r.Documents.Dates(MaxReceiptValidity) {
			return Result{}, ErrClockInDoubt
		}
		first := ReceiptKey{Number: 1, CreatedAt: r.Documents.Time(now)}
		r.ReceiptKeys = &ReceiptKeys{Owner: c.Owner, Root: c.Root, Keys: []ReceiptKey{first}}
		r.Changed = true
	}
	return Result{ReceiptKeys: r.ReceiptKeys}, nil
}

// RotateReceiptKeys adds a receipt key, which signs receipts ten minutes later. The keys before stay in the set until
// their last receipt has ended. As long as the newest key does not sign, the command adds none.
type RotateReceiptKeys struct{}

// DeviceID is empty: no device is touched.
func (RotateReceiptKeys) DeviceID() string { return "" }

func (RotateReceiptKeys) growth(*Record, time.Time) Growth { return NoGrowth }

func (RotateReceiptKeys) apply(r *Record, now time.Time) (Result, error) {
	have := r.ReceiptKeys
	switch {
	case have == nil:
		return Result{}, ErrNoReceiptKeys
	case !r.Documents.Dates(MaxReceiptValidity) || !r.ActsByTime:
		// Keys would leave the set before their receipts have ended, or sign too soon.
		return Result{}, ErrClockInDoubt
	}
	last := len(have.Keys) - 1
	if last > 0 && now.Before(have.signsFrom(last)) {
		return Result{ReceiptKeys: have}, nil
	}
	next := *have
	next.Keys = slices.Clone(have.Keys[len(have.Keys)-len(have.Listed(now)):])
	if len(next.Keys) >= MaxReceiptKeys {
		return Result{}, tooManyReceiptKeys()
	}
	next.Keys = append(next.Keys, ReceiptKey{Number: have.Keys[last].Number + 1, CreatedAt: now})
	r.ReceiptKeys, r.Changed = &next, true
	return Result{ReceiptKeys: &next}, nil
}

// SealReceiptKeys replaces the seal of the root secret, which stays the same, unless another node has replaced it.
type SealReceiptKeys struct{ From, To SealedRoot }

// DeviceID is empty: no device is touched.
func (SealReceiptKeys) DeviceID() string { return "" }

func (SealReceiptKeys) growth(*Record, time.Time) Growth { return NoGrowth }

func (c SealReceiptKeys) apply(r *Record, _ time.Time) (Result, error) {
	if r.ReceiptKeys == nil {
		return Result{}, ErrNoReceiptKeys
	}
	if r.ReceiptKeys.Root == c.From && c.From != c.To {
		next := *r.ReceiptKeys
		next.Root = c.To
		r.ReceiptKeys, r.Changed = &next, true
	}
	return Result{ReceiptKeys: r.ReceiptKeys}, nil
}

// ErrNoReceiptKeys means that an owner has no receipt keys. No response has it.
var ErrNoReceiptKeys = errors.New("the owner has no receipt keys")

func tooManyReceiptKeys() error {
	return &Error{
		Reason:  ReasonAPIKeyLimit,
		Message: "too many receipt keys: a receipt key goes once the last receipt that it has signed has ended",
		Details: map[string]int{"max_receipt_keys": MaxReceiptKeys},
	}
}

const (
	// RootSecretSize is the length of a root secret in bytes.
	RootSecretSize = 32
	// RootNonceSize is how many random bytes sealing a root secret takes.
	RootNonceSize = 12
	// SealedRootSize is the length of a sealed root secret: the nonce, the secret, and the tag of AES-GCM.
	SealedRootSize = RootNonceSize + RootSecretSize + 16
)

const (
	// maxRevocationsTogether is how many devices of a license one transaction voids the receipts of. Beyond that, it
	// voids all receipts of the license.
	maxRevocationsTogether = 16
	// MaxRevocationsADay is how many devices of a license may get entries of their own in a day, at most: see
	// License.revocationsADay.
	MaxRevocationsADay = 1000
)

// Revocation is an entry in the list of revocations: it voids receipts of a license, or of one device of the license.
type Revocation struct {
	Name     RevocationName
	Revision uint64     // the highest that is void
	Until    ReceiptDay // the first day on which no device accepts a receipt that it voids any more
}

// RevocationName names a license in lists of revocations, or a device of a license; see package receipt.
type RevocationName [16]byte

// RevocationOf returns the name of a license in lists of revocations, or of one of its devices; an empty device stands
// for all.
func RevocationOf(id LicenseID, device string) RevocationName {
	text := "licet revocation\x00" + id.String()
	if device != "" {
		text += "\x00" + device
	}
	sum := sha256.Sum256([]byte(text))
	return RevocationName(sum[:])
}

// RevocationCount counts the entries of a license's devices on a day. A node whose clock is behind, or is not known to
// agree with most clocks, counts on for the same day: the days of nodes that differ must not take turns.
type RevocationCount struct {
	Day   ReceiptDay
	Count uint16
}

// ReceiptDayOf returns the day of a time.
func ReceiptDayOf(t time.Time) ReceiptDay { return ReceiptDay(t.Unix() / int64(day/time.Second)) }

// receiptsOut reports whether devices may accept receipts of the license now. By a clock that the node must not act by,
// they always may: the clock may be ahead. The sweep removes needless entries.
func (r *Record) receiptsOut(now time.Time) bool {
	until := r.License.ReceiptsUntil
	return until != 0 && (!r.ActsByTime || until.Begins().After(now))
}

// voidDevice voids the receipts of a device that loses its slot, after the revision is raised. A lapsed lease has ended
// its receipts already, unless the node does not act by its clock.
func (r *Record) voidDevice(d *Device, now time.Time) {
	l := r.License
	if l.Revision == 0 || !r.receiptsOut(now) || r.ActsByTime && d.Lapsed(now) {
		return
	}
	if today := ReceiptDayOf(now); r.ActsByTime && l.Revocations.Day < today {
		l.Revocations = RevocationCount{Day: today}
	}
	if int(l.Revocations.Count) >= revocationsADay(l) {
		r.voidAll()
		return
	}
	l.Revocations.Count++ // the same whether commands are folded or not
	// Not the end of the lease: the entry may replace one of an earlier and longer lease.
	entry := Revocation{RevocationOf(l.Key.ID(), d.ID), voided(l), l.ReceiptsUntil}
	for i := range r.Revocations {
		if r.Revocations[i].Name == entry.Name {
			r.Revocations[i] = entry
			return
		}
	}
	if len(r.Revocations) >= maxRevocationsTogether {
		r.voidAll()
		return
	}
	r.Revocations = append(r.Revocations, entry)
}

// revocationsADay returns how many devices of the license may get entries of their own in a day: as many as the license
// has device slots, within bounds. Beyond that, a removal voids all receipts of the license. So no owner fills the
// store, or the list of all customers of an account, by binding and removing devices. A trial gets one entry for all
// its devices, since any client may start trials.
func revocationsADay(l *License) int {
	switch {
	case l.IsTrial():
		return 0
	case l.MaxDevices == 0:
		return MaxRevocationsADay
	}
	return min(max(l.MaxDevices, maxRevocationsTogether), MaxRevocationsADay)
}

// voidAll voids all receipts of the license, after the revision is raised. It replaces what the record voids already.
func (r *Record) voidAll() {
	l := r.License
	r.Revocations = append(r.Revocations[:0:0], Revocation{RevocationOf(l.Key.ID(), ""), voided(l), l.ReceiptsUntil})
}

// voided returns the highest revision whose receipts a change voids. Call voided after the change has raised the
// license's revision. The result may be higher than the revision before the change: a store that was restored from a
// backup has lost later revisions, and receipts may have them.
func voided(l *License) uint64 { return l.Revision - 1 }

// voidsAll reports whether a change of a license voids the receipts from before: it is suspended or revoked, has fewer
// devices, an earlier end, with or without its grace, a new key, or another product.
func (before *receiptFacts) voidsAll(after *receiptFacts) bool {
	lower := func(from, to int) bool { return to != 0 && (from == 0 || to < from) }
	begins := func(from, to time.Time) bool { return from.IsZero() && !to.IsZero() }
	earlier := func(from, to time.Time) bool { return !to.IsZero() && (from.IsZero() || to.Before(from)) }
	return begins(before.suspended, after.suspended) || begins(before.revoked, after.revoked) ||
		lower(before.max, after.max) || before.keys != after.keys || before.product != after.product ||
		earlier(before.expires, after.expires) || earlier(before.ends, after.ends)
}
