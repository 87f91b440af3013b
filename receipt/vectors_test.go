package receipt_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"licet/receipt"
)

var update = flag.Bool("update", false, "write the vectors anew")

const vectorsFile = "../testdata/receipts/vectors.json"

// vectors are documents that each client must accept or refuse, with the reason.
type vectors struct {
	About     string   `json:"about"`
	Root      string   `json:"root"`
	AccountID string   `json:"account_id"`
	Mode      string   `json:"mode"`
	ProductID string   `json:"product_id"`
	DeviceID  string   `json:"device_id"`
	Vectors   []vector `json:"vectors"`
}

type vector struct {
	Name  string       `json:"name"`
	Now   int64        `json:"now"`
	Grace int64        `json:"grace"` // in seconds
	Nonce string       `json:"nonce"` // of the request that the receipt must answer; empty: none
	Seen  receipt.Seen `json:"seen"`
	receipt.Documents
	Padding int           `json:"padding"` // so many characters A follow the receipt
	Want    string        `json:"want"`    // the reason; empty: accepted
	After   *receipt.Seen `json:"after"`   // what the device has seen then; null: nothing new
}

// TestVectors compares the file of vectors with what this package makes of them, and verifies each.
func TestVectors(t *testing.T) {
	made := makeVectors(t)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(made); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored, text.Bytes()) {
		t.Errorf("%s is not what this package makes: run go test ./receipt -update", vectorsFile)
	}
	var v vectors
	if err := json.Unmarshal(stored, &v); err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, each := range v.Vectors {
		t.Run(each.Name, func(t *testing.T) {
			got, after := verify(t, &v, &each)
			if got != each.Want {
				t.Errorf("the reason is %q, want %q", got, each.Want)
			}
			want := each.Seen
			if each.After != nil {
				want = *each.After
			}
			if !reflect.DeepEqual(after, want) {
				t.Errorf("the device has seen %+v, want %+v", after, want)
			}
		})
		if each.Want != "" {
			bad++
		}
	}
	if bad < 60 {
		t.Errorf("%d bad vectors, want at least 60", bad)
	}
}

func verify(t *testing.T, v *vectors, each *vector) (reason string, after receipt.Seen) {
	t.Helper()
	root, err := receipt.ParseRoot(v.Root)
	if err != nil {
		t.Fatal(err)
	}
	d := each.Documents
	d.Receipt += strings.Repeat("A", each.Padding)
	verifier := receipt.Verifier{Root: root, AccountID: v.AccountID, Mode: v.Mode, ProductID: v.ProductID,
		DeviceID: v.DeviceID, Grace: time.Duration(each.Grace) * time.Second, Nonce: each.Nonce}
	_, after, err = verifier.Verify(d, each.Seen, time.Unix(each.Now, 0))
	var refused *receipt.Error
	switch {
	case errors.As(err, &refused):
		return string(refused.Reason), after
	case err != nil:
		t.Fatal(err)
	}
	return "", after
}

// testKey returns a key that everybody knows.
func testKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("licet test key " + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// forge returns a document with any header and any content.
func forge(header, content string, key ed25519.PrivateKey) string {
	signed := text64(header) + "." + text64(content)
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(signed)))
}

func text64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// part returns a decoded part of a document.
func part(t *testing.T, document string, n int) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(document, ".")[n])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func must(t *testing.T) func(document string, err error) string {
	return func(document string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
}

// The moment of the vectors, 2030-01-02T03:04:05Z, and spans in seconds.
const (
	now  = 1893553445
	hour = 3600
	day  = 24 * hour
)

func makeVectors(t *testing.T) *vectors {
	t.Helper()
	sign := must(t)
	by := receipt.NewSigner
	root, key, next, foreign := testKey("root"), testKey("receipts"), testKey("next"), testKey("foreign")
	public := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	v := &vectors{
		About: "Documents that every client must accept or refuse; docs/reference/receipts.md explains the members. " +
			"go test ./receipt -update writes this file.",
		Root: receipt.FormatRoot(public(root)), AccountID: "acct_01", Mode: "live", ProductID: "editor",
		DeviceID: "device-1",
	}

	keysWith := func(change func(s *receipt.KeySet)) string {
		s := &receipt.KeySet{Issuer: "https://licenses.example.com", AccountID: v.AccountID, Mode: v.Mode,
			IssuedAt: now - day, ExpiresAt: now + 100*day,
			Keys: []receipt.JSONWebKey{receipt.NewJSONWebKey(public(key)), receipt.NewJSONWebKey(public(next))}}
		change(s)
		return sign(s.Sign(by(root)))
	}
	keys := keysWith(func(*receipt.KeySet) {})
	receiptOf := func(change func(r *receipt.Receipt)) *receipt.Receipt {
		ends := "2030-06-01T00:00:00.000Z"
		r := &receipt.Receipt{Issuer: "https://licenses.example.com", LicenseID: "lic_77vwt5zc5zqn856r8rb6xh0hgc",
			ProductID: v.ProductID, IssuedAt: now - hour, NotBefore: now - hour, ExpiresAt: now + 7*day, ID: "rcp_1",
			AccountID: v.AccountID, Mode: v.Mode, DeviceID: v.DeviceID, Status: "activated", MaxDevices: 3,
			Entitlements: map[string]json.RawMessage{"export": json.RawMessage("true"), "seats": json.RawMessage("5"),
				"edition": json.RawMessage(`"größte"`)},
			LicenseEndsAt: &ends, Revision: 7, RevocationsAge: day}
		change(r)
		return r
	}
	signed := func(change func(r *receipt.Receipt)) string { return sign(receiptOf(change).Sign(by(key))) }
	same := func(*receipt.Receipt) {}
	good := signed(same)
	head, content := part(t, good, 0), part(t, good, 1)
	listWith := func(change func(l *receipt.Revocations), entries ...receipt.Entries) string {
		l := &receipt.Revocations{Issuer: "https://licenses.example.com", AccountID: v.AccountID, Mode: v.Mode,
			AsOf: now - 60, Epoch: 40}
		for _, e := range entries {
			l.Entries = append(l.Entries, e...)
		}
		change(l)
		return sign(l.Sign(by(key)))
	}
	plain := func(*receipt.Revocations) {}
	entry := func(license, device string, revision int64) receipt.Entries {
		return receipt.Entries(nil).Append(receipt.RevocationName(license, device), revision)
	}
	const license = "lic_77vwt5zc5zqn856r8rb6xh0hgc"

	add := func(name, want string, change func(e *vector)) {
		e := vector{Name: name, Now: now, Want: want, Documents: receipt.Documents{Keys: keys, Receipt: good,
			Revocations: []string{}}}
		change(&e)
		if want == "" || want == "voided" || want == "stale" {
			_, after := verify(t, v, &e)
			e.After = &after
		}
		v.Vectors = append(v.Vectors, e)
	}
	use := func(document string) func(*vector) { return func(e *vector) { e.Receipt = document } }
	useKeys := func(document string) func(*vector) { return func(e *vector) { e.Keys = document } }
	useLists := func(documents ...string) func(*vector) { return func(e *vector) { e.Revocations = documents } }
	at := func(second int64) func(*vector) { return func(e *vector) { e.Now = second } }
	swap := func(text, old, new string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not contain %s", text, old)
		}
		return strings.Replace(text, old, new, 1)
	}

	// Accepted.
	add("a good receipt", "", func(*vector) {})
	add("signed with the second key of the set", "", use(sign(receiptOf(same).Sign(by(next)))))
	add("alg Ed25519 of RFC 9864", "", use(forge(swap(head, "EdDSA", "Ed25519"), content, key)))
	add("members of a later version", "", use(forge(swap(head, `{`, `{"later":{"a":[1]},`),
		swap(content, `{`, `{"later":[{"b":null}],`), key)))
	add("spaces in the JSON", "", use(forge(" "+head+"\n", "\t"+content+" ", key)))
	add("a second before its end", "", func(e *vector) {
		e.Now, e.Receipt = now+7*day-1, signed(func(r *receipt.Receipt) { r.RevocationsAge = 0 })
	})
	add("no entitlements, no end, no limit, no lists needed", "", use(signed(func(r *receipt.Receipt) {
		r.Entitlements, r.LicenseEndsAt, r.MaxDevices, r.RevocationsAge = nil, nil, 0, 0
	})))
	add("a lease, a grace and a trial", "", use(signed(func(r *receipt.Receipt) {
		end := "2030-01-02T04:04:05.000Z"
		r.LeaseEndsAt, r.GraceEndsAt, r.Trial, r.Status, r.ExpiresAt = &end, &end, true, "expired", now+hour
	})))
	add("a clock five minutes behind", "", at(now-hour-300))
	add("the newest seen, again", "", func(e *vector) {
		e.Seen = receipt.Seen{Time: now - hour, Keys: now - day, SeenLicense: seenOf(license, 7)}
	})
	add("of another license than the newest seen", "", func(e *vector) {
		e.Seen = receipt.Seen{Time: now - hour, Keys: now - day, SeenLicense: seenOf("lic_other", 900)}
	})
	add("a list without this license", "", useLists(listWith(plain, entry("lic_other", "", 900))))
	add("a list that voids an older revision", "", useLists(listWith(plain, entry(license, "", 6))))
	add("a list that voids another device", "", useLists(listWith(plain, entry(license, "device-2", 900))))
	add("a list and an increment", "", useLists(listWith(plain, entry(license, "", 5)),
		listWith(func(l *receipt.Revocations) { l.After, l.Epoch = 40, 41 }, entry(license, "", 6))))
	add("an old receipt with a fresh list", "", func(e *vector) {
		e.Receipt = signed(func(r *receipt.Receipt) { r.IssuedAt, r.NotBefore = now-3*day, now-3*day })
		e.Revocations = []string{listWith(plain)}
	})
	add("an old receipt within the application's grace", "", func(e *vector) {
		e.Receipt = signed(func(r *receipt.Receipt) { r.IssuedAt, r.NotBefore = now-3*day, now-3*day })
		e.Grace = 3 * day
	})

	// The form of a document.
	add("empty", "malformed", use(""))
	add("three empty parts", "malformed", use(".."))
	add("two parts", "malformed", use(good[:strings.LastIndex(good, ".")]))
	add("four parts", "malformed", use(good+".AA"))
	add("a line break at the end", "malformed", use(good+"\n"))
	add("a line break within", "malformed", use(good[:10]+"\r\n"+good[10:]))
	add("a space before", "malformed", use(" "+good))
	add("padding", "malformed", use(good+"=="))
	add("base64 with + and /", "malformed", use(swap(good, ".", "+.")))
	add("another encoding of the same signature", "malformed", use(good[:len(good)-1]+otherLast(good)))
	add("an empty signature", "signature", use(good[:strings.LastIndex(good, ".")+1]))
	add("a signature too long", "signature", use(good+"AAAA"))
	add("huge", "malformed", func(e *vector) { e.Padding = 70000 })
	add("a header that is no JSON", "malformed", use(forge("licet", content, key)))
	add("a header that is a list", "malformed", use(forge("["+head+"]", content, key)))
	add("content that is no JSON", "malformed", use(forge(head, "licet", key)))
	add("content that is null", "malformed", use(forge(head, "null", key)))
	add("content cut off", "malformed", use(forge(head, content[:len(content)-1], key)))
	add("data after the content", "malformed", use(forge(head, content+"{}", key)))
	add("data after the header", "malformed", use(forge(head+"1", content, key)))
	add("a header with a member twice", "malformed", use(forge(swap(head, `{`, `{"alg":"EdDSA",`), content, key)))
	add("content with a member twice", "malformed",
		use(forge(head, swap(content, `{`, `{"exp":9999999999,`), key)))
	add("an entitlement twice", "malformed", use(forge(head, swap(content, `"seats":5`, `"seats":5,"seats":500`), key)))
	add("a member's name in capitals", "malformed", use(forge(head, swap(content, `"exp"`, `"EXP"`), key)))
	add("a member twice, once with its name escaped", "malformed",
		use(forge(head, swap(content, `{`, `{"\u0065xp":9999999999,`), key)))
	add("not UTF-8", "malformed", use(forge(head, swap(content, "größte", "gr\xf6\xdfte"), key)))
	add("too deep", "malformed", use(forge(head,
		swap(content, `{`, `{"later":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`,`), key)))
	member := func(text string) func(*vector) { return use(forge(head, swap(content, `{`, `{`+text+`,`), key)) }
	headMember := func(text string) func(*vector) { return use(forge(swap(head, `{`, `{`+text+`,`), content, key)) }
	nested := func(levels int) string { // a list at each level below the object
		return `"later":` + strings.Repeat("[", levels) + strings.Repeat("]", levels)
	}
	add("eight levels", "", member(nested(8)))
	add("nine levels", "malformed", member(nested(9)))
	add("a number at the ninth level", "malformed", member(swap(nested(8), "[]", "[1]")))
	add("nine levels in the header", "malformed", headMember(nested(9)))
	add("a member twice in a member of a later version", "malformed", member(`"later":[{"a":1,"a":1}]`))
	add("a member __proto__ twice", "malformed", member(`"__proto__":{},"__proto__":{}`))
	add("a member __proto__", "", member(`"__proto__":{"exp":1}`))
	add("a member without a name", "", member(`"":1`))
	add("a pair of surrogates", "", use(forge(head, swap(content, "größte", `\ud83d\uDE00`), key)))
	for _, half := range []string{
		`\ud83d`, `\ude00`, `\ud83d\ud83d\ude00`, `\ud83d\u0041`, `\ud83d\\ude00`, `\\\ud83d`,
	} {
		add("half of a pair of surrogates, "+half, "malformed", use(forge(head, swap(content, "größte", half), key)))
	}
	add("no surrogate behind two backslashes", "", use(forge(head, swap(content, "größte", `\\ud83d`), key)))
	add("a surrogate in UTF-8", "malformed", use(forge(head, swap(content, "größte", "\xed\xa0\xbd"), key)))
	add("half of a pair of surrogates in the header", "malformed", headMember(`"later":"\ud83d"`))
	add("a byte order mark", "malformed", use(forge(head, "\ufeff"+content, key)))
	add("a line break within a text", "malformed", use(forge(head, swap(content, "größte", "a\nb"), key)))
	add("a form feed between members", "malformed", use(forge(head, swap(content, `,`, ",\f"), key)))
	add("a comma after the last member", "malformed", use(forge(head, content[:len(content)-1]+",}", key)))
	add("a number with a leading zero", "malformed", member(`"later":01`))
	add("NaN", "malformed", member(`"later":NaN`))
	add("numbers in members of a later version", "", member(`"later":[9007199254740993,1e999,-0.5,1E+2]`))
	add("a critical extension", "malformed", headMember(`"crit":["b64"],"b64":false`))
	add("a critical extension that is null", "malformed", headMember(`"crit":null`))
	for _, change := range [][2]string{
		{`"exp":1894158245`, `"exp":"1894158245"`},
		{`"nbf":1893549845`, `"nbf":1893549845.5`},
		{`"revision":7`, `"revision":-7`},
		{`"max_devices":3`, `"max_devices":[3]`},
		{`"sub":"` + license + `"`, `"sub":7`},
		{`"device_id":"device-1"`, `"device_id":["device-1"]`},
		{`"aud":"editor"`, `"aud":["editor","viewer"]`},
		{`"revocation_max_age":86400`, `"revocation_max_age":-1`},
		{`"trial":false`, `"trial":"no"`},
		{`"entitlements":{`, `"entitlements":7,"later":{`},
		{`"entitlements":{`, `"entitlements":[],"later":{`},
		{`"seats":5`, `"seats":false`},
		{`"seats":5`, `"seats":null`},
		{`"seats":5`, `"seats":{}`},
		{`"seats":5`, `"seats":5.0`},
		{`"seats":5`, `"seats":9007199254740992`},
		{`"max_devices":3`, `"max_devices":-1`},
		{`"max_devices":3`, `"max_devices":3e0`},
		{`"revision":7`, `"revision":0`},
		{`"revision":7`, `"revision":9007199254740992`},
		{`"exp":1894158245`, `"exp":9007199254740992`},
		{`"iat":1893549845`, `"iat":-9007199254740992`},
		{`"sub":"` + license + `"`, `"sub":""`},
		{`"aud":"editor"`, `"aud":""`},
		{`"account_id":"acct_01"`, `"account_id":""`},
		{`"mode":"live"`, `"mode":""`},
		{`"device_id":"device-1"`, `"device_id":""`},
		{`"license_expires_at":"2030-06-01T00:00:00.000Z"`, `"license_expires_at":1906502400`},
		{`"lease_expires_at":null`, `"lease_expires_at":{}`},
		{`"jti":"rcp_1"`, `"jti":1,"nonce":""`},
		{`"jti":"rcp_1"`, `"jti":"rcp_1","nonce":1`},
		{`"jti":"rcp_1"`, `"jti":"rcp_1","nonce":null`},
		{`"jti":"rcp_1"`, `"jti":"rcp_1","device_key":null`},
	} {
		add(change[1]+" in the place of "+change[0], "malformed",
			use(forge(head, swap(content, change[0], change[1]), key)))
	}
	add("the largest integers", "", use(signed(func(r *receipt.Receipt) {
		r.ExpiresAt, r.Revision, r.RevocationsAge = 1<<53-1, 1<<53-1, 1<<53-1
		r.Entitlements = map[string]json.RawMessage{"seats": json.RawMessage("-9007199254740991")}
	})))
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(content), &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		pair := `"` + name + `":` + string(members[name])
		add("without "+name, "malformed", use(forge(head, swap(content, pair, `"later":1`), key)))
		if string(members[name]) != "null" {
			want := "malformed"
			if name == "license_expires_at" {
				want = ""
			}
			add(name+" null", want, use(forge(head, swap(content, pair, `"`+name+`":null`), key)))
		}
	}
	add("an end before its begin", "malformed", use(signed(func(r *receipt.Receipt) { r.ExpiresAt = r.NotBefore - 1 })))
	add("an iat beyond 64 bits", "malformed",
		use(forge(head, swap(content, `"iat":1893549845`, `"iat":99999999999999999999`), key)))

	// Who signed it.
	add("alg none", "algorithm", use(text64(swap(head, "EdDSA", "none"))+"."+text64(content)+"."))
	add("alg None with a signature", "algorithm", use(forge(swap(head, "EdDSA", "None"), content, key)))
	add("alg HS256", "algorithm", use(forge(swap(head, "EdDSA", "HS256"), content, key)))
	add("alg ES256", "algorithm", use(forge(swap(head, "EdDSA", "ES256"), content, key)))
	add("alg in other letters", "algorithm", use(forge(swap(head, "EdDSA", "eddsa"), content, key)))
	var header map[string]string
	if err := json.Unmarshal([]byte(head), &header); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alg", "kid", "typ"} {
		pair := `"` + name + `":"` + header[name] + `"`
		for _, value := range []string{`null`, `1`, `["EdDSA"]`} {
			other := `"` + name + `":` + value
			add("a header with "+other, "malformed", use(forge(swap(head, pair, other), content, key)))
		}
		add("a header without "+name, "malformed", use(forge(swap(head, pair, `"later":1`), content, key)))
	}
	add("an empty kid", "key", use(forge(swap(head, header["kid"], ""), content, key)))
	add("the kid with a character more", "key", use(forge(swap(head, header["kid"], header["kid"]+"A"), content, key)))
	add("a list of revocations in the place of a receipt", "type", use(listWith(plain)))
	add("a set of keys in the place of a receipt", "type", use(keys))
	add("another typ", "type", use(forge(swap(head, "licet-receipt+jwt", "JWT"), content, key)))
	add("signed by the root key itself", "key", use(sign(receiptOf(same).Sign(by(root)))))
	add("signed by a key that is not in the set", "key", use(sign(receiptOf(same).Sign(by(foreign)))))
	add("a kid of the set, signed by another key", "signature", use(forge(head, content, foreign)))
	add("its own key in the header", "key", use(forge(swap(part(t, sign(receiptOf(same).Sign(by(foreign))), 0), `{`,
		`{"jwk":{"kty":"OKP","crv":"Ed25519","x":"AA"},`), content, foreign)))
	add("a member altered", "signature", use(strings.Split(good, ".")[0]+"."+
		text64(swap(content, `"max_devices":3`, `"max_devices":9`))+"."+strings.Split(good, ".")[2]))
	add("a space added", "signature", use(strings.Split(good, ".")[0]+"."+text64(content+" ")+"."+
		strings.Split(good, ".")[2]))
	add("the header altered", "signature", use(text64(head+" ")+good[strings.Index(good, "."):]))
	another := signed(func(r *receipt.Receipt) { r.ID = "rcp_2" })
	add("the signature of another receipt", "signature",
		use(good[:strings.LastIndex(good, ".")]+another[strings.LastIndex(another, "."):]))
	add("a bit of the signature turned", "signature", use(turned(t, good)))
	add("the signature plus the order of the curve", "signature", use(stretched(t, good)))

	// For whom, and when.
	add("of another account", "audience", use(signed(func(r *receipt.Receipt) { r.AccountID = "acct_02" })))
	add("of the test mode", "audience", use(signed(func(r *receipt.Receipt) { r.Mode = "test" })))
	add("of another product", "audience", use(signed(func(r *receipt.Receipt) { r.ProductID = "viewer" })))
	add("of another device", "device", use(signed(func(r *receipt.Receipt) { r.DeviceID = "device-2" })))
	answer := signed(func(r *receipt.Receipt) { r.Nonce = "nonce-1" })
	add("the answer to the request", "", func(e *vector) { e.Receipt, e.Nonce = answer, "nonce-1" })
	add("the answer to a request, later", "", use(answer))
	add("the answer to another request", "nonce", func(e *vector) { e.Receipt, e.Nonce = answer, "nonce-2" })
	add("no answer to the request", "nonce", func(e *vector) { e.Nonce = "nonce-1" })
	add("another nonce and another device", "device", func(e *vector) {
		e.Nonce, e.Receipt = "nonce-1", signed(func(r *receipt.Receipt) { r.DeviceID = "device-2" })
	})
	add("another nonce, and at its end", "nonce", func(e *vector) { e.Nonce, e.Now = "nonce-1", now+7*day })
	add("of a device in capitals", "device", use(signed(func(r *receipt.Receipt) { r.DeviceID = "DEVICE-1" })))
	add("at its end", "expired", at(now+7*day))
	add("long after its end", "expired", at(now+50*day))
	add("six minutes from the future", "not_yet_valid", use(signed(func(r *receipt.Receipt) {
		r.IssuedAt, r.NotBefore = now+360, now+360
	})))
	add("valid from tomorrow", "not_yet_valid", use(signed(func(r *receipt.Receipt) { r.NotBefore = now + day })))
	add("older than the newest seen", "older", func(e *vector) {
		e.Seen = receipt.Seen{Time: now - hour, SeenLicense: seenOf(license, 8)}
	})
	add("a clock set back behind a time seen", "clock_set_back", func(e *vector) {
		e.Seen = receipt.Seen{Time: now + day, SeenLicense: seenOf(license, 7)}
	})
	add("older than the newest seen, and the clock set back", "older", func(e *vector) {
		e.Seen = receipt.Seen{Time: now + day, SeenLicense: seenOf(license, 8)}
	})
	for _, status := range []string{"revoked", "suspended"} {
		add("of a license that is "+status, "voided", use(signed(func(r *receipt.Receipt) { r.Status = status })))
	}
	add("of a status of a later version", "", use(signed(func(r *receipt.Receipt) { r.Status = "later" })))
	add("of a license that has ended, before the end of the receipt", "", use(signed(func(r *receipt.Receipt) {
		end := "2030-01-01T00:00:00.000Z"
		r.LicenseEndsAt, r.Status = &end, "expired"
	})))
	for _, bound := range []struct {
		name, want string
		age        int64
	}{{"a second younger than", "", day - 1}, {"as old as", "stale", day}, {"older than", "stale", 2 * day}} {
		add(bound.name+" revocation_max_age, without a list", bound.want, use(signed(func(r *receipt.Receipt) {
			r.IssuedAt, r.NotBefore = now-bound.age, now-bound.age
		})))
		add(bound.name+" revocation_max_age, with a list", bound.want, func(e *vector) {
			e.Receipt = signed(func(r *receipt.Receipt) { r.IssuedAt, r.NotBefore = now-3*day, now-3*day })
			e.Revocations = []string{listWith(func(l *receipt.Revocations) { l.AsOf = now - bound.age })}
		})
		add(bound.name+" revocation_max_age and the application's grace", bound.want, func(e *vector) {
			then := now - hour - bound.age
			e.Receipt = signed(func(r *receipt.Receipt) { r.IssuedAt, r.NotBefore = then, then })
			e.Grace = hour
		})
	}

	// The set of keys.
	keysHead, keysContent := part(t, keys, 0), part(t, keys, 1)
	add("no set of keys", "malformed", useKeys(""))
	add("a set signed by another root", "key", useKeys(forge(swap(keysHead, receipt.KeyID(public(root)),
		receipt.KeyID(public(foreign))), keysContent, foreign)))
	add("a forged set under the root's kid", "signature", useKeys(forge(keysHead, keysContent, foreign)))
	add("a set signed by a receipt key", "key", useKeys(forge(swap(keysHead, receipt.KeyID(public(root)),
		receipt.KeyID(public(key))), keysContent, key)))
	add("a receipt in the place of the set", "type", useKeys(sign(receiptOf(same).Sign(by(root)))))
	add("a set of another account", "audience", useKeys(keysWith(func(s *receipt.KeySet) { s.AccountID = "acct_02" })))
	add("a set of the test mode", "audience", useKeys(keysWith(func(s *receipt.KeySet) { s.Mode = "test" })))
	add("a set that has ended", "expired", useKeys(keysWith(func(s *receipt.KeySet) { s.ExpiresAt = now })))
	add("a set from the future", "not_yet_valid",
		useKeys(keysWith(func(s *receipt.KeySet) { s.IssuedAt = now + hour })))
	add("a set older than the newest seen", "older", func(e *vector) { e.Seen = receipt.Seen{Keys: now - hour} })
	add("a set without the receipt's key", "key", useKeys(keysWith(func(s *receipt.KeySet) { s.Keys = s.Keys[1:] })))
	add("a key under a wrong kid", "key", useKeys(keysWith(func(s *receipt.KeySet) {
		s.Keys = []receipt.JSONWebKey{receipt.NewJSONWebKey(public(foreign))}
		s.Keys[0].ID = receipt.KeyID(public(key))
	})))
	add("a key on another curve", "key", useKeys(keysWith(func(s *receipt.KeySet) { s.Keys[0].Curve = "X25519" })))
	add("a set with a member twice", "malformed",
		useKeys(forge(keysHead, swap(keysContent, `{`, `{"exp":1993553445,`), root)))
	add("a set without keys", "malformed",
		useKeys(keysWith(func(s *receipt.KeySet) { s.Keys = []receipt.JSONWebKey{} })))
	add("a set with one key", "", useKeys(keysWith(func(s *receipt.KeySet) { s.Keys = s.Keys[:1] })))
	many := func(n int) func(*receipt.KeySet) {
		return func(s *receipt.KeySet) {
			for len(s.Keys) < n {
				s.Keys = append(s.Keys, receipt.NewJSONWebKey(public(testKey(strconv.Itoa(len(s.Keys))))))
			}
		}
	}
	add("a set with 16 keys", "", useKeys(keysWith(many(16))))
	add("a set with 17 keys", "malformed", useKeys(keysWith(many(17))))
	add("a set with a key twice", "malformed",
		useKeys(keysWith(func(s *receipt.KeySet) { s.Keys = append(s.Keys, s.Keys[0]) })))
	add("a set with another key under the same kid", "malformed", useKeys(keysWith(func(s *receipt.KeySet) {
		s.Keys[1].ID = s.Keys[0].ID
	})))
	add("a set with two keys of the same unusual kid", "malformed", useKeys(keysWith(func(s *receipt.KeySet) {
		s.Keys = append(s.Keys, receipt.JSONWebKey{ID: "a"}, receipt.JSONWebKey{ID: "a"})
	})))
	add("a set with an unusable key besides", "", useKeys(keysWith(func(s *receipt.KeySet) {
		s.Keys = append(s.Keys, receipt.JSONWebKey{Type: "later", ID: "a"})
	})))
	add("a set that ends before it begins", "malformed",
		useKeys(keysWith(func(s *receipt.KeySet) { s.ExpiresAt = s.IssuedAt })))
	x := `"x":"` + strings.Split(keysContent, `"x":"`)[1][:43] + `"`
	for _, change := range [][2]string{
		{`"keys":[{`, `"keys":null,"later":[{`},
		{`"keys":[{`, `"keys":{},"later":[{`},
		{`"keys":[{`, `"keys":[null,{`},
		{`"keys":[{`, `"keys":["a",{`},
		{`"keys":[{`, `"keys":[{"later":1,"later":1,`},
		{`"kty":"OKP"`, `"later":1`},
		{`"crv":"Ed25519"`, `"crv":null`},
		{x, `"x":1`},
		{x, `"later":1`},
		{`"kid":"`, `"kid":1,"later":"`},
		{`"iss":"https://licenses.example.com"`, `"later":1`},
		{`"iss":"https://licenses.example.com"`, `"iss":null`},
		{`"exp":1902193445`, `"exp":9007199254740992`},
	} {
		add("a set with "+change[1]+" in the place of "+change[0], "malformed",
			useKeys(forge(keysHead, swap(keysContent, change[0], change[1]), root)))
	}
	add("members of keys that clients ignore", "",
		useKeys(forge(keysHead, swap(keysContent, `"use":"sig"`, `"use":5,"later":null`), root)))
	for _, change := range [][2]string{
		{x, x[:20] + `\n` + x[20:]}, {x, x[:20] + `\r\n` + x[20:]}, {x, x[:len(x)-1] + `="`}, {x, x[:len(x)-1] + `\n"`},
		{x, x[:len(x)-2] + otherLast(x[:len(x)-1]) + `"`}, {x, `"x":"AA"`},
	} {
		add("a set with "+change[1], "key", useKeys(forge(keysHead, swap(keysContent, change[0], change[1]), root)))
	}
	add("a key that is no point of the curve", "signature", func(e *vector) {
		none := receipt.NewJSONWebKey(append([]byte{2}, make([]byte, 31)...))
		e.Keys = keysWith(func(s *receipt.KeySet) { s.Keys[0] = none })
		e.Receipt = forge(swap(head, header["kid"], none.ID), content, key)
	})

	// Lists of revocations.
	add("the license is revoked", "voided", useLists(listWith(plain, entry(license, "", 7))))
	add("the device is removed", "voided", useLists(listWith(plain, entry(license, "device-1", 8))))
	add("revoked in an increment", "voided", useLists(listWith(plain),
		listWith(func(l *receipt.Revocations) { l.After, l.Epoch = 40, 41 }, entry(license, "", 7))))
	add("revoked in the list, an older revision in the increment", "voided", useLists(
		listWith(plain, entry(license, "", 9)),
		listWith(func(l *receipt.Revocations) { l.After, l.Epoch = 40, 41 }, entry(license, "", 6))))
	add("an increment alone", "older", useLists(listWith(func(l *receipt.Revocations) { l.After = 39 })))
	add("an increment that leaves a gap", "older", useLists(listWith(plain),
		listWith(func(l *receipt.Revocations) { l.After, l.Epoch = 41, 42 })))
	add("a list older than the newest seen", "older", func(e *vector) {
		e.Seen, e.Revocations = receipt.Seen{Epoch: 41}, []string{listWith(plain)}
	})
	add("no list, though one was seen", "older", func(e *vector) { e.Seen = receipt.Seen{Epoch: 40} })
	add("a list from the future", "not_yet_valid",
		useLists(listWith(func(l *receipt.Revocations) { l.AsOf = now + hour })))
	add("a list of another account", "audience",
		useLists(listWith(func(l *receipt.Revocations) { l.AccountID = "acct_02" })))
	add("a forged list", "signature",
		useLists(forge(part(t, listWith(plain), 0), part(t, listWith(plain), 1), foreign)))
	add("a receipt in the place of a list", "type", useLists(good))
	add("revoked up to the largest revision", "voided", useLists(listWith(plain, entry(license, "", -1))))
	add("revoked up to a revision of 2^63", "voided", useLists(listWith(plain, entry(license, "", -1<<63))))
	add("revoked, and older than revocation_max_age", "voided", func(e *vector) {
		e.Receipt = signed(func(r *receipt.Receipt) { r.IssuedAt, r.NotBefore = now-3*day, now-3*day })
		e.Revocations = []string{listWith(func(l *receipt.Revocations) { l.AsOf = now - 2*day }, entry(license, "", 7))}
	})
	add("revoked, after newer documents of another license", "voided", func(e *vector) {
		e.Seen = receipt.Seen{Time: now - 30, Keys: now - 2*day, SeenLicense: seenOf("lic_other", 900), Epoch: 39,
			Earlier: []receipt.SeenLicense{seenOf(license, 7)}}
		e.Revocations = []string{listWith(plain, entry(license, "", 7))}
	})
	add("an increment without entries at the same epoch", "", useLists(listWith(plain),
		listWith(func(l *receipt.Revocations) { l.After = 40 })))
	add("two whole lists", "", useLists(listWith(plain), listWith(plain)))
	later := func(after, epoch int64) func(*receipt.Revocations) {
		return func(l *receipt.Revocations) { l.After, l.Epoch = after, epoch }
	}
	add("a list of the newest epoch seen, from before", "older", func(e *vector) {
		e.Seen, e.Revocations = receipt.Seen{Epoch: 40, AsOf: now - 59}, []string{listWith(plain)}
	})
	add("a list of a later epoch, from before the newest list seen", "older", func(e *vector) {
		e.Seen = receipt.Seen{Epoch: 40, AsOf: now - 59}
		e.Revocations = []string{listWith(func(l *receipt.Revocations) { l.Epoch = 41 })}
	})
	add("an increment from before the newest list seen", "older", func(e *vector) {
		e.Seen = receipt.Seen{Epoch: 41, AsOf: now - 59}
		e.Revocations = []string{listWith(plain), listWith(later(40, 41))}
	})
	add("no list, though an empty one was seen", "older", func(e *vector) { e.Seen = receipt.Seen{AsOf: now - 60} })
	add("the newest list seen, again", "", func(e *vector) {
		e.Seen, e.Revocations = receipt.Seen{Epoch: 40, AsOf: now - 60}, []string{listWith(plain)}
	})
	add("a later list of the newest epoch seen", "", func(e *vector) {
		e.Seen, e.Revocations = receipt.Seen{Epoch: 40, AsOf: now - 61}, []string{listWith(plain)}
	})
	add("revoked, by a list from before the newest list seen", "older", func(e *vector) {
		e.Seen, e.Revocations = receipt.Seen{Epoch: 40, AsOf: now}, []string{listWith(plain, entry(license, "", 7))}
	})
	add("an increment that begins before the end of the list", "", useLists(listWith(plain, entry(license, "", 5)),
		listWith(later(20, 41), entry(license, "", 6))))
	add("revoked in an increment that begins before the end of the list", "voided", useLists(listWith(plain),
		listWith(later(20, 41), entry(license, "", 7))))
	add("revoked in the list, before an increment that begins before its end", "voided", useLists(
		listWith(plain, entry(license, "", 7)), listWith(later(20, 41))))
	add("an increment that ends before the list", "older", useLists(listWith(plain), listWith(later(20, 39))))
	add("an increment that begins before the end of the list, alone", "older", useLists(listWith(later(20, 41))))
	add("an increment from before the list", "older", useLists(listWith(plain),
		listWith(func(l *receipt.Revocations) { l.After, l.Epoch, l.AsOf = 40, 41, now-61 })))
	add("an empty list of the beginning", "",
		useLists(listWith(func(l *receipt.Revocations) { l.Epoch = 0 })))
	addSeenVectors(add, license)
	listHead, listContent := part(t, listWith(plain), 0), part(t, listWith(plain, entry(license, "", 6)), 1)
	first := listContent[strings.Index(listContent, `"entries":"`):][:20]
	for _, change := range [][2]string{
		{first, first + `\n`}, {first, first + `\r\n`}, {first, first + ` `}, {first, first + `=`},
		{first, first + `+`},
		{`"entries":"`, `"entries":null,"later":"`}, {`"entries":"`, `"entries":[],"later":"`},
		{`"entries":"`, `"later":"`},
		{`"after":0`, `"after":41`}, {`"after":0`, `"after":-1`}, {`"after":0`, `"after":null`}, {`"after":0,`, ``},
		{`"epoch":40`, `"epoch":9007199254740992`}, {`"epoch":40`, `"epoch":null`}, {`"epoch":40`, `"epoch":"40"`},
		{`"as_of":1893553385`, `"as_of":0`}, {`"as_of":1893553385`, `"as_of":null`},
	} {
		add("a list with "+change[1]+" in the place of "+change[0], "malformed",
			useLists(forge(listHead, swap(listContent, change[0], change[1]), key)))
	}
	add("a list with an entry twice", "malformed",
		useLists(listWith(plain, entry(license, "", 6), entry(license, "", 7))))
	add("a list with entries out of order", "malformed", useLists(forge(part(t, listWith(plain), 0),
		swap(part(t, listWith(plain), 1), `"entries":""`, `"entries":"`+strings.Repeat("A", 64)+`"`), key)))
	add("a list with half an entry", "malformed", useLists(forge(part(t, listWith(plain), 0),
		swap(part(t, listWith(plain), 1), `"entries":""`, `"entries":"AAAA"`), key)))
	return v
}

// otherLast returns a last character that encodes the same bytes, if unused bits do not count.
func otherLast(document string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, document[len(document)-1])^1])
}

// turned returns a document with one bit of its signature turned.
func turned(t *testing.T, document string) string {
	t.Helper()
	from := strings.LastIndex(document, ".") + 1
	raw := []byte(part(t, document, 2))
	raw[20] ^= 1
	return document[:from] + base64.RawURLEncoding.EncodeToString(raw)
}

// stretched returns a document whose signature has the number S beyond the order of the curve: lax verifiers take it.
func stretched(t *testing.T, document string) string {
	t.Helper()
	from := strings.LastIndex(document, ".") + 1
	raw := []byte(part(t, document, 2))
	s := raw[32:] // little-endian
	slices.Reverse(s)
	order, _ := new(big.Int).SetString("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed", 16)
	order.Add(order, new(big.Int).SetBytes(s)).FillBytes(s)
	slices.Reverse(s)
	return document[:from] + base64.RawURLEncoding.EncodeToString(raw)
}

// TestVectorsNameEachReason: no reason is without a vector.
func TestVectorsNameEachReason(t *testing.T) {
	found := map[string]bool{}
	for _, each := range makeVectors(t).Vectors {
		found[each.Want] = true
	}
	want := map[string]bool{"": true}
	for _, r := range []receipt.Reason{receipt.Malformed, receipt.Algorithm, receipt.Type, receipt.UnknownKey,
		receipt.Signature, receipt.Audience, receipt.Device, receipt.Nonce, receipt.NotYetValid,
		receipt.Expired, receipt.ClockSetBack, receipt.Older, receipt.Stale, receipt.Voided} {
		want[string(r)] = true
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("vectors have the reasons %v, want %v", found, want)
	}
}
