package licensing_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"licet/licensing"
)

// What follows decides about keys a second time, from the contract's words and
// with other means: big numbers, a regular expression, strings.

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// checkKey is the check key of these tests: the bytes 00…1f.
var checkKey = func() []byte {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	return key
}()

// base32 writes the low 5×digits bits of n in Crockford's alphabet.
func base32(n *big.Int, digits int) string {
	var b strings.Builder
	for i := digits - 1; i >= 0; i-- {
		digit := new(big.Int).Rsh(n, uint(5*i))
		b.WriteByte(alphabet[digit.And(digit, big.NewInt(31)).Int64()])
	}
	return b.String()
}

// checkCharacters returns the check characters of 21 characters.
func checkCharacters(key []byte, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(body))
	return base32(new(big.Int).Rsh(new(big.Int).SetBytes(mac.Sum(nil)), 256-20), 4)
}

// grouped writes a prefix and 25 characters with dashes.
func grouped(prefix, body string) licensing.LicenseKey {
	for body != "" {
		prefix, body = prefix+"-"+body[:5], body[5:]
	}
	return licensing.LicenseKey(prefix)
}

var (
	keyShape = regexp.MustCompile(`^[A-Z0-9]{2,8}(-[0-9A-HJKMNP-TV-Z]{5}){5}$`)
	keyTyped = regexp.MustCompile(`^[A-Za-z0-9]{2,8}(-[0-9A-TV-Za-tv-z]{5}){5}$`)
)

// expectedParse says what Parse is to answer: the key as read, with the check
// characters that it should have. It is false where input is not in that form.
func expectedParse(key []byte, input string) (read, mended licensing.LicenseKey, formed bool) {
	input = strings.TrimSpace(input)
	if !keyTyped.MatchString(input) {
		return "", "", false
	}
	prefix, rest, _ := strings.Cut(strings.ToUpper(input), "-")
	body := strings.NewReplacer("-", "", "O", "0", "I", "1", "L", "1").Replace(rest)
	return grouped(prefix, body), grouped(prefix, body[:21]+checkCharacters(key, body[:21])), true
}

func entropyOf(rng *rand.Rand) (entropy [licensing.LicenseKeyEntropy]byte) {
	for i := range entropy {
		entropy[i] = byte(rng.Uint32())
	}
	return entropy
}

// ownerOf returns an owner whose slot follows from the seed of rng.
func ownerOf(rng *rand.Rand) licensing.Owner {
	mode := licensing.Test
	if rng.IntN(2) == 1 {
		mode = licensing.Live
	}
	return licensing.Owner{AccountID: fmt.Sprint("acct_", rng.Uint64()), Mode: mode}
}

// someKeys mints keys from a fixed seed, with prefixes of every length.
func someKeys(count int) []licensing.LicenseKey {
	check := licensing.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(1, 2))
	prefixes := []string{"LIC", "AB", "OIL0", "APP42", "ZZZZZZ", "0000000", "LICENSES"}
	keys := make([]licensing.LicenseKey, count)
	for i := range keys {
		keys[i] = check.Mint(prefixes[i%len(prefixes)], ownerOf(rng), entropyOf(rng))
	}
	return keys
}

// TestLicenseKeysAreFrozen: keys are printed, mailed and kept for years. No
// line here may ever change.
func TestLicenseKeysAreFrozen(t *testing.T) {
	ones := bytes.Repeat([]byte{0xff}, 32)
	acme := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	for _, c := range []struct {
		checkKey []byte
		prefix   string
		owner    licensing.Owner
		entropy  string // hex
		key      licensing.LicenseKey
		id       string // hex
	}{
		{checkKey, "LIC", acme, "000000000000000000000000", "LIC-VQ000-00000-00000-00000-0JWM5",
			"ddc000000000000000000000004b9428"},
		{checkKey, "LIC", acme, "ffffffffffffffffffffffff", "LIC-VQZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z51TW",
			"ddffffffffffffffffffffffff943ae0"},
		{checkKey, "LIC", acme, "000102030405060708090a0b", "LIC-VQ000-G40R4-0M30E-20918-5PCAG",
			"ddc0004080c1014181c2024282d98a80"},
		{checkKey, "LIC", licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}, "000102030405060708090a0b",
			"LIC-ZR000-G40R4-0M30E-20918-5NE3F", "fe00004080c1014181c2024282d5c378"},
		{checkKey, "AB", licensing.Owner{AccountID: "acct_01jd4q8x2m7r3n5t9v1w4y6z8a", Mode: licensing.Live},
			"0123456789abcdeffedcba98", "AB-AV04H-MASW9-NF6YZ-ZPWQA-C3BYV", "56c048d159e26af37bffb72ea60d7ed8"},
		{checkKey, "OIL0OIL0", licensing.Owner{AccountID: "acct_a", Mode: licensing.Test}, "0123456789abcdeffedcba98",
			"OIL0OIL0-3Z04H-MASW9-NF6YZ-ZPWQA-C5M7G", "1fc048d159e26af37bffb72ea6168780"},
		{ones, "LIC", acme, "000102030405060708090a0b", "LIC-VQ000-G40R4-0M30E-20918-5F0T0",
			"ddc0004080c1014181c2024282bc1a00"},
	} {
		t.Run(string(c.key), func(t *testing.T) {
			entropy, err := hex.DecodeString(c.entropy)
			if err != nil {
				t.Fatal(err)
			}
			check := licensing.NewKeyCheck(c.checkKey)
			if got := check.Mint(c.prefix, c.owner, [licensing.LicenseKeyEntropy]byte(entropy)); got != c.key {
				t.Errorf("minted %s", got)
			}
			if got, err := check.Parse(string(c.key)); got != c.key || err != nil {
				t.Errorf("parsed as %q, %v", got, err)
			}
			if got := fmt.Sprintf("%x", c.key.ID()); got != c.id {
				t.Errorf("id %s, want %s", got, c.id)
			}
		})
	}
}

func TestMintIsTheContractsForm(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		prefix, owner, entropy := "LIC", ownerOf(rng), entropyOf(rng)
		body := slotText(owner) + base32(new(big.Int).Rsh(new(big.Int).SetBytes(entropy[:]), 1), 19)
		want := grouped(prefix, body+checkCharacters(checkKey, body))
		got := check.Mint(prefix, owner, entropy)
		if got != want || !keyShape.MatchString(string(got)) {
			t.Fatalf("Mint(%s, %v, %x) = %s, want %s", prefix, owner, entropy, got, want)
		}
		if got.Prefix() != prefix || got.ID().Slot() != licensing.SlotOf(owner) {
			t.Fatalf("%s has prefix %s and slot %v", got, got.Prefix(), got.ID().Slot())
		}
	}
}

// TestMintUses95Bits: each of them makes another key, the last one of the 12
// bytes makes none.
func TestMintUses95Bits(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
	base := check.Mint("LIC", keyOwner, [licensing.LicenseKeyEntropy]byte{})
	seen := map[licensing.LicenseKey]bool{base: true}
	for bit := range 8 * licensing.LicenseKeyEntropy {
		var entropy [licensing.LicenseKeyEntropy]byte
		entropy[bit/8] = 0x80 >> (bit % 8)
		key := check.Mint("LIC", keyOwner, entropy)
		if bit < 95 && seen[key] {
			t.Errorf("bit %d makes no new key", bit)
		}
		if bit >= 95 && key != base {
			t.Errorf("bit %d is used", bit)
		}
		seen[key] = true
	}
}

// TestCheckDoesNotCoverPrefix: a key with another prefix is no license's, and
// not a typo.
func TestCheckDoesNotCoverPrefix(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
	keys := someKeys(70)
	for _, key := range keys {
		for _, other := range keys[:7] {
			input := other.Prefix() + strings.TrimPrefix(string(key), key.Prefix())
			if got, err := check.Parse(input); string(got) != input || err != nil || got.ID() != key.ID() {
				t.Errorf("Parse(%s) = %s, %v", input, got, err)
			}
		}
	}
}

// TestGuessesAreRefused: about one guess in a million passes, so of these,
// which are always the same, none does.
func TestGuessesAreRefused(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(5, 7))
	body := make([]byte, 25)
	for range 1 << 15 {
		for i := range body {
			body[i] = alphabet[rng.IntN(32)]
		}
		invalid(t, check, string(grouped("LIC", string(body))))
	}
}

// TestCheckCharactersAreEven counts them over keys that differ only in their
// last random bits. The bounds are about five standard deviations.
func TestCheckCharactersAreEven(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
	const keys = 1 << 14
	var counts [4][256]int
	for n := range keys {
		var entropy [licensing.LicenseKeyEntropy]byte
		entropy[10], entropy[11] = byte(n>>7), byte(n<<1)
		entropy[9] = byte(n >> 15)
		key := check.Mint("LIC", keyOwner, entropy)
		for i := range counts {
			counts[i][key[len(key)-4+i]]++
		}
	}
	for i := range counts {
		for _, c := range []byte(alphabet) {
			if got, mean := counts[i][c], keys/32; got < mean-110 || got > mean+110 {
				t.Errorf("check character %d is %c in %d of %d keys, want about %d", i+1, c, got, keys, mean)
			}
		}
	}
}

// keyOwner owns the keys of tests that need any owner.
var keyOwner = licensing.Owner{AccountID: "acct_keys", Mode: licensing.Test}

func TestLicenseID(t *testing.T) {
	// The 25 characters as a number of 125 bits, three zero bits behind.
	want := func(body string) (id licensing.LicenseID) {
		n := new(big.Int)
		for _, c := range []byte(body) {
			n.Lsh(n, 5).Or(n, big.NewInt(int64(strings.IndexByte(alphabet, c))))
		}
		n.Lsh(n, 3).FillBytes(id[:])
		return id
	}
	bodies := []string{strings.Repeat("0", 25), strings.Repeat("Z", 25)}
	for i := range 25 { // each bit alone
		for _, c := range "1248G" {
			bodies = append(bodies, strings.Repeat("0", i)+string(c)+strings.Repeat("0", 24-i))
		}
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		body := make([]byte, 25)
		for i := range body {
			body[i] = alphabet[rng.IntN(32)]
		}
		bodies = append(bodies, string(body))
	}
	seen := map[licensing.LicenseID]string{}
	for i, body := range bodies {
		key := grouped("LIC", body)
		id := key.ID()
		if id != want(body) {
			t.Errorf("%s has id %x, want %x", key, id, want(body))
		}
		if other, taken := seen[id]; taken {
			t.Errorf("%s and %s share id %x", body, other, id)
		}
		seen[id] = body
		for _, prefix := range []string{"LIC", "AB", "LICENSES"} {
			if got := grouped(prefix, body).ID(); got != id {
				t.Errorf("%s with prefix %s has id %x, want %x", body, prefix, got, id)
			}
			if got := id.Key(prefix); got != grouped(prefix, body) {
				t.Errorf("%x with prefix %s is key %s, want %s", id, prefix, got, grouped(prefix, body))
			}
		}
		before := bodies[max(i-1, 0)]
		other := grouped("LIC", before).ID()
		if got, want := bytes.Compare(other[:], id[:]), strings.Compare(before, body); got != want {
			t.Errorf("ids of %s and %s compare as %d, want %d", before, body, got, want)
		}
	}
}

func TestValidKeyPrefix(t *testing.T) {
	f := func(prefix string, want bool) {
		t.Helper()
		if got := licensing.ValidKeyPrefix(prefix); got != want {
			t.Errorf("ValidKeyPrefix(%q) = %v", prefix, got)
		}
	}
	for _, good := range []string{"LIC", "AB", "00", "A0", "ABCDEFGH", "12345678", "OILU", "AZ09"} {
		f(good, true)
	}
	for _, bad := range []string{
		"", "A", "ABCDEFGHI", "lic", "Lic", "A-B", "A B", " AB", "AB ", "A_B", "A.B", "@B", "[B", "/0", ":0",
		"ſS", "ÉÉ", "Ａ", "A\x00", "A\xff", "A\n",
	} {
		f(bad, false)
	}
}

// TestKeyCheckIsShared: one KeyCheck serves all requests at once.
func TestKeyCheckIsShared(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, key := range someKeys(50) {
				if got, err := check.Parse(string(key)); got != key || err != nil {
					t.Errorf("Parse(%s) = %q, %v", key, got, err)
				}
			}
		})
	}
	all.Wait()
}
