package keyring_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"licet/internal/depth"
	"licet/licensing"
)

func TestParseIsForgiving(t *testing.T) {
	keys := keysWith(checkKey)
	const key = "LIC-VQ000-G40R4-0M30E-20918-5PCAG"
	f := func(input string) {
		t.Helper()
		if got, err := keys.parse(input); got != key || err != nil {
			t.Errorf("Parse(%q) = %q, %v", input, got, err)
		}
	}
	f(key)
	f(strings.ToLower(key))
	f("lIc-vQ000-g40r4-0m30E-20918-5pCaG")
	f(" " + key)
	f(key + " ")
	f("\t \r\n" + key + " \r\n\n")
	f("LIC-VQOOO-G4OR4-OM3OE-2O9I8-5PCAG")
	f("LIC-VQooo-G4oR4-oM3oE-2o9i8-5PCAG")
	f("LIC-VQ000-G40R4-0M30E-209L8-5PCAG")
	f("LIC-VQ000-G40R4-0M30E-209l8-5PCAG")
	f("  lic-vqO0o-g4OR4-0m3oe-209L8-5pcaG\n")

	for _, key := range someKeys(200) {
		for _, input := range []string{key, strings.ToLower(key), " " + key + "\n"} {
			if got, err := keys.parse(input); got != key || err != nil {
				t.Errorf("Parse(%q) = %q, %v", input, got, err)
			}
		}
	}
}

// TestParsePrefixIsNotFolded: O, I and L are letters of their own in a prefix.
func TestParsePrefixIsNotFolded(t *testing.T) {
	keys := keysWith(checkKey)
	const body = "-3Z04H-MASW9-NF6YZ-ZPWQA-C5M7G"
	if got, err := keys.parse("oil0oil0" + body); got != "OIL0OIL0"+body || err != nil {
		t.Errorf("in lower case: %q, %v", got, err)
	}
	for _, prefix := range []string{"0IL0OIL0", "O1L0OIL0", "OI10OIL0", "OILOOIL0"} {
		if got, err := keys.parse(prefix + body); got != prefix+body || err != nil {
			t.Errorf("%s was read as %q, %v", prefix, got, err)
		}
	}
}

// invalid expects ErrInvalidLicenseKey, and no text with it.
func invalid(t *testing.T, keys textKeys, input string) {
	t.Helper()
	if got, err := keys.parse(input); got != "" || err != licensing.ErrInvalidLicenseKey {
		t.Errorf("Parse(%q) = %q, %v", input, got, err)
	}
}

// otherPrefix reports whether an input is the key with another valid prefix. The check characters do not cover the
// prefix.
func otherPrefix(key, input string) bool {
	prefix, body, _ := strings.Cut(input, "-")
	prefix = strings.ToUpper(prefix)
	return prefix != prefixOf(key) && licensing.ValidKeyPrefix(prefix) && key == prefixOf(key)+"-"+body
}

func TestParseRefuses(t *testing.T) {
	keys := keysWith(checkKey)
	const key, body = "LIC-VQ000-G40R4-0M30E-20918-5PCAG", "VQ000G40R40M30E209185"
	withPrefix := func(prefix string) string {
		return grouped(prefix, body+checkCharacters(checkKey, body))
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
		"a dash moved":               "LIC-VQ00-0G40R4-0M30E-20918-5PCAG",
		"space inside":               "LIC-VQ000-G40R4 -0M30E-20918-5PCAG",
		"quoted":                     `"` + key + `"`,
		"twice":                      key + key,
		"NUL at the end":             key + "\x00",
		"NUL inside":                 "LIC-\x00Q000-G40R4-0M30E-20918-5PCAG",
		"U":                          "LIC-UQ000-G40R4-0M30E-20918-5PCAG",
		"u":                          "LIC-uQ000-G40R4-0M30E-20918-5PCAG",
		"check characters of no key": "LIC-VQ000-G40R4-0M30E-20918-50000",
		"prefix of one, well signed": withPrefix("L"),
		"prefix of nine, signed":     withPrefix("LICENSING"),
		"no prefix, well signed":     withPrefix(""),
		"dash in prefix, signed":     withPrefix("L-C"),
		"space in prefix, signed":    withPrefix("L C"),
		"bad byte in prefix, signed": withPrefix("L\xffC"),
		"ſ in prefix, signed":        withPrefix("Lſ"),
		"very long":                  strings.Repeat(key, 1000),
	} {
		t.Run(name, func(t *testing.T) { invalid(t, keys, input) })
	}
	t.Run("another store's key", func(t *testing.T) {
		for bit := range 8 * len(checkKey) {
			other := bytes.Clone(checkKey)
			other[bit/8] ^= 1 << (bit % 8)
			invalid(t, keysWith(other), key)
		}
	})
}

// TestParseRefusesLookAlikes puts characters that look like legal ones, or
// that Unicode folds to them, everywhere: in place of one character, and in
// place of as many as keep the length in bytes.
func TestParseRefusesLookAlikes(t *testing.T) {
	keys := keysWith(checkKey)
	some := []string{"LIC-VQ000-G40R4-0M30E-20918-5PCAG", "OIL0OIL0-3Z04H-MASW9-NF6YZ-ZPWQA-C5M7G"}
	for _, c := range []string{
		"ſ", "ı", "İ", "\u212a", "\u212b", "ß", // fold to S, I, K, Å, SS
		"Ａ", "ａ", "０", "－", "＿", // full-width
		"А", "О", "С", "І", "Ι", "Ο", "о", "Ӏ", // Cyrillic and Greek
		"𝟎", "𝐀", "Ⅰ", "①", "٠", "०", "º", // other digits and letters
		"\u2010", "\u2011", "\u2012", "–", "—", "−", "\u00ad", // dashes
		"\u200b", "\u200d", "\ufeff", "\u0301", "\u00a0", "\u3000", // unseen
		"\xff", "\xc0\xb0", "\xed\xa0\x80", // no UTF-8
	} {
		for _, key := range some {
			for i := range len(key) {
				// At the ends of the key a space is around it, not in it.
				if i > 0 && i < len(key)-1 {
					invalid(t, keys, key[:i]+c+key[i:])
				}
				if i == 0 && strings.TrimSpace(c) == "" {
					continue // a space around a key with another prefix
				}
				invalid(t, keys, key[:i]+c+key[i+1:])
				if i+len(c) <= len(key) {
					invalid(t, keys, key[:i]+c+key[i+len(c):])
				}
			}
		}
	}
}

// TestParseRefusesSubstitutions replaces each character by each printable character, one at a time. Parse accepts the
// text only if it reads the two characters as the same, or if the text has another valid prefix.
func TestParseRefusesSubstitutions(t *testing.T) {
	depth.NotRaced(t)
	keys := keysWith(checkKey)
	same, refused := 0, 0
	for _, key := range someKeys(14) {
		text := key
		for i := range len(text) {
			for c := byte('!'); c <= '~'; c++ {
				input := text[:i] + string(c) + text[i+1:]
				got, err := keys.parse(input)
				read, _, formed := expectedParse(checkKey, input)
				switch reads := formed && read == key; {
				case reads && (err != nil || got != key):
					t.Errorf("%s reads as %s, yet Parse gives %q, %v", input, key, got, err)
				case otherPrefix(key, input):
					if got != read || err != nil {
						t.Errorf("%s has another prefix, yet Parse gives %q, %v", input, got, err)
					}
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
	// Few of the 94 characters read the same.
	if same == 0 || refused < 30*same {
		t.Errorf("%d substitutions read the same, %d were refused: the test tests little", same, refused)
	}
}

func TestParseRefusesTranspositions(t *testing.T) {
	keys := keysWith(checkKey)
	swaps := 0
	for _, key := range someKeys(100) {
		text := []byte(key)
		for i := range len(text) - 1 {
			if text[i] == text[i+1] {
				continue
			}
			text[i], text[i+1] = text[i+1], text[i]
			if !otherPrefix(key, string(text)) {
				invalid(t, keys, string(text))
				swaps++
			}
			text[i], text[i+1] = text[i+1], text[i]
		}
	}
	if swaps < 2500 {
		t.Errorf("only %d swaps were tried", swaps)
	}
}

// TestParseRefusesLostAndDoubledCharacters: in the prefix, the length alone does not show a lost or doubled character.
func TestParseRefusesLostAndDoubledCharacters(t *testing.T) {
	keys := keysWith(checkKey)
	for _, key := range someKeys(100) {
		text := key
		for i := range len(text) {
			for _, input := range []string{text[:i] + text[i+1:], text[:i+1] + text[i:]} {
				if !otherPrefix(key, input) {
					invalid(t, keys, input)
				}
			}
		}
	}
}

func FuzzParseLicenseKey(f *testing.F) {
	const key = "LIC-VQ000-G40R4-0M30E-20918-5PCAG"
	for _, seed := range []string{
		key, strings.ToLower(key), " " + key + "\n", "", "-", "LIC", "\x00",
		"LIC-VQOOO-G4OR4-OM3OE-2O9I8-5PCAG", "lic-vqooo-g4or4-om3oe-2o9l8-5pcag",
		"AB-AV04H-MASW9-NF6YZ-ZPWQA-C3BYV", "OIL0OIL0-3Z04H-MASW9-NF6YZ-ZPWQA-C5M7G",
		"LIC-VQ000-G40R4-0M30E-20918-50000", "LIC-UQ000-G40R4-0M30E-20918-5PCAG",
		"A-VQ000-G40R4-0M30E-20918-5PCAG", "ABCDEFGHI-VQ000-G40R4-0M30E-20918-5PCAG",
		"ſC-VQ000-G40R4-0M30E-20918-5PCAG", "L\u212aC-VQ000-G40R4-0M30E-20918-5PCAG",
		strings.ReplaceAll(key, "-", "–"), strings.ReplaceAll(key, "-", ""), key + "\xff", "\ufeff" + key,
	} {
		f.Add(seed)
	}
	keys := keysWith(checkKey)
	f.Fuzz(func(t *testing.T, input string) {
		got, err := keys.parse(input)
		read, mended, formed := expectedParse(checkKey, input)
		if accept := formed && read == mended; accept != (err == nil) {
			t.Fatalf("Parse(%q) = %q, %v, expected to accept: %v", input, got, err, accept)
		}
		if err != nil && (got != "" || !errors.Is(err, licensing.ErrInvalidLicenseKey)) {
			t.Fatalf("Parse(%q) = %q, %v", input, got, err)
		}
		if !formed {
			return
		}
		// A text in the form of a key is accepted with the right check characters.
		if again, err := keys.parse(mended); again != mended || err != nil {
			t.Fatalf("Parse(%q) = %q, %v", mended, again, err)
		}
		if !keyShape.MatchString(mended) {
			t.Fatalf("%q is not canonical", mended)
		}
		if err == nil && got != mended {
			t.Fatalf("Parse(%q) = %q, want %q", input, got, mended)
		}
	})
}
