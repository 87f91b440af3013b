//go:build !race

// The race detector lets a sync.Pool forget values, so these tests hold without the detector only.

package keyring_test

import (
	"testing"

	"licet/licensing/keyring"
)

// TestValidAPIKeyAllocatesNothing: each guess of an API key is checked.
func TestValidAPIKeyAllocatesNothing(t *testing.T) {
	check := keyring.NewKeyCheck(checkKey)
	text := check.MintAPIKey(keyOwner, [keyring.APIKeyEntropy]byte{1})
	if n := testing.AllocsPerRun(1000, func() { check.ValidAPIKey(text) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestParseAllocations: each request parses a license key. The one allocation is the id and the text of the key.
func TestParseAllocations(t *testing.T) {
	keys := keysWith(checkKey)
	key := someKeys(1)[0]
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := keys.Parse(key); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
