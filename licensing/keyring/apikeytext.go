package keyring

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"licet/licensing"
)

// APIKeyEntropy is the number of random bytes for [KeyCheck.MintAPIKey]: 160 bits.
const APIKeyEntropy = 20

const (
	apiKeyTestPrefix = "lk_test_"
	apiKeyLivePrefix = "lk_live_"
	apiKeyCheckAt    = len(apiKeyTestPrefix) + licensing.SlotLength + APIKeyEntropy*8/5
	apiKeyLength     = apiKeyCheckAt + checkLength
)

// MintAPIKey returns the text of an owner's new API key for the random bytes: lk_test_ or lk_live_, then 38 Crockford
// base32 characters. 2 are the owner's [licensing.Slot], 32 are random, and 4 are check characters over the text before
// them. The store keeps only the [HashAPIKey] of the text.
func (kc KeyCheck) MintAPIKey(owner licensing.Owner, entropy [APIKeyEntropy]byte) string {
	text := "lk_" + string(owner.Mode) + "_" + licensing.SlotOf(owner).String() + crockfordText(entropy[:])
	check := kc.characters([]byte(text))
	return text + string(check[:])
}

// ValidAPIKey reports whether a text is in the form of an API key and has the right check characters. No other text is
// an API key of the store. Unlike license keys, API keys have one form: people copy them.
func (kc KeyCheck) ValidAPIKey(text string) bool {
	if len(text) != apiKeyLength ||
		!strings.HasPrefix(text, apiKeyTestPrefix) && !strings.HasPrefix(text, apiKeyLivePrefix) {
		return false
	}
	for i := len(apiKeyTestPrefix); i < len(text); i++ {
		if strings.IndexByte(licensing.Crockford, text[i]) < 0 {
			return false
		}
	}
	var body [apiKeyCheckAt]byte
	copy(body[:], text)
	want := kc.characters(body[:])
	return subtle.ConstantTimeCompare(want[:], []byte(text[apiKeyCheckAt:])) == 1
}

// HashAPIKey returns the hash under which the store keeps an API key: the text's SHA-256, with the slot in the text in
// place of the first ten bits. So a hash leads to its slot. A plain hash suffices: the text is random, so it can't be
// guessed. The slot in the hash of a text without a slot is random.
func HashAPIKey(text string) [sha256.Size]byte {
	sum := sha256.Sum256([]byte(text))
	if rest := text[min(len(text), len(apiKeyTestPrefix)):]; len(rest) >= licensing.SlotLength {
		if slot, ok := licensing.ParseSlot(rest[:licensing.SlotLength]); ok {
			sum[0], sum[1] = byte(slot>>2), byte(slot<<6)|sum[1]&0x3f
		}
	}
	return sum
}

// SlotOfHash returns the slot of the API key with a hash; see [HashAPIKey].
func SlotOfHash(hash [sha256.Size]byte) licensing.Slot {
	return licensing.LeadingSlot(hash[0], hash[1])
}
