package licensing_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"licet/licensing"
)

// membersOf reads an object as a map with compact values. It returns nil if the text is no object, or has a name twice.
func membersOf(object string) (members map[string]string, ok bool) {
	var raw map[string]json.RawMessage
	var compact bytes.Buffer
	if json.Unmarshal([]byte(object), &raw) != nil || raw == nil || json.Compact(&compact, []byte(object)) != nil ||
		compact.String() != object {
		return nil, false
	}
	members = make(map[string]string)
	length := len("{}") + max(0, len(raw)-1)
	for name, value := range raw {
		members[name] = string(value)
		var quoted bytes.Buffer // and a line feed behind it
		names := json.NewEncoder(&quoted)
		names.SetEscapeHTML(false)
		if names.Encode(name) != nil {
			return nil, false
		}
		length += quoted.Len() - len("\n") + len(":") + len(value)
	}
	// Names that come twice, or that are written otherwise, are not tried.
	return members, length == len(object)
}

// FuzzMergeMetadata compares a merge with that of maps.
func FuzzMergeMetadata(f *testing.F) {
	f.Add(`{"a":1,"b":[2,{"c":3.50}]}`, `{"a":"x","b":null,"d":{"e":null}}`)
	f.Add(`{}`, `{"":null}`)
	f.Add(`{"é":"<&>"}`, `{"é":null,"e":"\u2028"}`)
	f.Fuzz(func(t *testing.T, stored, patch string) {
		want, storedIs := membersOf(stored)
		changes, patchIs := membersOf(patch)
		if !storedIs || !patchIs {
			return
		}
		for name, value := range changes {
			if value == "null" {
				delete(want, name)
			} else {
				want[name] = value
			}
		}
		r := licensed(nil)
		r.Metadata = &licensing.Metadata{Object: stored}
		if _, err := licensing.Apply(&r, licensing.UpdateLicense{Target: ours, Metadata: patch}, noon); err != nil {
			if len(want) <= licensing.MaxMetadataMembers && len(stored)+len(patch) <= licensing.MaxMetadataBytes {
				t.Errorf("%s with %s: %v", stored, patch, err)
			}
			return
		}
		merged := r.Metadata.Object
		if merged == "" {
			merged = "{}"
		}
		got, ok := membersOf(merged)
		if !ok || !maps.Equal(got, want) {
			t.Errorf("%s with %s is %s, want %v", stored, patch, merged,
				strings.Join(slices.Sorted(maps.Keys(want)), " "))
		}
	})
}
