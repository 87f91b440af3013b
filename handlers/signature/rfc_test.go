package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// rfcRequest returns the test-request of RFC 9421, B.2.
func rfcRequest() *Message {
	return &Message{
		Method:    "POST",
		TargetURI: "https://example.com/foo?param=Value&Pet=dog",
		Fields: lines(
			"Host: example.com",
			"Date: Tue, 20 Apr 2021 02:07:55 GMT",
			"Content-Type: application/json",
			"Content-Digest: "+
				"sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
			"Content-Length: 18",
		),
		Body: []byte(`{"hello": "world"}`),
	}
}

func lines(fields ...string) []byte { return []byte(strings.Join(fields, "\r\n") + "\r\n") }

// list parses the value of a label in Signature-Input.
func list(t testing.TB, text string) httpsfv.InnerList {
	t.Helper()
	d, err := httpsfv.UnmarshalDictionary([]string{"sig=" + text})
	if err != nil {
		t.Fatal(err)
	}
	member, _ := d.Get("sig")
	return member.(httpsfv.InnerList)
}

// TestBasesOfTheRFC: the signature bases of RFC 9421, B.2, that cover supported components.
func TestBasesOfTheRFC(t *testing.T) {
	const (
		date   = `"date": Tue, 20 Apr 2021 02:07:55 GMT` + "\n"
		digest = `"content-digest": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:` + "\n"
	)
	for _, c := range []struct{ section, covered, lines string }{
		{"B.2.1", `();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`, ""},
		{"B.2.2 but for @query-param",
			`("@authority" "content-digest");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"`,
			`"@authority": example.com` + "\n" + digest},
		{"B.2.3", `("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"`,
			date + `"@method": POST
"@path": /foo
"@query": ?param=Value&Pet=dog
"@authority": example.com
"content-type": application/json
` + digest + `"content-length": 18
`},
		{"B.2.5", `("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
			date + `"@authority": example.com
"content-type": application/json
`},
		{"B.2.6", `("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			date + `"@method": POST
"@path": /foo
"@authority": example.com
"content-type": application/json
"content-length": 18
`},
	} {
		base, err := rfcRequest().base(list(t, c.covered))
		if want := c.lines + `"@signature-params": ` + c.covered; err != nil || string(base) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.section, err, base, want)
		}
	}
}

// TestHMACOfTheRFC: the signature of RFC 9421, B.2.5.
func TestHMACOfTheRFC(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString(
		"uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==")
	if err != nil {
		t.Fatal(err)
	}
	m := rfcRequest()
	m.Fields = append(m.Fields, lines(
		`Signature-Input: sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
		`Signature: sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:`)...)
	inputs, err := m.dictionary("signature-input")
	if err != nil {
		t.Fatal(err)
	}
	covered, _ := inputs.Get("sig-b25")
	base, err := m.base(covered.(httpsfv.InnerList))
	if err != nil {
		t.Fatal(err)
	}
	signatures, err := m.dictionary("signature")
	if err != nil {
		t.Fatal(err)
	}
	want, ok := byteSequence(signatures, "sig-b25")
	mac := hmac.New(sha256.New, secret)
	mac.Write(base)
	if !ok || !hmac.Equal(mac.Sum(nil), want) {
		t.Errorf("the base is\n%s", base)
	}
}

// TestFieldsOfTheRFC: the fields of RFC 9421, 2.1, except the folded one, which the caller refuses.
func TestFieldsOfTheRFC(t *testing.T) {
	m := Message{Fields: lines(
		"Host: www.example.com",
		"Date: Tue, 20 Apr 2021 02:07:56 GMT",
		"X-OWS-Header:   Leading and trailing whitespace.   ",
		"Cache-Control: max-age=60",
		"CACHE-CONTROL:\t   must-revalidate \t",
		"Example-Dict:  a=1,    b=2;x=1;y=2,   c=(a   b   c)",
		"X-Empty-Header: ",
	)}
	for name, want := range map[string]string{
		"host":           "www.example.com",
		"date":           "Tue, 20 Apr 2021 02:07:56 GMT",
		"x-ows-header":   "Leading and trailing whitespace.",
		"cache-control":  "max-age=60, must-revalidate",
		"example-dict":   "a=1,    b=2;x=1;y=2,   c=(a   b   c)",
		"x-empty-header": "",
	} {
		base, err := m.base(list(t, `("`+name+`")`))
		if want := `"` + name + `": ` + want + "\n" + `"@signature-params": ("` + name + `")`; err != nil ||
			string(base) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, base, want)
		}
	}
}

// TestComponents: the components of RFC 9421, 2.2, and components that make the base fail.
func TestComponents(t *testing.T) {
	const plain, bare = "https://www.example.com/path?param=value", "https://www.example.com"
	f := func(uri, name, want string) {
		t.Helper()
		m := Message{Method: "GET", TargetURI: uri}
		if got, known := m.appendDerived(nil, name); !known || string(got) != want {
			t.Errorf("%s of %s is %q, want %q", name, uri, got, want)
		}
	}
	f(plain, "@method", "GET")
	f(plain, "@target-uri", plain)
	f(plain, "@authority", "www.example.com")
	f(plain, "@scheme", "https")
	f(plain, "@request-target", "/path?param=value")
	f(plain, "@path", "/path")
	f(plain, "@query", "?param=value")
	f(bare+"/a%2Fb/?", "@path", "/a%2Fb/")
	f(bare+"/a%2Fb/?", "@query", "?")
	f(bare+"/a", "@query", "?")
	f(bare+"/a?b?c", "@query", "?b?c")

	m := Message{Method: "GET", TargetURI: plain, Fields: lines("A: 1")}
	for covered, problem := range map[string]string{
		`("@status")`:                 "does not support component",
		`("@query-param";name="a")`:   "parameters",
		`("a";bs)`:                    "parameters",
		`("@method";req)`:             "parameters",
		`("a" "a")`:                   "twice",
		`("A")`:                       "lower case",
		`("b")`:                       "does not have",
		`("")`:                        "does not have",
		`("a: 1")`:                    "does not have",
		`("a\": 1")`:                  "does not have",
		`(a)`:                         "must be a string",
		`(1)`:                         "must be a string",
		`("@signature-params")`:       "does not support component",
		`("@Method")`:                 "lower case",
		`("a" "@method" "signature")`: "does not have",
	} {
		if base, err := m.base(list(t, covered)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q\n%s", covered, err, problem, base)
		}
	}
}

// TestDigests: the digests of RFC 9530, B, and of RFC 9421, B.2.
func TestDigests(t *testing.T) {
	const (
		lined, plain = "{\"hello\": \"world\"}\n", `{"hello": "world"}`
		lined256     = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
		lined512     = "sha-512=:" +
			"YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:"
		plain256 = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
		plain512 = "sha-512=:" +
			"WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"
		empty256 = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
	)
	check := func(body string, fields ...string) error {
		return (&Message{Fields: lines(fields...), Body: []byte(body)}).checkDigest()
	}
	good := func(body string, fields ...string) {
		t.Helper()
		if err := check(body, fields...); err != nil {
			t.Errorf("%v: %v", fields, err)
		}
	}
	good(lined, "Content-Digest: "+lined256)
	good(lined, "Content-Digest: "+lined512)
	good(lined, "content-digest: "+lined256+",  "+lined512)
	good(lined, "Content-Digest: "+lined256, "Content-Digest: "+lined512)
	good(plain, "Content-Digest: "+plain256)
	good(plain, "Content-Digest: "+plain512+";since=2024, md5=:AAAA:, unixsum=1")
	good("", "Content-Digest: "+empty256)

	bad := func(problem, body string, fields ...string) {
		t.Helper()
		if err := check(body, fields...); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v: %v, want %q", fields, err, problem)
		}
	}
	bad("does not match the body", lined, "Content-Digest: "+plain256)
	bad("does not match the body", "", "Content-Digest: "+plain256)
	bad("the sha-512 ", plain, "Content-Digest: "+plain256+", "+lined512)
	bad("does not match the body", plain, "Content-Digest: sha-256=:X48E:")
	bad("does not match the body", plain, "Content-Digest: sha-256="+`"X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="`)
	bad("does not match the body", plain, "Content-Digest: sha-256")
	bad("does not match the body", plain, "Content-Digest: sha-256=(:X48E:)")
	bad("neither", plain, "Content-Digest: md5=:Sd/dVLAcvNLSq16eXua5uQ==:")
	bad("neither", plain, "Content-Digest:")
	bad("neither", plain, "Repr-Digest: "+plain256)
	bad("not a dictionary", plain, "Content-Digest: SHA-256="+plain256)
	bad("not a dictionary", plain, "Content-Digest: sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=")
	bad("not a dictionary", plain, "Content-Digest: "+plain256+",")
}
