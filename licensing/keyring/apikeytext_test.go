package keyring_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"licet/internal/depth"
	"licet/licensing"
	"licet/licensing/keyring"
)

// apiKeyText computes the text of an API key in a second way, as the expected value.
func apiKeyText(key []byte, owner licensing.Owner, entropy [keyring.APIKeyEntropy]byte) string {
	text := "lk_" + string(owner.Mode) + "_" + licensing.SlotOf(owner).String() +
		base32(new(big.Int).SetBytes(entropy[:]), 32)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + base32(new(big.Int).Rsh(new(big.Int).SetBytes(mac.Sum(nil)), 256-20), 4)
}

// TestAPIKeysAreFrozen: API keys are kept in configurations for years. No line here may ever change.
func TestAPIKeysAreFrozen(t *testing.T) {
	check := keyring.NewKeyCheck(checkKey)
	var counting, ones [keyring.APIKeyEntropy]byte
	for i := range counting {
		counting[i], ones[i] = byte(i), 0xff
	}
	for _, c := range []struct {
		mode    licensing.Mode
		entropy [keyring.APIKeyEntropy]byte
		text    string
	}{
		{licensing.Test, [keyring.APIKeyEntropy]byte{}, "lk_test_VQ000000000000000000000000000000001AQH"},
		{licensing.Live, ones, "lk_live_ZRZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ7KRN"},
		{licensing.Test, counting, "lk_test_VQ000G40R40M30E209185GR38E1W8124GKZ8DH"},
	} {
		owner := licensing.Owner{AccountID: "acct_acme", Mode: c.mode}
		got := check.MintAPIKey(owner, c.entropy)
		if got != c.text || got != apiKeyText(checkKey, owner, c.entropy) || !check.ValidAPIKey(got) {
			t.Errorf("got %s, want %s; valid: %v", got, c.text, check.ValidAPIKey(got))
		}
	}
}

// TestAPIKeysAreMintedAndChecked: the text for any owner and any random bytes is valid. A text with one other character
// is not.
func TestAPIKeysAreMintedAndChecked(t *testing.T) {
	depth.NotRaced(t)
	check := keyring.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(11, 12))
	for range 50 {
		owner := ownerOf(rng)
		var entropy [keyring.APIKeyEntropy]byte
		for i := range entropy {
			entropy[i] = byte(rng.Uint32())
		}
		text := check.MintAPIKey(owner, entropy)
		if text != apiKeyText(checkKey, owner, entropy) || !check.ValidAPIKey(text) ||
			!licensing.SlotOf(owner).In(strings.TrimPrefix(text, "lk_")) {
			t.Fatalf("%s of %v, valid: %v", text, owner, check.ValidAPIKey(text))
		}
		for i := range len(text) {
			for c := range 128 {
				if byte(c) == text[i] {
					continue
				}
				if other := text[:i] + string(rune(c)) + text[i+1:]; check.ValidAPIKey(other) {
					t.Errorf("%q is valid, and so is %q", text, other)
				}
			}
			if check.ValidAPIKey(text[:i]) || check.ValidAPIKey(text[:i]+text[i+1:]) ||
				check.ValidAPIKey(text[:i]+"0"+text[i:]) {
				t.Errorf("%q is valid, and so is a part of it", text)
			}
		}
	}
	if check.ValidAPIKey("") || check.ValidAPIKey(strings.Repeat("0", 46)) {
		t.Error("a text of no API key is valid")
	}
}

func FuzzValidAPIKey(f *testing.F) {
	check := keyring.NewKeyCheck(checkKey)
	for _, seed := range []string{
		check.MintAPIKey(keyOwner, [keyring.APIKeyEntropy]byte{1}), "", "lk_test_", "lk_live_",
		"lk_test_" + strings.Repeat("0", 38), "lk_live_" + strings.Repeat("Z", 38),
		"lk_test_" + strings.Repeat("ſ", 19),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := false
		if len(text) == 46 && (strings.HasPrefix(text, "lk_test_") || strings.HasPrefix(text, "lk_live_")) &&
			strings.Trim(text[8:], alphabet) == "" {
			mac := hmac.New(sha256.New, checkKey)
			mac.Write([]byte(text[:42]))
			want = text[42:] == base32(new(big.Int).Rsh(new(big.Int).SetBytes(mac.Sum(nil)), 256-20), 4)
		}
		if got := check.ValidAPIKey(text); got != want {
			t.Errorf("ValidAPIKey(%q) = %v", text, got)
		}
	})
}
