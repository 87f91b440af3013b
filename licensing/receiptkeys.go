package licensing

import (
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
