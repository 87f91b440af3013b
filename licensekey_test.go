package licet_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"licet"
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

// checkCharacters gives the check characters of a prefix and 21 characters.
func checkCharacters(key []byte, prefix, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(prefix + "-" + body))
	return base32(new(big.Int).Rsh(new(big.Int).SetBytes(mac.Sum(nil)), 256-20), 4)
}

// grouped writes a prefix and 25 characters with dashes.
func grouped(prefix, body string) licet.LicenseKey {
	for body != "" {
		prefix, body = prefix+"-"+body[:5], body[5:]
	}
	return licet.LicenseKey(prefix)
}

var (
	keyShape = regexp.MustCompile(`^[A-Z0-9]{2,8}(-[0-9A-HJKMNP-TV-Z]{5}){5}$`)
	keyTyped = regexp.MustCompile(`^[A-Za-z0-9]{2,8}(-[0-9A-TV-Za-tv-z]{5}){5}$`)
)

// expectedParse says what Parse is to answer: the key as read, with the check
// characters that it should have. It is false where input has not the form.
func expectedParse(key []byte, input string) (read, mended licet.LicenseKey, formed bool) {
	input = strings.TrimSpace(input)
	if !keyTyped.MatchString(input) {
		return "", "", false
	}
	prefix, rest, _ := strings.Cut(strings.ToUpper(input), "-")
	body := strings.NewReplacer("-", "", "O", "0", "I", "1", "L", "1").Replace(rest)
	return grouped(prefix, body), grouped(prefix, body[:21]+checkCharacters(key, prefix, body[:21])), true
}

func entropyOf(rng *rand.Rand) (entropy [licet.LicenseKeyEntropy]byte) {
	for i := range entropy {
		entropy[i] = byte(rng.Uint32())
	}
	return entropy
}

// someKeys mints keys from a fixed seed, with prefixes of every length.
func someKeys(count int) []licet.LicenseKey {
	check := licet.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(1, 2))
	prefixes := []string{"LIC", "AB", "OIL0", "APP42", "ZZZZZZ", "0000000", "LICENSES"}
	keys := make([]licet.LicenseKey, count)
	for i := range keys {
		keys[i] = check.Mint(prefixes[i%len(prefixes)], alphabet[rng.IntN(32)], entropyOf(rng))
	}
	return keys
}

// TestLicenseKeysAreFrozen: keys are printed, mailed and kept for years. No
// line here may ever change.
func TestLicenseKeysAreFrozen(t *testing.T) {
	ones := bytes.Repeat([]byte{0xff}, 32)
	for _, c := range []struct {
		checkKey []byte
		prefix   string
		cell     byte
		entropy  string // hex
		key      licet.LicenseKey
		id       string // hex
	}{
		{checkKey, "LIC", '0', "00000000000000000000000000", "LIC-00000-00000-00000-00000-0N6C5", "0000000000000000000000000054cc28"},
		{checkKey, "LIC", '0', "ffffffffffffffffffffffffff", "LIC-0ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZRNZN", "07ffffffffffffffffffffffffe2bfa8"},
		{checkKey, "LIC", '0', "000102030405060708090a0b0c", "LIC-0000G-40R40-M30E2-09185-GAZT1", "000008101820283038404850582bfa08"},
		{checkKey, "LIC", '1', "000102030405060708090a0b0c", "LIC-1000G-40R40-M30E2-09185-GGYH5", "0800081018202830384048505843d128"},
		{checkKey, "AB", '0', "0123456789abcdeffedcba9876", "AB-004HM-ASW9N-F6YZZ-PWQAC-7YJ4E", "00091a2b3c4d5e6f7ff6e5d4c3fa4470"},
		{checkKey, "OIL0OIL0", 'Z', "0123456789abcdeffedcba9876", "OIL0OIL0-Z04HM-ASW9N-F6YZZ-PWQAC-7CC5B", "f8091a2b3c4d5e6f7ff6e5d4c3b18558"},
		{ones, "LIC", '0', "000102030405060708090a0b0c", "LIC-0000G-40R40-M30E2-09185-GQG62", "000008101820283038404850585e0610"},
	} {
		t.Run(string(c.key), func(t *testing.T) {
			entropy, err := hex.DecodeString(c.entropy)
			if err != nil {
				t.Fatal(err)
			}
			check := licet.NewKeyCheck(c.checkKey)
			if got := check.Mint(c.prefix, c.cell, [licet.LicenseKeyEntropy]byte(entropy)); got != c.key {
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
	check := licet.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		prefix, cell, entropy := "LIC", alphabet[rng.IntN(32)], entropyOf(rng)
		body := string(cell) + base32(new(big.Int).Rsh(new(big.Int).SetBytes(entropy[:]), 4), 20)
		want := grouped(prefix, body+checkCharacters(checkKey, prefix, body))
		got := check.Mint(prefix, cell, entropy)
		if got != want || !keyShape.MatchString(string(got)) {
			t.Fatalf("Mint(%s, %c, %x) = %s, want %s", prefix, cell, entropy, got, want)
		}
		if got.Prefix() != prefix || got.Cell() != cell {
			t.Fatalf("%s has prefix %s and cell %c", got, got.Prefix(), got.Cell())
		}
	}
}

// TestMintUsesHundredBits: each of them makes another key, the last four of
// the 13 bytes make none.
func TestMintUsesHundredBits(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	base := check.Mint("LIC", '0', [licet.LicenseKeyEntropy]byte{})
	seen := map[licet.LicenseKey]bool{base: true}
	for bit := range 8 * licet.LicenseKeyEntropy {
		var entropy [licet.LicenseKeyEntropy]byte
		entropy[bit/8] = 0x80 >> (bit % 8)
		key := check.Mint("LIC", '0', entropy)
		if bit < 100 && seen[key] {
			t.Errorf("bit %d makes no new key", bit)
		}
		if bit >= 100 && key != base {
			t.Errorf("bit %d is used", bit)
		}
		seen[key] = true
	}
}

func TestParseIsForgiving(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	const key = "LIC-0000G-40R40-M30E2-09185-GAZT1"
	f := func(input string) {
		t.Helper()
		if got, err := check.Parse(input); got != key || err != nil {
			t.Errorf("Parse(%q) = %q, %v", input, got, err)
		}
	}
	f(key)
	f(strings.ToLower(key))
	f("lIc-0000g-40r40-m30E2-09185-gAzT1")
	f(" " + key)
	f(key + " ")
	f("\t \r\n" + key + " \r\n\n")
	f("LIC-OOOOG-4OR4O-M3OE2-O9I85-GAZTI")
	f("LIC-ooooG-4oR4o-M3oE2-o9i85-GAZTi")
	f("LIC-0000G-40R40-M30E2-09L85-GAZTL")
	f("LIC-0000G-40R40-M30E2-09l85-GAZTl")
	f("  lic-oO0oG-4OR40-m3oe2-09L85-gaztI\n")

	for _, key := range someKeys(200) {
		for _, input := range []string{string(key), strings.ToLower(string(key)), " " + string(key) + "\n"} {
			if got, err := check.Parse(input); got != key || err != nil {
				t.Errorf("Parse(%q) = %q, %v", input, got, err)
			}
		}
	}
}

// TestParsePrefixIsNotFolded: O, I and L are letters of their own in a prefix.
func TestParsePrefixIsNotFolded(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	const body = "-Z04HM-ASW9N-F6YZZ-PWQAC-7CC5B"
	if got, err := check.Parse("oil0oil0" + body); got != "OIL0OIL0"+body || err != nil {
		t.Errorf("in lower case: %q, %v", got, err)
	}
	for _, prefix := range []string{"0IL0OIL0", "O1L0OIL0", "OI10OIL0", "OILOOIL0"} {
		if got, err := check.Parse(prefix + body); err == nil {
			t.Errorf("%s was read as %q", prefix, got)
		}
	}
}

// invalid expects a refusal with nothing but the error itself.
func invalid(t *testing.T, check licet.KeyCheck, input string) {
	t.Helper()
	if got, err := check.Parse(input); got != "" || err != licet.ErrInvalidLicenseKey {
		t.Errorf("Parse(%q) = %q, %v", input, got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	const key, body = "LIC-0000G-40R40-M30E2-09185-GAZT1", "0000G40R40M30E209185G"
	withPrefix := func(prefix string) string {
		return string(grouped(prefix, body+checkCharacters(checkKey, prefix, body)))
	}
	if got := withPrefix("LIC"); got != key {
		t.Fatalf("the test mints %s", got)
	}
	for name, input := range map[string]string{
		"nothing":                    "",
		"spaces":                     "  \n",
		"a dash":                     "-",
		"dashes":                     strings.Repeat("-", len(key)),
		"prefix only":                "LIC",
		"no prefix":                  key[4:],
		"empty prefix":               key[3:],
		"one character short":        key[:len(key)-1],
		"one character long":         key + "0",
		"one group short":            key[:len(key)-6],
		"one group long":             key + "-00000",
		"dash at the end":            key + "-",
		"dash in front":              "-" + key,
		"two dashes":                 strings.Replace(key, "-", "--", 1),
		"no dashes":                  strings.ReplaceAll(key, "-", ""),
		"spaces for dashes":          strings.ReplaceAll(key, "-", " "),
		"underscores for dashes":     strings.ReplaceAll(key, "-", "_"),
		"a dash moved":               "LIC-0000-G40R40-M30E2-09185-GAZT1",
		"space inside":               "LIC-0000G-40R40 -M30E2-09185-GAZT1",
		"quoted":                     `"` + key + `"`,
		"twice":                      key + key,
		"NUL at the end":             key + "\x00",
		"NUL inside":                 "LIC-\x00000G-40R40-M30E2-09185-GAZT1",
		"U":                          "LIC-U000G-40R40-M30E2-09185-GAZT1",
		"u":                          "LIC-u000G-40R40-M30E2-09185-GAZT1",
		"check characters of no key": "LIC-0000G-40R40-M30E2-09185-G0000",
		"prefix of one, well signed": withPrefix("L"),
		"prefix of nine, signed":     withPrefix("LICENSING"),
		"no prefix, well signed":     withPrefix(""),
		"dash in prefix, signed":     withPrefix("L-C"),
		"space in prefix, signed":    withPrefix("L C"),
		"bad byte in prefix, signed": withPrefix("L\xffC"),
		"ſ in prefix, signed":        withPrefix("Lſ"),
		"very long":                  strings.Repeat(key, 1000),
	} {
		t.Run(name, func(t *testing.T) { invalid(t, check, input) })
	}
	t.Run("another store's key", func(t *testing.T) {
		for bit := range 8 * len(checkKey) {
			other := bytes.Clone(checkKey)
			other[bit/8] ^= 1 << (bit % 8)
			invalid(t, licet.NewKeyCheck(other), key)
		}
	})
}

// TestParseRefusesLookAlikes puts characters that look like legal ones, or
// that Unicode folds to them, everywhere: in place of one character, and in
// place of as many as keep the length in bytes.
func TestParseRefusesLookAlikes(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	keys := []string{"LIC-0000G-40R40-M30E2-09185-GAZT1", "OIL0OIL0-Z04HM-ASW9N-F6YZZ-PWQAC-7CC5B"}
	for _, c := range []string{
		"ſ", "ı", "İ", "\u212a", "\u212b", "ß", // fold to S, I, K, Å, SS
		"Ａ", "ａ", "０", "－", "＿", // full-width
		"А", "О", "С", "І", "Ι", "Ο", "о", "Ӏ", // Cyrillic and Greek
		"𝟎", "𝐀", "Ⅰ", "①", "٠", "०", "º", // other digits and letters
		"\u2010", "\u2011", "\u2012", "–", "—", "−", "\u00ad", // dashes
		"\u200b", "\u200d", "\ufeff", "\u0301", "\u00a0", "\u3000", // unseen
		"\xff", "\xc0\xb0", "\xed\xa0\x80", // no UTF-8
	} {
		for _, key := range keys {
			for i := range len(key) {
				// At the ends of the key a space is around it, not in it.
				if i > 0 && i < len(key)-1 {
					invalid(t, check, key[:i]+c+key[i:])
				}
				invalid(t, check, key[:i]+c+key[i+1:])
				if i+len(c) <= len(key) {
					invalid(t, check, key[:i]+c+key[i+len(c):])
				}
			}
		}
	}
}

// TestParseRefusesSubstitutions changes every character to every printable
// one. A single one may pass only if it reads the same.
func TestParseRefusesSubstitutions(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	same, refused := 0, 0
	for _, key := range someKeys(14) {
		text := string(key)
		for i := range len(text) {
			for c := byte('!'); c <= '~'; c++ {
				input := text[:i] + string(c) + text[i+1:]
				got, err := check.Parse(input)
				read, _, formed := expectedParse(checkKey, input)
				switch reads := formed && read == key; {
				case reads && (err != nil || got != key):
					t.Errorf("%s reads as %s, yet Parse gives %q, %v", input, key, got, err)
				case !reads && err == nil:
					t.Errorf("%s has a wrong character %d, yet Parse gives %q", input, i+1, got)
				case reads:
					same++
				default:
					refused++
				}
			}
		}
	}
	// Of the 94 characters, those that read the same are few.
	if same == 0 || refused < 30*same {
		t.Errorf("%d substitutions read the same, %d were refused: the test tests little", same, refused)
	}
}

func TestParseRefusesTranspositions(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	swaps := 0
	for _, key := range someKeys(100) {
		text := []byte(key)
		for i := range len(text) - 1 {
			if text[i] == text[i+1] {
				continue
			}
			text[i], text[i+1] = text[i+1], text[i]
			invalid(t, check, string(text))
			text[i], text[i+1] = text[i+1], text[i]
			swaps++
		}
	}
	if swaps < 3000 {
		t.Errorf("only %d swaps were tried", swaps)
	}
}

// TestParseRefusesLostAndDoubledCharacters: in the prefix the length alone
// does not tell.
func TestParseRefusesLostAndDoubledCharacters(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	for _, key := range someKeys(100) {
		text := string(key)
		for i := range len(text) {
			invalid(t, check, text[:i]+text[i+1:])
			invalid(t, check, text[:i+1]+text[i:])
		}
	}
}

func TestCheckCoversPrefix(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	keys := someKeys(70)
	for _, key := range keys {
		for _, other := range keys[:7] {
			if other.Prefix() != key.Prefix() {
				invalid(t, check, other.Prefix()+strings.TrimPrefix(string(key), key.Prefix()))
			}
		}
	}
}

// TestGuessesAreRefused: about one guess in a million passes, so of these,
// which are always the same, none does.
func TestGuessesAreRefused(t *testing.T) {
	check := licet.NewKeyCheck(checkKey)
	rng := rand.New(rand.NewPCG(5, 6))
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
	check := licet.NewKeyCheck(checkKey)
	const keys = 1 << 14
	var counts [4][256]int
	for n := range keys {
		var entropy [licet.LicenseKeyEntropy]byte
		entropy[11], entropy[12] = byte(n>>4), byte(n<<4)
		entropy[10] = byte(n >> 12)
		key := check.Mint("LIC", '0', entropy)
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

func TestLicenseID(t *testing.T) {
	// The 25 characters as a number of 125 bits, three zero bits behind.
	want := func(body string) (id licet.LicenseID) {
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
	seen := map[licet.LicenseID]string{}
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
		if got := licet.ValidKeyPrefix(prefix); got != want {
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
	check := licet.NewKeyCheck(checkKey)
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

func FuzzParseLicenseKey(f *testing.F) {
	const key = "LIC-0000G-40R40-M30E2-09185-GAZT1"
	for _, seed := range []string{
		key, strings.ToLower(key), " " + key + "\n", "", "-", "LIC", "\x00",
		"LIC-OOOOG-4OR4O-M3OE2-O9I85-GAZTI", "lic-oooog-4or4o-m3oe2-o9l85-gaztl",
		"AB-004HM-ASW9N-F6YZZ-PWQAC-7YJ4E", "OIL0OIL0-Z04HM-ASW9N-F6YZZ-PWQAC-7CC5B",
		"LIC-0000G-40R40-M30E2-09185-G0000", "LIC-U000G-40R40-M30E2-09185-GAZT1",
		"A-0000G-40R40-M30E2-09185-GAZT1", "ABCDEFGHI-0000G-40R40-M30E2-09185-GAZT1",
		"ſC-0000G-40R40-M30E2-09185-GAZT1", "L\u212aC-0000G-40R40-M30E2-09185-GAZT1",
		strings.ReplaceAll(key, "-", "–"), strings.ReplaceAll(key, "-", ""), key + "\xff", "\ufeff" + key,
	} {
		f.Add(seed)
	}
	check := licet.NewKeyCheck(checkKey)
	f.Fuzz(func(t *testing.T, input string) {
		got, err := check.Parse(input)
		read, mended, formed := expectedParse(checkKey, input)
		if accept := formed && read == mended; accept != (err == nil) {
			t.Fatalf("Parse(%q) = %q, %v, expected to accept: %v", input, got, err, accept)
		}
		if err != nil && (got != "" || !errors.Is(err, licet.ErrInvalidLicenseKey)) {
			t.Fatalf("Parse(%q) = %q, %v", input, got, err)
		}
		if !formed {
			return
		}
		// What has the form is accepted once its check characters are right.
		if again, err := check.Parse(string(mended)); again != mended || err != nil {
			t.Fatalf("Parse(%q) = %q, %v", mended, again, err)
		}
		if !keyShape.MatchString(string(mended)) || mended.ID().Key(mended.Prefix()) != mended {
			t.Fatalf("%q is not canonical", mended)
		}
		if err == nil && got != mended {
			t.Fatalf("Parse(%q) = %q, want %q", input, got, mended)
		}
	})
}
