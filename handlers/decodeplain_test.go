package handlers

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// twoTexts is a body of two strings and a flag; the last member is neither.
type twoTexts struct {
	A text    `json:"a"`
	B text    `json:"b"`
	F flag    `json:"f"`
	N integer `json:"n"`
}

func plainTexts(body string) (in twoTexts, plain bool) {
	plain = decodePlain([]byte(body), compile(reflect.TypeFor[twoTexts]()), reflect.ValueOf(&in).Elem())
	return in, plain
}

func anyTexts(body string) (in twoTexts, err error) {
	err = decodeAny([]byte(body), true, compile(reflect.TypeFor[twoTexts]()), &in)
	return in, err
}

func TestPlainBodies(t *testing.T) {
	t.Parallel()
	f := func(body string, want bool) {
		t.Helper()
		in, got := plainTexts(body)
		if got != want {
			t.Errorf("%s: %v", body, got)
		}
		if !want && in != (twoTexts{}) {
			t.Errorf("%s: left %+v", body, in)
		}
	}
	f(`{}`, true)
	f(" {\t} \n", true)
	f(`{"a":"x"}`, true)
	f(`{"a":""}`, true)
	f(`{"f":true}`, true)
	f(" { \"f\" :\tfalse ,\"a\":\"true\"}", true)
	f(" { \"b\" :\r\"caf\u00e9\" , \"a\":\"\"}\t", true)
	for _, body := range []string{
		``, ` `, `{`, `}`, `{,}`, `[]`, `null`, `"a"`, `{"a"}`, `{"a":}`, `{"a":"x"`, `{"a":"x",}`, `{,"a":"x"}`,
		`{"a":"x" "b":"y"}`, `{"a" "x"}`, `{"a":"x"};`, `{"a":"x"}{}`, `{"a":"x"}}`, `{"a":"x"`, `{"a":"x`,
		`{"a":"x"}x`,
		`{"a":"x","a":"x"}`, `{"a":"","a":""}`, `{"c":"x"}`, `{"A":"x"}`, `{"":"x"}`, `{"a":1}`, `{"a":null}`,
		`{"a":{}}`, `{"n":"1"}`, `{"n":1}`, `{"n":true}`,
		`{"a":true}`, `{"f":"true"}`, `{"f":null}`, `{"f":1}`, `{"f":tru}`, `{"f":True}`, `{"f":truefalse}`, `{"f":truex}`,
		`{"f":true,"f":true}`, `{"f":true`, `{"f":tru`, `{"f":`, `{"f":true "a":"x"}`, `{true:"x"}`,
		`{"a":"\n"}`, `{"\u0061":"x"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", "{\"a\":\"\xff\"}",
		"{\"a\":\"\xed\xa0\x80\"}",
		"\ufeff{}", "{}\x00", "\v{}", "{\u00a0}",
	} {
		f(body, false)
	}
}

// TestPlainActivations: what programs send with most activations is plain.
func TestPlainActivations(t *testing.T) {
	t.Parallel()
	of := compile(reflect.TypeFor[activationRequest]())
	for _, members := range []string{
		"", `,"device_name":"PC"`, `,"receipt":true`, `,"receipt":true,"nonce":"n","product_id":"p"`,
	} {
		body := `{"license_key":"k","device_id":"d"` + members + "}"
		if !decodePlain([]byte(body), of, reflect.ValueOf(new(activationRequest)).Elem()) {
			t.Errorf("%s is not plain", body)
		}
	}
}

// TestPlainAgrees: the decoder accepts every body that decodePlain accepts, and reads the same from it.
func TestPlainAgrees(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ":", ",", `"a"`, `"b"`, `"n"`, `"c"`, `"a":"x"`, `"b":"y"`, `,"b":"z"`, `"`, `\`, `\"`, "1",
		`"f"`, `"f":true`, `,"f":false`, "true", "false", "null",
		" ", "\n", "\t", "\r", "\v", "\x00", "\x1f", "\x7f", "\x80", "\xff", "\u00e9", "\u2028", "\ufffd", "\ufeff",
		"\U0001f600", "\xed\xa0\x80",
	})
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(pieces, 0, 9).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "framed") {
			body = `{"a":"` + body + `"}`
		}
		got, plain := plainTexts(body)
		if !plain {
			return
		}
		if want, err := anyTexts(body); err != nil || got != want {
			t.Fatalf("%q: %+v, want %+v, %v", body, got, want, err)
		}
	})
}

func FuzzPlainAgrees(f *testing.F) {
	f.Add([]byte(`{"a":"x","b":"y"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, plain := plainTexts(string(body))
		if !plain {
			return
		}
		if want, err := anyTexts(string(body)); err != nil || got != want {
			t.Fatalf("%q: %+v, want %+v, %v", body, got, want, err)
		}
	})
}
