package keyring_test

import (
	"bytes"
	"crypto/aes"
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
	"licet/licensing/keyring"
)

// The functions below compute and parse keys a second time, from the words of the contract and by other means: big
// numbers, a regular expression, strings.

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
func grouped(prefix, body string) string {
	for body != "" {
		prefix, body = prefix+"-"+body[:5], body[5:]
	}
	return prefix
}

var (
	keyShape = regexp.MustCompile(`^[A-Z0-9]{2,8}(-[0-9A-HJKMNP-TV-Z]{5}){5}$`)
	keyTyped = regexp.MustCompile(`^[A-Za-z0-9]{2,8}(-[0-9A-TV-Za-tv-z]{5}){5}$`)
)

// expectedParse returns the key as Parse must read it, and the same key with the right check characters. formed is
// false if the input is not in the form of a key.
func expectedParse(key []byte, input string) (read, mended string, formed bool) {
	input = strings.TrimSpace(input)
	if !keyTyped.MatchString(input) {
		return "", "", false
	}
	prefix, rest, _ := strings.Cut(strings.ToUpper(input), "-")
	body := strings.NewReplacer("-", "", "O", "0", "I", "1", "L", "1").Replace(rest)
	return grouped(prefix, body), grouped(prefix, body[:21]+checkCharacters(key, body[:21])), true
}

func entropyOf(rng *rand.Rand) (entropy [keyring.LicenseKeyEntropy]byte) {
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
func someKeys(count int) []string {
	keys := keysWith(checkKey)
	rng := rand.New(rand.NewPCG(1, 2))
	prefixes := []string{"LIC", "AB", "OIL0", "APP42", "ZZZZZZ", "0000000", "LICENSES"}
	made := make([]string, count)
	for i := range made {
		made[i] = keys.mint(prefixes[i%len(prefixes)], ownerOf(rng), entropyOf(rng))
	}
	return made
}

// testIDKey is the id key of these tests: the bytes 20…2f.
const testIDKey = " !\"#$%&'()*+,-./"

// textKeys makes and parses keys as texts.
type textKeys struct{ keyring.LicenseKeys }

func keysWith(checkKey []byte) textKeys {
	id := keyring.NewIDKey([keyring.IDKeySize]byte([]byte(testIDKey)))
	return textKeys{keyring.NewLicenseKeys(keyring.NewKeyCheck(checkKey), id)}
}

func (k textKeys) mint(prefix string, owner licensing.Owner, entropy [keyring.LicenseKeyEntropy]byte) string {
	return k.Text(k.Mint(prefix, owner, entropy))
}

// parse fails if the text of the parsed key is not the canonical text.
func (k textKeys) parse(input string) (string, error) {
	key, canonical, err := k.Parse(input)
	if err != nil && (key != licensing.LicenseKey{}) {
		return key.String(), err
	}
	if err == nil && (k.Text(key) != canonical || key.Prefix() != prefixOf(canonical)) {
		return "", fmt.Errorf("the text of %s is %s", canonical, k.Text(key))
	}
	return canonical, err
}

// id returns the id of the license with a key.
func (k textKeys) id(key string) licensing.LicenseID {
	parsed, _, _ := k.Parse(key)
	return parsed.ID()
}

func prefixOf(key string) string {
	prefix, _, _ := strings.Cut(key, "-")
	return prefix
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
		key      string
		id       string // computed with openssl enc -aes-128-ecb
	}{
		{checkKey, "LIC", acme, "000000000000000000000000", "LIC-VQ000-00000-00000-00000-0JWM5",
			"lic_xj2nkykyb58y6jkjwn8qbjzyhg"},
		{checkKey, "LIC", acme, "ffffffffffffffffffffffff", "LIC-VQZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z51TW",
			"lic_3jsje92q1mfq39pzg1h3ezq44m"},
		{checkKey, "LIC", acme, "000102030405060708090a0b", "LIC-VQ000-G40R4-0M30E-20918-5PCAG",
			"lic_w6cvpzs74gz1wz31xn1t98gka4"},
		{checkKey, "LIC", licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}, "000102030405060708090a0b",
			"LIC-ZR000-G40R4-0M30E-20918-5NE3F", "lic_4eqxq1vw4sbdvrrzn1ds7sf94w"},
		{checkKey, "AB", licensing.Owner{AccountID: "acct_01jd4q8x2m7r3n5t9v1w4y6z8a", Mode: licensing.Live},
			"0123456789abcdeffedcba98", "AB-AV04H-MASW9-NF6YZ-ZPWQA-C3BYV", "lic_044zb2zh3rz220k4f6w833p150"},
		{checkKey, "OIL0OIL0", licensing.Owner{AccountID: "acct_a", Mode: licensing.Test}, "0123456789abcdeffedcba98",
			"OIL0OIL0-3Z04H-MASW9-NF6YZ-ZPWQA-C5M7G", "lic_wyr7fg1ghz9yxtak6rhebw0wkg"},
		{ones, "LIC", acme, "000102030405060708090a0b", "LIC-VQ000-G40R4-0M30E-20918-5F0T0",
			"lic_w6cvpzs74gz1wz31xn1t98gka4"},
	} {
		t.Run(c.key, func(t *testing.T) {
			entropy, err := hex.DecodeString(c.entropy)
			if err != nil {
				t.Fatal(err)
			}
			keys := keysWith(c.checkKey)
			if got := keys.mint(c.prefix, c.owner, [keyring.LicenseKeyEntropy]byte(entropy)); got != c.key {
				t.Errorf("minted %s", got)
			}
			if got, err := keys.parse(c.key); got != c.key || err != nil {
				t.Errorf("parsed as %q, %v", got, err)
			}
			if got := keys.id(c.key).String(); got != c.id {
				t.Errorf("id %s, want %s", got, c.id)
			}
		})
	}
}

func TestMintIsTheContractsForm(t *testing.T) {
	keys := keysWith(checkKey)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		prefix, owner, entropy := "LIC", ownerOf(rng), entropyOf(rng)
		body := licensing.SlotOf(owner).String() + base32(new(big.Int).Rsh(new(big.Int).SetBytes(entropy[:]), 1), 19)
		want := grouped(prefix, body+checkCharacters(checkKey, body))
		got := keys.mint(prefix, owner, entropy)
		if got != want || !keyShape.MatchString(got) {
			t.Fatalf("Mint(%s, %v, %x) = %s, want %s", prefix, owner, entropy, got, want)
		}
		if prefixOf(got) != prefix || keys.id(got).Slot() != licensing.SlotOf(owner) {
			t.Fatalf("%s has prefix %s and slot %v", got, prefixOf(got), keys.id(got).Slot())
		}
	}
}

// TestMintUses95Bits: each of the first 95 bits of entropy changes the key; the last bit of the 12 bytes does not.
func TestMintUses95Bits(t *testing.T) {
	keys := keysWith(checkKey)
	base := keys.mint("LIC", keyOwner, [keyring.LicenseKeyEntropy]byte{})
	seen := map[string]bool{base: true}
	for bit := range 8 * keyring.LicenseKeyEntropy {
		var entropy [keyring.LicenseKeyEntropy]byte
		entropy[bit/8] = 0x80 >> (bit % 8)
		key := keys.mint("LIC", keyOwner, entropy)
		if bit < 95 && seen[key] {
			t.Errorf("bit %d does not change the key", bit)
		}
		if bit >= 95 && key != base {
			t.Errorf("bit %d is used", bit)
		}
		seen[key] = true
	}
}

// TestCheckDoesNotCoverPrefix: Parse accepts a key with another prefix, and returns the same id.
func TestCheckDoesNotCoverPrefix(t *testing.T) {
	keys := keysWith(checkKey)
	some := someKeys(70)
	for _, key := range some {
		for _, other := range some[:7] {
			input := prefixOf(other) + strings.TrimPrefix(key, prefixOf(key))
			if got, err := keys.parse(input); got != input || err != nil || keys.id(got) != keys.id(key) {
				t.Errorf("Parse(%s) = %s, %v", input, got, err)
			}
		}
	}
}

// TestGuessesAreRefused: about one guess in a million passes the check. The guesses here are always the same, and none
// passes.
func TestGuessesAreRefused(t *testing.T) {
	keys := keysWith(checkKey)
	rng := rand.New(rand.NewPCG(5, 7))
	body := make([]byte, 25)
	for range 1 << 15 {
		for i := range body {
			body[i] = alphabet[rng.IntN(32)]
		}
		invalid(t, keys, grouped("LIC", string(body)))
	}
}

// TestCheckCharactersAreEven counts them over keys that differ only in their
// last random bits. The bounds are about five standard deviations.
func TestCheckCharactersAreEven(t *testing.T) {
	keys := keysWith(checkKey)
	const made = 1 << 14
	var counts [4][256]int
	for n := range made {
		var entropy [keyring.LicenseKeyEntropy]byte
		entropy[10], entropy[11] = byte(n>>7), byte(n<<1)
		entropy[9] = byte(n >> 15)
		key := keys.mint("LIC", keyOwner, entropy)
		for i := range counts {
			counts[i][key[len(key)-4+i]]++
		}
	}
	for i := range counts {
		for _, c := range []byte(alphabet) {
			if got, mean := counts[i][c], made/32; got < mean-110 || got > mean+110 {
				t.Errorf("check character %d is %c in %d of %d keys, want about %d", i+1, c, got, made, mean)
			}
		}
	}
}

// keyOwner owns the keys of tests that need any owner.
var keyOwner = licensing.Owner{AccountID: "acct_keys", Mode: licensing.Test}

// TestLicenseID computes ids in a second way: the 21 characters as a number of 105 bits, 23 zero bits behind, as one
// block of AES.
func TestLicenseID(t *testing.T) {
	block, err := aes.NewCipher([]byte(testIDKey))
	if err != nil {
		t.Fatal(err)
	}
	keys := keysWith(checkKey)
	seen := map[licensing.LicenseID]string{}
	for _, key := range someKeys(1000) {
		body := strings.ReplaceAll(key[len(prefixOf(key)):], "-", "")[:21]
		n := new(big.Int)
		for _, c := range []byte(body) {
			n.Lsh(n, 5).Or(n, big.NewInt(int64(strings.IndexByte(alphabet, c))))
		}
		var want [licensing.LicenseBlockSize]byte
		n.Lsh(n, 23).FillBytes(want[:])
		block.Encrypt(want[:], want[:])
		id := keys.id(key)
		if id.Block() != want || id.Slot().String() != body[:2] || !keys.Made(id) {
			t.Errorf("%s has id %x in slot %v, want %x", key, id.Block(), id.Slot(), want)
		}
		text := "lic_" + strings.ToLower(base32(new(big.Int).Lsh(new(big.Int).SetBytes(want[:]), 2), 26))
		if shown := fmt.Sprintf("%v %v %#v", id, id.Key("X"), id.Key("X")); shown != text+" "+text+" "+text {
			t.Errorf("id %s, want %s", id, text)
		}
		if read, ok := keys.ParseID(text); !ok || read != id {
			t.Errorf("%s is read as %s, %v", text, read, ok)
		}
		if other, taken := seen[id]; taken {
			t.Errorf("%s and %s share an id", key, other)
		}
		seen[id] = key
	}
}

// TestParseIDRefuses what no id key has made: other texts, and blocks that do not decrypt to the zero bits.
func TestParseIDRefuses(t *testing.T) {
	keys := keysWith(checkKey)
	id := keys.id(someKeys(1)[0])
	text := id.String()
	refused := func(text string) {
		t.Helper()
		if _, ok := keys.ParseID(text); ok {
			t.Errorf("%q is read as an id", text)
		}
	}
	for i := range len(text) {
		for _, c := range []byte(alphabet + strings.ToLower(alphabet) + "-_ uU\n\x00\xff") {
			if c != text[i] {
				refused(text[:i] + string(rune(c)) + text[i+1:])
			}
		}
		refused(text[:i] + text[i+1:])
		refused(text[:i] + "\n" + text[i:])
	}
	for _, other := range []string{"", "lic_", text + "0", text + "\n", " " + text, strings.ToUpper(text), text[4:]} {
		refused(other)
	}
	for bit := range 8 * licensing.LicenseBlockSize {
		block := id.Block()
		block[bit/8] ^= 1 << (bit % 8)
		changed := licensing.NewLicenseID(id.Slot(), block)
		refused(changed.String())
		if keys.Made(changed) {
			t.Errorf("%s was made", changed)
		}
	}
	if keys.Made(licensing.NewLicenseID(id.Slot()^1, id.Block())) {
		t.Error("an id is in another slot than its block says")
	}
	other := keyring.NewLicenseKeys(keys.KeyCheck, keyring.NewIDKey([keyring.IDKeySize]byte{1}))
	if _, ok := other.ParseID(text); ok || other.Made(id) {
		t.Error("another id key opens the id")
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

// TestLicenseKeysAreShared: a LicenseKeys is safe for concurrent use.
func TestLicenseKeysAreShared(t *testing.T) {
	keys := keysWith(checkKey)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, key := range someKeys(50) {
				if got, err := keys.parse(key); got != key || err != nil {
					t.Errorf("Parse(%s) = %q, %v", key, got, err)
				}
			}
		})
	}
	all.Wait()
}
