package licensing_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"licet/licensing"
)

func TestParseIsForgiving(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
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
	check := licensing.NewKeyCheck(checkKey)
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
func invalid(t *testing.T, check licensing.KeyCheck, input string) {
	t.Helper()
	if got, err := check.Parse(input); got != "" || err != licensing.ErrInvalidLicenseKey {
		t.Errorf("Parse(%q) = %q, %v", input, got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
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
			invalid(t, licensing.NewKeyCheck(other), key)
		}
	})
}

// TestParseRefusesLookAlikes puts characters that look like legal ones, or
// that Unicode folds to them, everywhere: in place of one character, and in
// place of as many as keep the length in bytes.
func TestParseRefusesLookAlikes(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
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
	check := licensing.NewKeyCheck(checkKey)
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
	// Few of the 94 characters read the same.
	if same == 0 || refused < 30*same {
		t.Errorf("%d substitutions read the same, %d were refused: the test tests little", same, refused)
	}
}

func TestParseRefusesTranspositions(t *testing.T) {
	check := licensing.NewKeyCheck(checkKey)
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
	check := licensing.NewKeyCheck(checkKey)
	for _, key := range someKeys(100) {
		text := string(key)
		for i := range len(text) {
			invalid(t, check, text[:i]+text[i+1:])
			invalid(t, check, text[:i+1]+text[i:])
		}
	}
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
	check := licensing.NewKeyCheck(checkKey)
	f.Fuzz(func(t *testing.T, input string) {
		got, err := check.Parse(input)
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
