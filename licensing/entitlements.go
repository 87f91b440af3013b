package licensing

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of entitlements.
const (
	MaxEntitlements         = 64      // of a product, and of a license's own
	MaxOwnEntitlements      = 4 << 10 // bytes of a license's own entitlements, as compact JSON
	maxEntitlementCode      = 64
	maxEntitlementText      = 255       // characters
	maxEntitlementNumber    = 1<<53 - 1 // the largest integer that every JSON parser reads exactly (RFC 8259)
	entitlementCharacters   = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	entitlementCodeProblem  = "must have codes of 1 to 64 of the characters a-z 0-9 . _ -"
	entitlementValueProblem = "must be true, an integer, a string of up to 255 characters, or an object with such a " +
		"value"
)

// Entitlements say what the users of a license may do: a code for each feature, with a value. The text is compact JSON,
// an object with its codes in order. The value of a code is true, an integer, a string, or an object with such a value
// and with the end of the entitlement: {"value":true,"expires_at":"2030-12-31T23:59:59Z"} or
// {"value":true,"validity":"P1Y"}. A validity counts from [License.TermsSince]. In the entitlements of a license, null
// takes away what the product has under that code. The empty text has no entitlements.
type Entitlements string

// TermsVersion names an unchangeable text by its hash, so that equal texts of an owner have one version; 0: no text. It
// is the first eight bytes of the text's SHA-256.
type TermsVersion uint64

// Version returns the version of entitlements.
func (e Entitlements) Version() TermsVersion {
	if e == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(e))
	return TermsVersion(binary.BigEndian.Uint64(sum[:]))
}

// VersionedTerms are the part of a product's terms that its licenses name by [TermsVersion], instead of keeping a copy.
// They never change, and are never deleted: licenses outlive their product.
type VersionedTerms struct {
	Entitlements Entitlements
}

// TermsRef names the terms of a version.
func TermsRef(owner Owner, version TermsVersion) Ref {
	return Ref{Kind: KindTerms, Owner: owner, ID: string(binary.BigEndian.AppendUint64(nil, uint64(version)))}
}

// entitlement is one code of entitlements.
type entitlement struct {
	code  string
	value string    // JSON: true, an integer, a string, or null
	end   time.Time // zero: none
	after Period    // from License.TermsSince to the end; zero: none
}

// ParseEntitlements parses a JSON object of entitlements. With nulls, a value may be null. The error names what is
// wrong with a member.
func ParseEntitlements(field, object string, nulls bool) (Entitlements, error) {
	members, err := objectMembers(object)
	if err != nil {
		return "", InvalidField(field, "must be an object")
	}
	if len(members) > MaxEntitlements {
		return "", InvalidField(field, fmt.Sprintf("must have at most %d codes", MaxEntitlements))
	}
	parsed := make([]entitlement, len(members))
	for i, m := range members {
		if !validEntitlementCode(m.name) {
			return "", InvalidField(field, entitlementCodeProblem)
		}
		problem := ""
		if parsed[i], problem = parseEntitlement(m, nulls); problem != "" {
			return "", InvalidField(field, "has the entitlement "+m.name+", which "+problem)
		}
	}
	return joinEntitlements(sorted(parsed)), nil
}

// NewOwnEntitlements returns the own entitlements of a license that is issued now.
func NewOwnEntitlements(own Entitlements, now time.Time) (Entitlements, error) {
	return Entitlements("").merge(own, now)
}

func validEntitlementCode(code string) bool {
	return code != "" && len(code) <= maxEntitlementCode && strings.Trim(code, entitlementCharacters) == ""
}

func parseEntitlement(m objectMember, nulls bool) (e entitlement, problem string) {
	e = entitlement{code: m.name, value: string(m.value)}
	if e.value == "null" && nulls {
		return e, ""
	}
	if strings.HasPrefix(e.value, "{") {
		members, err := objectMembers(e.value)
		if err != nil {
			return e, entitlementValueProblem
		}
		e.value = ""
		for _, m := range members {
			if problem := e.member(m); problem != "" {
				return e, problem
			}
		}
		if !e.end.IsZero() && !e.after.IsZero() {
			return e, "must have expires_at or validity, not both"
		}
	}
	return e, e.checkValue()
}

// member parses a member of an entitlement that is an object.
func (e *entitlement) member(m objectMember) (problem string) {
	var text string
	isText := json.Unmarshal(m.value, &text) == nil && m.value[0] == '"'
	ok := false
	switch m.name {
	case "value":
		e.value = string(m.value)
		return ""
	case "expires_at":
		if e.end, ok = ParseTime(text); !isText || !ok || e.end.IsZero() { // the zero time means no end
			return `must have an RFC 3339 timestamp as expires_at, such as "2030-12-31T23:59:59Z"`
		}
		return ""
	case "validity":
		if e.after, ok = ParsePeriod(text); !isText || !ok || e.after.IsZero() {
			return `must have an ISO 8601 duration as validity, such as "P1Y"`
		}
		return ""
	}
	return "must have no other members than value, expires_at and validity"
}

// checkValue makes the value canonical.
func (e *entitlement) checkValue() (problem string) {
	switch {
	case e.value == "true":
		return ""
	case strings.HasPrefix(e.value, `"`):
		var text string
		if err := json.Unmarshal([]byte(e.value), &text); err != nil ||
			utf8.RuneCountInString(text) > maxEntitlementText {
			return entitlementValueProblem
		}
		e.value = jsonText(text)
		return ""
	}
	n, err := strconv.ParseInt(e.value, 10, 64)
	if err != nil || n > maxEntitlementNumber || n < -maxEntitlementNumber {
		return entitlementValueProblem
	}
	e.value = strconv.FormatInt(n, 10)
	return ""
}

// joinEntitlements returns the text of entitlements that are in the order of their codes.
func joinEntitlements(all []entitlement) Entitlements {
	members := make([]objectMember, len(all))
	for i, e := range all {
		value := e.value
		switch {
		case !e.end.IsZero():
			value = `{"value":` + value + `,"expires_at":` + jsonText(FormatTime(e.end)) + `}`
		case !e.after.IsZero():
			value = `{"value":` + value + `,"validity":` + jsonText(e.after.String()) + `}`
		}
		members[i] = objectMember{name: e.code, value: json.RawMessage(value)}
	}
	return Entitlements(joinMembers(members))
}

// OwnProblem returns what is wrong with the size of a license's own entitlements; "": nothing.
func (e Entitlements) OwnProblem() string {
	if all, err := e.split(); err != nil || len(all) > MaxEntitlements || len(e) > MaxOwnEntitlements {
		return fmt.Sprintf("must leave the license at most %d codes and %d bytes of its own, as compact JSON",
			MaxEntitlements, MaxOwnEntitlements)
	}
	return ""
}

// split returns the single entitlements of a text that joinEntitlements has returned, in order of their codes.
func (e Entitlements) split() ([]entitlement, error) {
	members, err := objectMembers(string(e))
	if err != nil {
		return nil, fmt.Errorf("decode stored entitlements: %w", err)
	}
	all := make([]entitlement, len(members))
	for i, m := range members {
		problem := ""
		if all[i], problem = parseEntitlement(m, true); problem != "" {
			return nil, fmt.Errorf("decode the stored entitlement %q: the value %s", m.name, problem)
		}
	}
	return all, nil
}

// merge returns a license's own entitlements after a change: each of the change replaces that of its code, and those
// that have ended go. Null stays, since it takes away what the product has. A validity in the change begins now.
func (e Entitlements) merge(change Entitlements, now time.Time) (Entitlements, error) {
	all, err := e.split()
	if err != nil {
		return "", err
	}
	changes, err := change.split()
	if err != nil {
		return "", err
	}
	for i := range changes {
		changes[i].end, changes[i].after = changes[i].endOf(now), Period{}
	}
	all = slices.DeleteFunc(all, func(e entitlement) bool {
		return slices.ContainsFunc(changes, func(c entitlement) bool { return c.code == e.code })
	})
	all = slices.DeleteFunc(append(all, changes...), func(e entitlement) bool { return e.ended(time.Time{}, now) })
	merged := joinEntitlements(sorted(all))
	if problem := merged.OwnProblem(); problem != "" {
		return "", InvalidField("entitlements", problem)
	}
	return merged, nil
}

// sorted sorts entitlements by their codes, and keeps the order of those with one code.
func sorted(all []entitlement) []entitlement {
	slices.SortStableFunc(all, func(a, b entitlement) int { return strings.Compare(a.code, b.code) })
	return all
}

// Entitled are entitlements, ready to be shown, in the order of their codes. Of several with one code, the first that
// has not ended counts.
type Entitled []entitlement

// Parse returns entitlements that this package has made.
func (e Entitlements) Parse() (Entitled, error) { return e.split() }

// Over returns a license's own entitlements on top of those of its product. Once one of its own has ended, that of the
// product shows again.
func (e Entitled) Over(product Entitled) Entitled {
	if len(e) == 0 {
		return product
	}
	return sorted(slices.Concat(e, product))
}

// At returns what a license has now: a JSON object of codes and values, without ended entitlements and without what the
// license's own entitlements take away; "" if there are none. since is [License.TermsSince].
func (e Entitled) At(since, now time.Time) string {
	members := make([]objectMember, 0, len(e))
	for each := range e.deciding(since, now) {
		if each.value != "null" {
			members = append(members, objectMember{each.code, json.RawMessage(each.value)})
		}
	}
	return joinMembers(members)
}

// EndsAt returns when those entitlements end that a license has now and that end by themselves: a JSON object of codes
// and RFC 3339 timestamps; "" if none ends by itself. since is [License.TermsSince].
func (e Entitled) EndsAt(since, now time.Time) string {
	var members []objectMember
	for each := range e.deciding(since, now) {
		if end := each.endOf(since); each.value != "null" && !end.IsZero() {
			members = append(members, objectMember{each.code, json.RawMessage(jsonText(FormatTime(end)))})
		}
	}
	return joinMembers(members)
}

// NextEnd returns when the first one of the entitlements ends that a license has now; zero: none ends. since is
// [License.TermsSince].
func (e Entitled) NextEnd(since, now time.Time) (next time.Time) {
	for each := range e.deciding(since, now) {
		if end := each.endOf(since); !end.IsZero() && (next.IsZero() || end.Before(next)) {
			next = end
		}
	}
	return next
}

// deciding yields the first entitlement of each code that has not ended.
func (e Entitled) deciding(since, now time.Time) iter.Seq[*entitlement] {
	return func(yield func(*entitlement) bool) {
		decided := ""
		for i := range e {
			if e[i].code == decided || e[i].ended(since, now) {
				continue
			}
			if decided = e[i].code; !yield(&e[i]) {
				return
			}
		}
	}
}

// Size returns about how many bytes the entitlements take.
func (e Entitled) Size() int {
	const each = 120
	size := each
	for i := range e {
		size += each + len(e[i].code) + len(e[i].value)
	}
	return size
}

// endOf returns the end of an entitlement whose validity counts from a time; zero: none.
func (e *entitlement) endOf(since time.Time) time.Time {
	if e.after.IsZero() {
		return e.end
	}
	return e.after.AddTo(since)
}

// ended reports whether an entitlement whose validity counts from a time has ended.
func (e *entitlement) ended(since, now time.Time) bool {
	end := e.endOf(since)
	return !end.IsZero() && !end.After(now)
}
