package licensing_test

import (
	"strings"
	"testing"
	"time"

	"licet/licensing"
)

func TestParseEntitlements(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                            ``,
		`{"b":true,"a":-0,"c-._9":"x"}`: `{"a":0,"b":true,"c-._9":"x"}`,
		`{"a":"\u0041<"}`:               `{"a":"A<"}`,
		`{"a":9007199254740991}`:        `{"a":9007199254740991}`,
		`{"a":{"value":1}}`:             `{"a":1}`,
		`{"a":{"expires_at":"2030-01-02T03:04:05.6789+02:00","value":true}}`: `{"a":{"value":true,` +
			`"expires_at":"2030-01-02T01:04:05.678Z"}}`,
		`{"a":{"value":"x","validity":"P2W"}}`: `{"a":{"value":"x","validity":"P14D"}}`,
	} {
		got, err := licensing.ParseEntitlements("entitlements", in, false)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
		again, err := licensing.ParseEntitlements("entitlements", object(string(got)), true)
		if err != nil || again != got {
			t.Errorf("%s again: %s, %v", got, again, err)
		}
	}
	long := strings.Repeat("x", 255)
	if _, err := licensing.ParseEntitlements("e", `{"`+long[:64]+`":"`+long+`"}`, false); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		`[]`, `{"A":true}`, `{"":true}`, `{"` + long[:65] + `":true}`, `{"a b":true}`, `{"a":null}`, `{"a":false}`,
		`{"a":1.5}`, `{"a":1e3}`, `{"a":9007199254740992}`, `{"a":"` + long + `y"}`, `{"a":[]}`, `{"a":{}}`,
		`{"a":{"value":{}}}`, `{"a":{"value":true,"end":"x"}}`, `{"a":{"value":true,"expires_at":"tomorrow"}}`,
		`{"a":{"value":true,"expires_at":1}}`, `{"a":{"value":true,"expires_at":"0001-01-01T00:00:00Z"}}`,
		`{"a":{"value":true,"validity":"1Y"}}`,
		`{"a":{"value":true,"validity":"P1Y","expires_at":"2030-01-01T00:00:00Z"}}`,
	} {
		if got, err := licensing.ParseEntitlements("e", bad, false); licensing.ReasonOf(err) !=
			licensing.ReasonInvalidField {
			t.Errorf("%s: %s, %v", bad, got, err)
		}
	}
	many := "{"
	for i := range licensing.MaxEntitlements + 1 {
		many += `"c` + strings.Repeat("0", i%60) + string(rune('a'+i%26)) + `":1,`
	}
	if _, err := licensing.ParseEntitlements("e", many[:len(many)-1]+"}", false); err == nil {
		t.Error("65 codes are accepted")
	}
}

// own returns a license's own entitlements that were set at noon.
func own(t *testing.T, object string) licensing.Entitlements {
	t.Helper()
	parsed, err := licensing.ParseEntitlements("entitlements", object, true)
	if err != nil {
		t.Fatal(err)
	}
	set, err := licensing.NewOwnEntitlements(parsed, noon)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestEntitled(t *testing.T) {
	for _, test := range []struct {
		product, own string
		after        time.Duration // of the issue, at noon
		want         string
	}{
		{``, ``, 0, ``},
		{`{"a":true,"n":3}`, ``, 0, `{"a":true,"n":3}`},
		{`{"a":true,"n":3}`, `{"n":5,"x":"y"}`, 0, `{"a":true,"n":5,"x":"y"}`},
		{`{"a":true,"n":3}`, `{"a":null}`, 0, `{"n":3}`},
		{``, `{"a":null}`, 0, ``},
		{`{"a":{"value":1,"validity":"P1D"}}`, ``, day - 1, `{"a":1}`},
		{`{"a":{"value":1,"validity":"P1D"}}`, ``, day, ``},
		{``, `{"a":{"value":1,"validity":"P1D"},"b":2}`, day, `{"b":2}`},
		{`{"a":3}`, `{"a":{"value":9,"validity":"P1D"}}`, day - 1, `{"a":9}`},
		{`{"a":3}`, `{"a":{"value":9,"validity":"P1D"}}`, day, `{"a":3}`}, // its own has ended
	} {
		product, err := licensing.ParseEntitlements("entitlements", object(test.product), false)
		if err != nil {
			t.Fatal(err)
		}
		below, err := product.Parse()
		if err != nil {
			t.Fatal(err)
		}
		on, err := own(t, object(test.own)).Parse()
		if err != nil {
			t.Fatal(err)
		}
		if got := on.Over(below).At(noon, noon.Add(test.after)); got != test.want {
			t.Errorf("%s and %s after %v: %s, want %s", test.product, test.own, test.after, got, test.want)
		}
	}
}

func object(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}

func TestUpdateEntitlements(t *testing.T) {
	r := licensed(nil)
	r.Metadata = &licensing.Metadata{Object: `{"a":1}`}
	update := func(object string) licensing.License {
		t.Helper()
		change, err := licensing.ParseEntitlements("entitlements", object, true)
		if err != nil {
			t.Fatal(err)
		}
		return must(t, &r, licensing.UpdateLicense{Target: licensing.Target{Key: shopKey, Caller: shop},
			Entitlements: change}, noon).License
	}
	l := update(`{"b":{"value":true,"validity":"P1D"},"a":1}`)
	want := licensing.Entitlements(`{"a":1,"b":{"value":true,"expires_at":"` + licensing.FormatTime(noon.Add(day)) + `"}}`)
	if r.Metadata.Entitlements != want || l.OwnEntitlements != want.Version() || l.OwnEntitlements == 0 {
		t.Errorf("%+v, %x", r.Metadata, l.OwnEntitlements)
	}
	if update(`{"a":1}`).OwnEntitlements != want.Version() || r.Changed || len(r.Events) != 0 {
		t.Errorf("the same entitlements again: %+v, changed %v, events %v", r.Metadata, r.Changed, r.Events)
	}
	if update(`{"a":null}`); !strings.HasPrefix(string(r.Metadata.Entitlements), `{"a":null,"b":`) {
		t.Errorf("%s", r.Metadata.Entitlements)
	}
	if r.Metadata.Object != `{"a":1}` {
		t.Errorf("the metadata became %s", r.Metadata.Object)
	}

	// What has ended goes with the next change: the license has what the product has again.
	ended := update(`{"c":{"value":1,"expires_at":"2000-01-01T00:00:00Z"}}`)
	if ended.OwnEntitlements != r.Metadata.Entitlements.Version() ||
		strings.Contains(string(r.Metadata.Entitlements), `"c"`) {
		t.Errorf("%s", r.Metadata.Entitlements)
	}

	// So a null is taken back.
	if update(`{"a":{"value":true,"expires_at":"2000-01-01T00:00:00Z"}}`); strings.Contains(
		string(r.Metadata.Entitlements), `"a"`) {
		t.Errorf("%s", r.Metadata.Entitlements)
	}

	// All that a license has of its own together must fit.
	refused := 0
	for i := range 40 {
		change := own(t, `{"c`+string(rune('a'+i%26))+strings.Repeat("z", i/26)+`":"`+strings.Repeat("x", 200)+`"}`)
		_, err := licensing.Apply(&r, licensing.UpdateLicense{Target: licensing.Target{Key: shopKey, Caller: shop},
			Entitlements: change}, noon)
		if licensing.ReasonOf(err) == licensing.ReasonInvalidField {
			refused++
		}
	}
	if len(r.Metadata.Entitlements) > licensing.MaxOwnEntitlements || refused == 0 {
		t.Errorf("%d bytes, %d refused", len(r.Metadata.Entitlements), refused)
	}
}

// TestNewOwnEntitlements: an end takes more bytes than a validity.
func TestNewOwnEntitlements(t *testing.T) {
	few := "{"
	for i := range licensing.MaxEntitlements {
		few += `"some-code-` + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + `":{"value":1,"validity":"P1Y"},`
	}
	many, err := licensing.ParseEntitlements("entitlements", few[:len(few)-1]+"}", true)
	if err != nil || many.OwnProblem() != "" {
		t.Fatal(err, many.OwnProblem())
	}
	if set, err := licensing.NewOwnEntitlements(many, noon); licensing.ReasonOf(err) != licensing.ReasonInvalidField {
		t.Errorf("%d bytes, %v", len(set), err)
	}
}

func TestProductTermsVersions(t *testing.T) {
	var r licensing.Record
	put := func(object string) []licensing.VersionedTerms {
		t.Helper()
		terms, err := licensing.ParseEntitlements("entitlements", object, false)
		if err != nil {
			t.Fatal(err)
		}
		r.NewTerms = nil
		must(t, &r, licensing.PutProduct{ID: app, Owner: shop, Terms: licensing.DefaultTerms(),
			Entitlements: terms}, noon)
		if r.Product.Terms.Version != terms.Version() {
			t.Errorf("%s: version %x", object, r.Product.Terms.Version)
		}
		return r.NewTerms
	}
	if put(`{}`) != nil || r.Product.Terms.Version != 0 {
		t.Error("a product without entitlements has a version of terms")
	}
	if terms := put(`{"a":1}`); len(terms) != 1 || terms[0].Entitlements != `{"a":1}` {
		t.Errorf("%+v", terms)
	}
	if put(`{"a":1}`) != nil {
		t.Error("the same terms are stored again")
	}
	l := r.Product.Terms.Issue(shopKey, shop, app, "", noon)
	if put(`{"a":2}`); l.Terms != licensing.Entitlements(`{"a":1}`).Version() {
		t.Error("a license does not keep its terms")
	}
}
