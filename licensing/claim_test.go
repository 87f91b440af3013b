package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

func TestClaimLive(t *testing.T) {
	f := func(age time.Duration, want bool) {
		t.Helper()
		claim := licensing.Claim{CreatedAt: noon}
		if got := claim.Live(noon.Add(age)); got != want {
			t.Errorf("after %v: %v, want %v", age, got, want)
		}
	}
	f(0, true)
	f(-time.Hour, true) // made on a node whose clock is ahead
	f(24*time.Hour-time.Millisecond, true)
	f(24*time.Hour, false)
}

// TestGrantKeys gives each license of a grant a key of its own, the same one
// each time.
func TestGrantKeys(t *testing.T) {
	check := licensing.NewKeyCheck([]byte("check key"))
	grant := licensing.GrantProgress{Seed: [32]byte{1}, Terms: licensing.Terms{KeyPrefix: "PRO"}}
	seen := map[licensing.LicenseKey]bool{}
	for i := range 1000 {
		key := grant.Key(check, '0', i)
		if parsed, err := check.Parse(string(key)); err != nil || parsed != key || key.Prefix() != "PRO" {
			t.Fatalf("key %d is %s: %v", i, key, err)
		}
		if seen[key] || grant.Key(check, '0', i) != key {
			t.Fatalf("key %d is not its own", i)
		}
		seen[key] = true
	}
	other := licensing.GrantProgress{Seed: [32]byte{2}, Terms: grant.Terms}
	if seen[other.Key(check, '0', 0)] {
		t.Error("two grants share a key")
	}
}
