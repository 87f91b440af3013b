package licensing

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of metadata.
const (
	MaxMetadataMembers = 50
	MaxMetadataBytes   = 16 << 10 // as compact JSON
)

// Metadata is the data that a shop attaches to a license, and that no activation needs.
type Metadata struct {
	Object string // compact JSON, or empty
	// ExternalKey is the license's external key, as keyring.LicenseKeys.SealExternalKey returned it; empty: there is
	// none. It never changes.
	ExternalKey string
	// ReissueReason is the shop's reason for the latest reissue, or empty.
	ReissueReason string
	Entitlements  Entitlements // the license's own
	Customer
	Changed bool // differs from the stored metadata
}

// MaxCustomerReference is the most characters of a Customer's Reference.
const MaxCustomerReference = 64

// Customer says who has a license. The zero value says nothing, and as a filter it matches all licenses.
type Customer struct {
	// BuyerEmail is the buyer's e-mail address; letter case does not matter. A license with an order has none of its
	// own: the order names the buyer.
	BuyerEmail string
	Reference  string // the shop's name for the customer
}

// Has reports whether a customer matches a filter.
func (c Customer) Has(filter Customer) bool {
	return (filter.BuyerEmail == "" || FoldEmail(filter.BuyerEmail) == FoldEmail(c.BuyerEmail)) &&
		(filter.Reference == "" || filter.Reference == c.Reference)
}

// size returns the size of what a shop attaches to a license and may change, in bytes.
func (m *Metadata) size() int {
	return len(m.Object) + len(m.Entitlements) + len(m.BuyerEmail) + len(m.Reference)
}

// merge merges the members of another object: each replaces the member of its name, and null removes
// the member. merge does not look into the values of members.
func (m *Metadata) merge(patch string) error {
	merged, err := objectMembers(m.Object)
	if err != nil {
		return fmt.Errorf("decode the stored metadata: %w", err)
	}
	changes, err := objectMembers(patch)
	if err != nil {
		return InvalidField("metadata", "must be an object")
	}
	changed := false
	for _, c := range changes {
		at := slices.IndexFunc(merged, func(have objectMember) bool { return have.name == c.name })
		switch removes := string(c.value) == "null"; {
		case at < 0 && removes, at >= 0 && string(merged[at].value) == string(c.value) && !removes:
			continue
		case at < 0:
			merged = append(merged, c)
		case removes:
			merged = slices.Delete(merged, at, at+1)
		default:
			merged[at] = c
		}
		changed = true
	}
	if !changed {
		return nil
	}
	object := joinMembers(merged)
	if len(merged) > MaxMetadataMembers || len(object) > MaxMetadataBytes {
		return InvalidField("metadata", fmt.Sprintf("must have at most %d members and %d bytes as compact JSON after "+
			"the merge", MaxMetadataMembers, MaxMetadataBytes))
	}
	m.Object, m.Changed = object, true
	return nil
}

// objectMember is one member of a JSON object.
type objectMember struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("not a JSON object")

// objectMembers returns the members of a JSON object. An empty text has no members.
func objectMembers(object string) ([]objectMember, error) {
	if object == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(object))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errNoObject, err)
	}
	var members []objectMember
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := objectMember{name: name.(string)} // the decoder allows only strings here
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// joinMembers returns a compact JSON object; "" if it has no members.
func joinMembers(members []objectMember) string {
	if len(members) == 0 {
		return ""
	}
	var object strings.Builder
	for i, m := range members {
		object.WriteByte("{,"[min(i, 1)])
		object.WriteString(jsonText(m.name))
		object.WriteByte(':')
		object.Write(m.value)
	}
	object.WriteByte('}')
	return object.String()
}

// jsonText returns a JSON string.
func jsonText(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// A buyer may ask a shop to delete personal data. A redaction removes the texts that the shop has stored about the
// buyer. The facts of the sale, the payment and the activations stay. See docs/guides/personal-data.md. A redaction
// records no event: it changes nothing that events contain.

// RedactOrder removes the e-mail address, the description, the metadata and the reason from a buyer's
// order, in any state. If the order is another buyer's, or was redacted before, it returns
// ErrOrderNotFound. No search finds the licenses of the order by the buyer afterward. So the same transaction must
// redact the first license, and the other licenses must be redacted before. RedactOrder is a no-op if these are not
// all: if the order has changed since it was read, or if its other licenses must still get a change with its reason.
type RedactOrder struct {
	BuyerEmail string     // letter case does not matter
	LicenseKey LicenseKey // of the first license, empty if there is none, as the order had it before any redaction
	// Sequence and LicensesIssued are of the order as it was then.
	Sequence       uint64
	LicensesIssued int
}

// DeviceID is empty: no device is touched.
func (RedactOrder) DeviceID() string { return "" }

func (RedactOrder) growth(*Record, time.Time) Growth { return NoGrowth }

func (c RedactOrder) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	switch {
	case err != nil:
		return Result{}, err
	case o.BuyerEmail == "" || FoldEmail(o.BuyerEmail) != FoldEmail(c.BuyerEmail):
		return Result{}, ErrOrderNotFound
	case o.LicenseKey == c.LicenseKey && o.Sequence == c.Sequence && o.LicensesIssued == c.LicensesIssued &&
		o.Others == OthersDone:
		o.BuyerEmail, o.Description, o.Metadata, o.StateReason, r.Changed = "", "", "", "", true
	}
	return Result{order: new(*o)}, nil
}

// RedactLicense removes the metadata, the customer and the reasons from a license, and the components of its devices,
// in any state. It keeps DisputeReason, which tells nothing about the buyer: SuspendForDispute ends only suspensions
// for it.
type RedactLicense struct {
	Target
	// Of, if set, demands that the license itself names this customer. If the license names another customer, or was
	// redacted before, the command returns ErrLicenseNotFound.
	Of Customer
}

// DeviceID is empty: no device is touched.
func (RedactLicense) DeviceID() string { return "" }

func (RedactLicense) growth(*Record, time.Time) Growth { return NoGrowth }

func (c RedactLicense) apply(r *Record, _ time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	m := *r.Metadata
	if !m.Has(c.Of) {
		return Result{}, ErrLicenseNotFound
	}
	if m.Object, m.ReissueReason, m.Customer = "", "", (Customer{}); m != *r.Metadata {
		m.Changed, r.Changed = true, true
		*r.Metadata = m
	}
	if l.StateReason != "" && l.StateReason != DisputeReason {
		l.StateReason, r.Changed = "", true
	}
	r.dropComponents()
	return Result{License: *l}, nil
}
