package handlers

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// twoTexts are the members of the bodies below; a third one is no text.
func twoTexts() (a, b *text, members []member) {
	a, b = new(text), new(text)
	return a, b, []member{textMember("a", a), textMember("b", b), integerMember("n", new(integer))}
}

func TestPlainBodies(t *testing.T) {
	t.Parallel()
	f := func(body string, want bool) {
		t.Helper()
		a, b, members := twoTexts()
		if got := decodePlain([]byte(body), members); got != want {
			t.Errorf("%s: %v", body, got)
		}
		if !want && (a.given || b.given) {
			t.Errorf("%s: left %+v and %+v", body, *a, *b)
		}
	}
	f(`{}`, true)
	f(" {\t} \n", true)
	f(`{"a":"x"}`, true)
	f(`{"a":""}`, true)
	f(" { \"b\" :\r\"caf\u00e9\" , \"a\":\"\"}\t", true)
	for _, body := range []string{
		``, ` `, `{`, `}`, `{,}`, `[]`, `null`, `"a"`, `{"a"}`, `{"a":}`, `{"a":"x"`, `{"a":"x",}`, `{,"a":"x"}`,
		`{"a":"x" "b":"y"}`, `{"a" "x"}`, `{"a":"x"};`, `{"a":"x"}{}`, `{"a":"x"}}`, `{"a":"x"`, `{"a":"x`, `{"a":"x"}x`,
		`{"a":"x","a":"x"}`, `{"a":"","a":""}`, `{"c":"x"}`, `{"A":"x"}`, `{"":"x"}`, `{"a":1}`, `{"a":null}`, `{"a":{}}`, `{"n":"1"}`, `{"n":1}`,
		`{"a":"\n"}`, `{"\u0061":"x"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}",
		"\ufeff{}", "{}\x00", "\v{}", "{\u00a0}",
	} {
		f(body, false)
	}
}

// TestPlainAgrees: whatever decodePlain takes, the decoder takes too, and reads
// the same from it.
func TestPlainAgrees(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ":", ",", `"a"`, `"b"`, `"n"`, `"c"`, `"a":"x"`, `"b":"y"`, `,"b":"z"`, `"`, `\`, `\"`, "1", "null",
		" ", "\n", "\t", "\r", "\v", "\x00", "\x1f", "\x7f", "\x80", "\xff", "\u00e9", "\u2028", "\ufffd", "\ufeff", "\U0001f600", "\xed\xa0\x80",
	})
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(pieces, 0, 9).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "framed") {
			body = `{"a":"` + body + `"}`
		}
		a, b, members := twoTexts()
		if !decodePlain([]byte(body), members) {
			return
		}
		wantA, wantB, want := twoTexts()
		if err := decodeAny([]byte(body), true, want); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if *a != *wantA || *b != *wantB {
			t.Fatalf("%q: %+v and %+v, want %+v and %+v", body, *a, *b, *wantA, *wantB)
		}
	})
}

func FuzzPlainAgrees(f *testing.F) {
	f.Add([]byte(`{"a":"x","b":"y"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, b, members := twoTexts()
		if !decodePlain(body, members) {
			return
		}
		wantA, wantB, want := twoTexts()
		if err := decodeAny(body, true, want); err != nil || *a != *wantA || *b != *wantB {
			t.Fatalf("%q: %+v and %+v, want %+v and %+v, %v", body, *a, *b, *wantA, *wantB, err)
		}
	})
}
