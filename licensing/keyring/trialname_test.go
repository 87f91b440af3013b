package keyring_test

import (
	"slices"
	"testing"

	"licet/licensing"
	"licet/licensing/keyring"
)

func TestTrialNames(t *testing.T) {
	owner := licensing.Owner{AccountID: "acct_1", Mode: licensing.Live}
	inTest := licensing.Owner{AccountID: "acct_1", Mode: licensing.Test}
	keys := keyring.NewLicenseKeys(keyring.NewKeyCheck([]byte("check")), keyring.NewIDKey([keyring.IDKeySize]byte{1}))
	once := licensing.TrialTerms{PerEmail: true}
	name := keys.TrialOf(owner, "pro", licensing.TrialTerms{}, "pc", "")
	byEmail := keys.TrialOf(owner, "pro", once, "pc", "Ada@Example.com")
	if byEmail != keys.TrialOf(owner, "pro", once, "mac", "ada@example.com") {
		t.Error("an address in another case is another trial")
	}
	others := []licensing.TrialName{name, byEmail,
		keys.TrialOf(owner, "lite", licensing.TrialTerms{}, "pc", ""),
		keys.TrialOf(owner, "pro", licensing.TrialTerms{}, "mac", ""),
		keys.TrialOf(inTest, "pro", licensing.TrialTerms{}, "pc", ""),
		keys.TrialOf(owner, "pro", once, "", "pc"),
		licensing.TrialName(keys.TrialDeviceOf(name, "pc")), licensing.TrialName(keys.TrialDeviceOf(byEmail, "pc"))}
	slices.SortFunc(others, func(a, b licensing.TrialName) int { return slices.Compare(a[:], b[:]) })
	if len(slices.Compact(others)) != len(others) {
		t.Errorf("equal names among %x", others)
	}
}
