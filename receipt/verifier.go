package receipt

import (
	"crypto/ed25519"
	"time"
)

// Leeway is how far a device's clock may be behind the service's.
const Leeway = 5 * time.Minute

// Verifier verifies receipts for one program on one device.
type Verifier struct {
	Root      ed25519.PublicKey // embedded in the program, see [ParseRoot]
	AccountID string
	Mode      string // test or live
	ProductID string
	DeviceID  string
	// Grace is how much longer a receipt counts without a newer list of revocations than the receipt's
	// revocation_max_age. The receipt's own end stays.
	Grace time.Duration
	Nonce string // of the request that the receipt must answer; empty: any receipt will do
}

// Documents are what a device has, each as the service sent it.
type Documents struct {
	Keys        string   `json:"keys"`        // the set of receipt keys
	Receipt     string   `json:"receipt"`     // of this device
	Revocations []string `json:"revocations"` // a whole list, and the increments after it; may be empty
}

// Verified is what verified documents say.
type Verified struct {
	*Receipt
	Keys  *KeySet
	Known int64 // Unix seconds: nothing that the documents don't say was revoked before
}

// Verify checks the documents, in this order: the set of keys, the receipt, the device's clock, the lists of
// revocations. It returns what they say if the license may be used now, and what the device has seen with these
// documents. The error is an [*Error] with the first reason. If the reason is Voided or Stale, the device has seen the
// set of keys, the lists and their time; with other reasons, it has seen nothing new.
func (v *Verifier) Verify(d Documents, seen Seen, now time.Time) (*Verified, Seen, error) {
	at, soon := now.Unix(), now.Add(Leeway).Unix()
	keys, err := v.openKeys(d.Keys, seen, at, soon)
	if err != nil {
		return nil, seen, in(KeySetDocument, err)
	}
	r, err := v.openReceipt(d.Receipt, keys, seen, at, soon)
	if err != nil {
		return nil, seen, in(ReceiptDocument, err)
	}
	list, err := v.openLists(d.Revocations, keys, seen, soon)
	if err != nil {
		return nil, seen, in(RevocationsDocument, err)
	}
	known := max(r.IssuedAt, list.AsOf) // nothing was revoked until then
	seen.Time, seen.Keys = max(seen.Time, keys.IssuedAt, known), keys.IssuedAt
	seen.Epoch, seen.AsOf = list.Epoch, list.AsOf
	voided := max(list.Entries.voids(RevocationName(r.LicenseID, "")),
		list.Entries.voids(RevocationName(r.LicenseID, r.DeviceID)))
	if uint64(r.Revision) <= voided || r.Status == "revoked" || r.Status == "suspended" {
		return nil, seen, in(ReceiptDocument, refuse(Voided, "the service has revoked the receipt"))
	}
	if age := at - known; r.RevocationsAge > 0 && age >= r.RevocationsAge+int64(v.Grace/time.Second) {
		return nil, seen, in(RevocationsDocument,
			refuse(Stale, "the newest list of revocations is %d seconds old", age))
	}
	return &Verified{Receipt: r, Keys: keys, Known: known}, seen.with(r.LicenseID, r.Revision), nil
}

// openKeys returns the set of keys.
func (v *Verifier) openKeys(document string, seen Seen, at, soon int64) (*KeySet, error) {
	keys, err := openKeySet(document, v.Root)
	switch {
	case err != nil:
		return nil, err
	case keys.AccountID != v.AccountID || keys.Mode != v.Mode:
		return nil, refuse(Audience, "the set of keys is of another account or mode")
	case keys.IssuedAt < seen.Keys:
		return nil, refuse(Older, "the device has seen a newer set of keys")
	case keys.IssuedAt > soon:
		return nil, refuse(NotYetValid, "the set of keys is from the future")
	case keys.ExpiresAt <= at:
		return nil, refuse(Expired, "the set of keys has ended")
	}
	return keys, nil
}

// openReceipt returns the receipt, and checks the device's clock.
func (v *Verifier) openReceipt(document string, keys *KeySet, seen Seen, at, soon int64) (*Receipt, error) {
	r, err := openReceipt(document, keys)
	switch {
	case err != nil:
		return nil, err
	case r.AccountID != v.AccountID || r.Mode != v.Mode || r.ProductID != v.ProductID:
		return nil, refuse(Audience, "the receipt is of another account, mode or product")
	case r.DeviceID != v.DeviceID:
		return nil, refuse(Device, "the receipt is of another device")
	case v.Nonce != "" && r.Nonce != v.Nonce:
		return nil, refuse(Nonce, "the receipt answers another request")
	case r.NotBefore > soon || r.IssuedAt > soon:
		return nil, refuse(NotYetValid, "the receipt is from the future")
	case r.ExpiresAt <= at:
		return nil, refuse(Expired, "the receipt has ended")
	case r.Revision < seen.newest(r.LicenseID):
		return nil, refuse(Older, "the device has seen a newer receipt")
	case seen.Time > soon:
		return nil, refuse(ClockSetBack, "the device has seen a later time of the service")
	}
	return r, nil
}

// openLists returns the whole list and its increments as one list; an empty list if there is none.
func (v *Verifier) openLists(documents []string, keys *KeySet, seen Seen, soon int64) (*Revocations, error) {
	all := &Revocations{}
	for _, document := range documents {
		list, err := openRevocations(document, keys)
		switch {
		case err != nil:
			return nil, err
		case list.AccountID != v.AccountID || list.Mode != v.Mode:
			return nil, refuse(Audience, "the list is of another account or mode")
		case list.AsOf > soon:
			return nil, refuse(NotYetValid, "the list is from the future")
		case list.After > all.Epoch || list.Epoch < all.Epoch || list.AsOf < all.AsOf:
			return nil, refuse(Older, "the list does not continue the list before it")
		}
		list.Entries = all.Entries.merge(list.Entries)
		all = list
	}
	if all.Epoch < seen.Epoch || all.AsOf < seen.AsOf {
		return nil, refuse(Older, "the device has seen a newer list")
	}
	return all, nil
}
