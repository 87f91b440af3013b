package keyspace

import (
	"encoding/binary"
	"time"

	"licet/licensing"
)

// AliasesFamily begins the keys of aliases.
const AliasesFamily = "n/"

// AliasKey returns the key of an alias.
func AliasKey(name licensing.AliasName) string {
	id := licensing.LicenseID(name)
	return InSlot(id.Slot(), AliasesFamily+BlockOf(id))
}

// MetadataKey returns the key of a license's metadata.
func MetadataKey(id licensing.LicenseID) string { return InSlot(id.Slot(), "m/"+BlockOf(id)) }

// PaymentsFamily begins the keys of payments.
const PaymentsFamily = "pa/"

// PaymentKey returns the key of a payment.
func PaymentKey(ref licensing.Ref) string { return OfOwner(ref.Owner, PaymentsFamily) + ref.ID }

// PaymentListings begins the keys of the listings of orders' payments.
const PaymentListings = "pi/"

// PaymentsOf returns the listing of the payments of an order.
func PaymentsOf(owner licensing.Owner, orderNo string) string {
	return PaymentListings + OwnerPath(owner) + orderNo
}

// PaymentListingKey returns the key of a payment in the listing of its order.
func PaymentListingKey(ref licensing.Ref, p *licensing.Payment) string {
	return InSlot(licensing.SlotOf(ref.Owner), PaymentsOf(ref.Owner, p.OrderNo)+TimeInKey(p.RecordedAt)+ref.ID)
}

// ReadPaymentKey decodes the key of a payment behind its family.
func ReadPaymentKey(rest string) (ref licensing.Ref, ok bool) {
	return cutNamed(licensing.KindPayment, rest, licensing.PaymentNameSize)
}

// CutPaymentListing decodes the key of a payment in the listing of its order, behind the family: the payment's name and
// its order.
func CutPaymentListing(rest string) (ref licensing.Ref, orderNo string, ok bool) {
	owner, rest, ok := CutOwner(rest)
	if !ok || len(rest) < TimeSize+licensing.PaymentNameSize {
		return licensing.Ref{}, "", false
	}
	orderNo = rest[:len(rest)-TimeSize-licensing.PaymentNameSize]
	ref = licensing.Ref{Kind: licensing.KindPayment, Owner: owner, ID: rest[len(rest)-licensing.PaymentNameSize:]}
	return ref, orderNo, licensing.ValidOrderNo(orderNo)
}

const (
	// SalesFamily begins the keys of payments and refunds by time.
	SalesFamily = "pt/"
	// BooksKey contains the time from which on each payment has an entry among the sales of its owner.
	BooksKey = CellPrefix + "books"
)

// SalesOf returns the listing of an owner's payments and refunds by time.
func SalesOf(owner licensing.Owner) string { return SalesFamily + OwnerPath(owner) }

// SaleKey returns the key of a payment among the sales of its owner.
func SaleKey(payment licensing.Ref, at time.Time) string {
	return InSlot(licensing.SlotOf(payment.Owner), SalesOf(payment.Owner)+TimeInKey(at)+payment.ID)
}

// ReadSaleKey decodes the key of a sale behind its family: which payment it is, and when it was paid.
func ReadSaleKey(rest string) (payment licensing.Ref, at time.Time, ok bool) {
	owner, rest, ok := CutOwner(rest)
	if !ok || len(rest) != TimeSize+licensing.PaymentNameSize {
		return payment, at, false
	}
	return licensing.Ref{Kind: licensing.KindPayment, Owner: owner, ID: rest[TimeSize:]}, ReadTime(rest), true
}

// ReadTime returns the time at the beginning of a text, as TimeInKey has written it.
func ReadTime(text string) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64([]byte(text)))).UTC()
}

// SandboxFamily begins the keys of what the sandbox knows about orders.
const SandboxFamily = "sb/"

// SandboxKey returns the key of what the sandbox knows about an order.
func SandboxKey(ref licensing.Ref) string { return OfOwner(ref.Owner, SandboxFamily) + ref.ID }

// ReadSandboxKey decodes the key of what the sandbox knows about an order, behind its family. Only orders of test mode
// have such a key.
func ReadSandboxKey(rest string) (ref licensing.Ref, ok bool) {
	owner, orderNo, ok := CutOwner(rest)
	return licensing.SandboxRef(owner, orderNo), ok && owner.Mode == licensing.Test && licensing.ValidOrderNo(orderNo)
}

// SettingsFamily begins the keys of the settings of owners.
const SettingsFamily = "f/"

// SettingsKey returns the key of an owner's settings.
func SettingsKey(owner licensing.Owner) string { return OfOwner(owner, SettingsFamily) }

// UsageFamily begins the keys of the usage records of owners.
const UsageFamily = "s/"

// ProviderEventsPrefix begins the keys that say how far the events of accounts at payment providers are read.
const ProviderEventsPrefix = CellPrefix + "pe/"

// ProviderEventsKey returns the key of an owner's account at a payment provider. An owner without an account id stands
// for the account at the provider that all others of the mode share.
func ProviderEventsKey(owner licensing.Owner) string { return ProviderEventsPrefix + OwnerPath(owner) }

// ValidProviderEvents reports whether a key of ProviderEventsPrefix is in its form, given the part behind the prefix.
func ValidProviderEvents(rest string) bool {
	_, end, ok := CutOwner(rest)
	return ok && end == "" || rest == OwnerPath(licensing.Owner{Mode: licensing.Test}) ||
		rest == OwnerPath(licensing.Owner{Mode: licensing.Live})
}

// RecountKey is written when a recount of all usage begins: its ModRevision is the revision that the recount counts
// at. A transaction that adds to a usage record compares this revision, so that it knows which growth the recount
// does not see. RecountedKey is written when the recount has ended.
const (
	RecountKey   = CellPrefix + "recount"
	RecountedKey = CellPrefix + "recount/ended"
)

// UsageKey returns the key of an owner's usage record.
func UsageKey(owner licensing.Owner) string { return OfOwner(owner, UsageFamily) }

// TrialsFamily begins the keys of trials.
const TrialsFamily = "tr/"

// TrialKey returns the key of a trial.
func TrialKey(ref licensing.Ref) string { return OfOwner(ref.Owner, TrialsFamily) + ref.ID }

// ReadTrialKey decodes the key of a trial behind its family.
func ReadTrialKey(rest string) (ref licensing.Ref, ok bool) {
	return cutNamed(licensing.KindTrial, rest, len(licensing.TrialName{}))
}

// TermsFamily begins the keys of the versions of terms.
const TermsFamily = "t/"

// TermsKey returns the key of a version of an owner's terms.
func TermsKey(ref licensing.Ref) string { return OfOwner(ref.Owner, TermsFamily) + ref.ID }

const (
	// ReceiptKeysFamily begins the keys of the receipt keys of owners.
	ReceiptKeysFamily = "rk/"
	// ReceiptKeysMark is written with each change of receipt keys: so a master key can't be retired while a root secret
	// is sealed under it.
	ReceiptKeysMark = CellPrefix + "receipts"
)

// ReceiptKeysKey returns the key of an owner's receipt keys.
func ReceiptKeysKey(owner licensing.Owner) string { return OfOwner(owner, ReceiptKeysFamily) }

// RevocationsFamily begins the keys of the entries in the owners' lists of revocations. Behind the owner, a key has the
// 16 bytes of the name.
const RevocationsFamily = "rv/"

// RevocationsOf returns the beginning of the keys of an owner's list of revocations.
func RevocationsOf(owner licensing.Owner) string { return OfOwner(owner, RevocationsFamily) }

// RevocationKey returns the key of an entry.
func RevocationKey(owner licensing.Owner, name licensing.RevocationName) string {
	return RevocationsOf(owner) + string(name[:])
}

// CutRevocation parses a key's part behind the family.
func CutRevocation(rest string) (owner licensing.Owner, name licensing.RevocationName, ok bool) {
	owner, text, ok := CutOwner(rest)
	if !ok || len(text) != len(name) {
		return owner, name, false
	}
	copy(name[:], text)
	return owner, name, true
}
