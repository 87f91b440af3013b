package licensing_test

import (
	"fmt"
	"strings"
	"testing"

	"licet/licensing"
)

func TestMergeMetadata(t *testing.T) {
	f := func(stored, patch, want string) {
		t.Helper()
		r := licensed(nil)
		r.Metadata = &licensing.Metadata{Object: stored}
		must(t, &r, licensing.UpdateLicense{Target: ours, Metadata: patch}, noon)
		if r.Metadata.Object != want || r.Changed != (stored != want) || r.Metadata.Changed != r.Changed {
			t.Errorf("%s with %s is %s, changed %v; want %s", stored, patch, r.Metadata.Object, r.Changed, want)
		}
	}
	f(``, `{}`, ``)
	f(``, `{"a":1}`, `{"a":1}`)
	f(``, `{"a":null}`, ``)
	f(`{}`, `{}`, `{}`)
	f(`{}`, `{"a":null}`, `{}`)
	f(`{"a":1}`, `{}`, `{"a":1}`)
	f(`{"a":1}`, `{"a":1}`, `{"a":1}`)
	f(`{"a":1,"b":[2,{"c":3.50}]}`, `{"a":"x"}`, `{"a":"x","b":[2,{"c":3.50}]}`)
	f(`{"a":1,"b":2}`, `{"c":3}`, `{"a":1,"b":2,"c":3}`)
	f(`{"a":1,"b":2,"c":3}`, `{"b":null}`, `{"a":1,"c":3}`)
	f(`{"a":1}`, `{"a":null}`, ``)
	f(`{"a":null}`, `{"a":null}`, ``)
	f(`{"a":1}`, `{"a":null,"b":2}`, `{"b":2}`)
	// Members are merged; objects within members are replaced.
	f(`{"a":{"x":1,"y":2}}`, `{"a":{"x":null}}`, `{"a":{"x":null}}`)
	f(`{"a":1}`, `{"A":2}`, `{"a":1,"A":2}`)
	f(`{"caf\u00e9":1}`, `{"café":2}`, `{"café":2}`)
	f(`{"a<b>&c":1}`, `{"d":"<e>"}`, `{"a<b>&c":1,"d":"<e>"}`)
	f(`{"a\"b":1}`, `{"c\\":2}`, `{"a\"b":1,"c\\":2}`)
}

func TestMergeMetadataLimits(t *testing.T) {
	members := func(from, to int) string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf(`"m%d":%d`, i, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	r := licensed(nil)
	r.Metadata = &licensing.Metadata{Object: members(0, 49)}
	update := func(patch string) licensing.Command {
		return licensing.UpdateLicense{Target: ours, MaxDevices: new(9), Metadata: patch}
	}
	refuses(t, &r, update(members(49, 51)), noon, licensing.ReasonInvalidField)
	must(t, &r, update(members(49, 50)), noon)
	refuses(t, &r, update(members(50, 51)), noon, licensing.ReasonInvalidField)
	must(t, &r, update(`{"m0":null,"new":1}`), noon)

	large := func(n int) string { return `{"large":"` + strings.Repeat("x", n) + `"}` }
	r.Metadata = &licensing.Metadata{Object: `{"a":1}`}
	room := licensing.MaxMetadataBytes - len(`{"a":1,"large":""}`)
	refuses(t, &r, update(large(room+1)), noon, licensing.ReasonInvalidField)
	must(t, &r, update(large(room)), noon)
}

func TestNeedsMetadata(t *testing.T) {
	for _, c := range licenseCommands(ours) {
		if _, redacts := c.(licensing.RedactLicense); licensing.NeedsMetadata(c) != redacts {
			t.Errorf("%T needs metadata: %v", c, !redacts)
		}
	}
	if !licensing.NeedsMetadata(licensing.UpdateLicense{Metadata: `{}`}) {
		t.Error("a change of the metadata does not need it")
	}
}
