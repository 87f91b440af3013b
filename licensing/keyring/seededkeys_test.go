package keyring_test

import (
	"testing"

	"licet/licensing"
)

// TestGrantKeys: each license of a grant has a key of its own, the same each time.
func TestGrantKeys(t *testing.T) {
	keys := keysWith(checkKey)
	grant := licensing.GrantProgress{Seed: [32]byte{1}, Terms: licensing.Terms{KeyPrefix: "PRO"}}
	seen := map[licensing.LicenseKey]bool{}
	for i := range 1000 {
		key := keys.GrantKey(&grant, keyOwner, i)
		if parsed, _, err := keys.Parse(keys.Text(key)); err != nil || parsed != key || key.Prefix() != "PRO" {
			t.Fatalf("key %d is %s: %v", i, key, err)
		}
		if seen[key] || keys.GrantKey(&grant, keyOwner, i) != key {
			t.Fatalf("key %d is not its own", i)
		}
		seen[key] = true
	}
	other := licensing.GrantProgress{Seed: [32]byte{2}, Terms: grant.Terms}
	if seen[keys.GrantKey(&other, keyOwner, 0)] {
		t.Error("two grants share a key")
	}
}
