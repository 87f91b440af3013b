package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	testSecret = "lks_test_7Q"
	testKeyID  = "key_01"
)

func testKey() Key { return Key{ID: testKeyID, Secrets: []string{testSecret}} }

var signedAt = time.Unix(1_900_000_000, 0)

// macOf returns the value of the header Signature for a base.
func macOf(secret, base string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(base))
	return ":" + base64.StdEncoding.EncodeToString(mac.Sum(nil)) + ":"
}

// get returns an unsigned request without a body.
func get() *Message {
	return &Message{
		Method:    "GET",
		TargetURI: "https://licenses.example.com/v1/orders/ord_1?a=%2F",
		Fields:    lines("Host: 10.0.0.7", "Authorization: Bearer lk_test_1"),
	}
}

// signedGet returns get with a signature of the given label and parameters.
func signedGet(label, params string) *Message {
	m := get()
	base := `"@method": GET
"@target-uri": https://licenses.example.com/v1/orders/ord_1?a=%2F
"authorization": Bearer lk_test_1
"@signature-params": ` + covered + params
	return m.with(label, covered+params, macOf(testSecret, base))
}

const covered = `("@method" "@target-uri" "authorization")`

// with adds a signature.
func (m *Message) with(label, input, mac string) *Message {
	m.Fields = append(m.Fields, lines("Signature-Input: "+label+"="+input, "Signature: "+label+"="+mac)...)
	return m
}

func params(created int64, more string) string {
	return fmt.Sprintf(`;created=%d;keyid="%s"%s`, created, testKeyID, more)
}

func TestTimes(t *testing.T) {
	at := signedAt.Unix()
	f := func(params string, now time.Time, problem string) {
		t.Helper()
		err := Verify(signedGet("sig1", params), testKey(), now)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s at %v: %v, want %q", params, now.Sub(signedAt), err, problem)
		}
	}
	const stale, expired = "created more than 300 seconds", "has expired"
	f(params(at, ""), signedAt, "")
	f(params(at, ""), signedAt.Add(MaxAge), "")
	f(params(at, ""), signedAt.Add(-MaxAge), "")
	f(params(at, ""), signedAt.Add(MaxAge+time.Millisecond), stale)
	f(params(at, ""), signedAt.Add(-MaxAge-time.Millisecond), stale)
	f(params(999_999_999_999_999, ""), signedAt, stale)
	f(params(-999_999_999_999_999, ""), signedAt, stale)
	f(params(at, fmt.Sprintf(";expires=%d", at+60)), signedAt.Add(60*time.Second), "")
	f(params(at, fmt.Sprintf(";expires=%d", at+60)), signedAt.Add(60*time.Second+time.Millisecond), expired)
	f(params(at, fmt.Sprintf(";expires=%d", at-1)), signedAt, expired)
	f(params(at, ";expires"), signedAt, "parameter expires must be")
	f(params(at, `;expires="2040"`), signedAt, "parameter expires must be")
	f(params(at, fmt.Sprintf(";expires=%d.0", at+60)), signedAt, "parameter expires must be")
	const needed = "parameter created must be"
	f(`;keyid="key_01"`, signedAt, needed)
	f(`;created;keyid="key_01"`, signedAt, needed)
	f(`;created="1900000000";keyid="key_01"`, signedAt, needed)
	f(`;created=1900000000.0;keyid="key_01"`, signedAt, needed)
	f(`;created=@1900000000;keyid="key_01"`, signedAt, needed)
	// The last of two parameters with one name counts, as in any structured field.
	f(`;created=1;keyid="key_01";created=1900000000`, signedAt,
		"does not match this request to https://licenses.example.com and")
}

func TestParameters(t *testing.T) {
	at := signedAt.Unix()
	f := func(problem string, m *Message) {
		t.Helper()
		err := Verify(m, testKey(), signedAt)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s\n%v, want %q", m.Fields, err, problem)
		}
	}
	good := func(more string) *Message { return signedGet("sig1", params(at, more)) }
	f("", good(""))
	f("", good(`;alg="hmac-sha256"`))
	f("", good(`;alg="hmac-sha256";nonce="8NS";tag="shop"`))
	f("", good(`;unheard-of`))
	f("", signedGet("*a.b_c-1", params(at, "")))
	f("parameter alg must be", good(`;alg="hmac-sha512"`))
	f("parameter alg must be", good(`;alg=hmac-sha256`))
	f("parameter alg must be", good(`;alg`))
	none := "no signature with the keyid of the API key, key_01"
	f(none, signedGet("sig1", fmt.Sprintf(`;created=%d;keyid="key_02"`, at)))
	f(none, signedGet("sig1", fmt.Sprintf(`;created=%d;keyid=key_01`, at)))
	f(none, signedGet("sig1", fmt.Sprintf(`;created=%d`, at)))
	f(none, get())

	// Signatures with another keyid may say anything; all signatures with ours must be valid.
	f("", good("").with("proxy", `("x-none");keyid="proxy"`, ":AAAA:"))
	f("", good("").with("proxy", `("@method");keyid="proxy";alg="ed25519"`, "1"))
	f("signature sig2: ", good("").with("sig2", covered+params(at, ""), ":AAAA:"))
	f("signature sig2: ", good("").with("sig2", covered+params(at, `;alg="ed25519"`), ":AAAA:"))
	f("does not match this request to https://licenses.example.com and",
		good("").with("sig1", covered+params(at, ""), ":AAAA:"))
	f("not a list of components", good("").with("sig2", `"@method"`, ":AAAA:"))
	f("not a list of components", good("").with("sig2", `"key_01";keyid="key_01"`, ":AAAA:"))
	many := good("")
	for i := range maxSignatures {
		many.with(fmt.Sprint("s", i), `();keyid="proxy"`, ":AAAA:")
	}
	f("more than 8 signatures", many)

	f("header Signature has no byte sequence", func() *Message {
		m := get()
		m.Fields = append(m.Fields, lines("Signature-Input: sig1="+covered+params(at, ""), "Signature: sig2=:AAAA:")...)
		return m
	}())
	f("header Signature has no byte sequence", get().with("sig1", covered+params(at, ""), `"AAAA"`))
	f("header Signature has no byte sequence", get().with("sig1", covered+params(at, ""), `(:AAAA:)`))
	f("Signature-Input is not a dictionary", get().with("sig1", `("@method"`, ":AAAA:"))
	f("Signature-Input is not a dictionary", get().with("Sig1", `()`, ":AAAA:"))
	f("header Signature is not a dictionary", get().with("sig1", `()`, ":A-A:"))
	f("does not match this request to https://licenses.example.com and",
		get().with("sig1", covered+params(at, ""), "::"))
	for _, missing := range []string{"@method", "@target-uri", "authorization"} {
		left := strings.Replace(strings.Replace(covered, `"`+missing+`"`, "", 1), "  ", " ", 1)
		f(fmt.Sprintf("it must cover %q", missing), get().with("sig1", left+params(at, ""), ":AAAA:"))
	}
	f(`it must cover "@method"`,
		get().with("sig1", `("@method";req "@target-uri" "authorization")`+params(at, ""), ":AAAA:"))
	f("has parameters",
		get().with("sig1", `("@method" "@target-uri" "authorization" "@method";req)`+params(at, ""), ":AAAA:"))
}

// TestSpacing: a signature covers the strict form of Signature-Input, so blanks in the header don't
// matter.
func TestSpacing(t *testing.T) {
	m := signedGet("sig1", params(signedAt.Unix(), ""))
	text := string(m.Fields)
	for old, spaced := range map[string]string{
		`sig1=("@method" "@target-uri"`: `sig1=(  "@method"   "@target-uri"`,
		`;created=`:                     `;   created=`,
		"Signature-Input: ":             "SIGNATURE-INPUT:\t ",
		"Signature: sig1":               "signature:sig1",
	} {
		text = strings.Replace(text, old, spaced, 1)
		if err := Verify(&Message{Method: m.Method, TargetURI: m.TargetURI, Fields: []byte(text)}, testKey(),
			signedAt); err != nil {
			t.Errorf("%s: %v", spaced, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	m := signedGet("sig1", params(signedAt.Unix(), ""))
	for _, c := range []struct {
		secrets []string
		good    bool
	}{
		{[]string{testSecret}, true},
		{[]string{"new", testSecret}, true},
		{[]string{testSecret, "old"}, true},
		{[]string{"new", "old"}, false},
		{[]string{""}, false},
		{nil, false},
	} {
		if err := Verify(m, Key{ID: testKeyID, Secrets: c.secrets}, signedAt); (err == nil) != c.good {
			t.Errorf("%q: %v", c.secrets, err)
		}
	}
}

// FuzzVerify puts anything into the headers that Verify parses. Verify accepts only a signature made with
// the secret.
func FuzzVerify(f *testing.F) {
	good := signedGet("sig1", params(signedAt.Unix(), ""))
	var seed [2]string
	for i, name := range []string{"signature-input", "signature"} {
		value, _ := good.appendField(nil, name)
		seed[i] = string(value)
	}
	digest := "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
	f.Add(seed[0], seed[1], digest, "")
	f.Add(seed[0]+", "+seed[0], seed[1], digest, `{"hello": "world"}`)
	f.Add(`sig1=();created=1900000000;keyid="key_01"`, "sig1=:AAAA:", "md5=1", "a")
	f.Add(`sig1=("@method" "@target-uri" "authorization" "content-digest");created=1900000000;keyid="key_01";expires=-1`, "sig1=:AAAA:", digest, "a")
	f.Add(`sig1=("a";bs;key="\"" b @1 %"é" ?0 1.5);keyid=key_01`, "sig1=?1", "sha-512=(", "")
	f.Fuzz(func(t *testing.T, input, signature, digest, body string) {
		m := get()
		m.Body = []byte(body)
		m.Fields = append(m.Fields,
			lines("Content-Digest: "+digest, "Signature-Input: "+input, "Signature: "+signature)...)
		// Without the last character, of which two bits are padding.
		mac := seed[1][len("sig1=:") : len(seed[1])-len("M=:")]
		if Verify(m, testKey(), signedAt) == nil && !strings.Contains(signature, mac) {
			t.Errorf("accepted:\n%s\n%s", m.Fields, m.Body)
		}
		_ = m.checkDigest()
	})
}
