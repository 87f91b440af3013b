package apidoc

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"licet/internal/apidoc/openapi"
)

var (
	release = flag.Bool("release", false, "keep the document as the released one, unless a change breaks clients")
	breaks  = flag.Bool("breaking", false, "with -release: keep the document although a change breaks clients")
)

// releasedFile contains the document of the last release, see compact; before the first release, the document of an
// earlier commit.
const releasedFile = "testdata/released.yaml.gz"

// Within /v1 the API only grows: no change since the last release breaks a client.
func TestReleasedDocumentStillHolds(t *testing.T) {
	current := committed(t)
	for _, change := range keep(t, releasedFile, current, *release, *breaks) {
		t.Errorf("since the last release: %s", change)
	}
}

// keep returns the changes that break clients, from the document of a file to the current one. With release, keep then
// writes the current document to the file: without such changes, or with breaks, which accepts and logs the changes.
func keep(t *testing.T, path, current string, release, breaks bool) []string {
	t.Helper()
	changes := breaking(decode(t, unpacked(t, path)), decode(t, current))
	if !release || len(changes) > 0 && !breaks {
		return changes
	}
	for _, change := range changes {
		t.Logf("breaks clients: %s", change)
	}
	pack(t, path, current)
	return nil
}

// pack writes a document to a file.
func pack(t *testing.T, path, document string) {
	t.Helper()
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	_, err := to.Write(compact(t, document))
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// unpacked returns the document of a file.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	from, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// TestRelease: a document that breaks clients replaces the released one only if that is wanted.
func TestRelease(t *testing.T) {
	current := committed(t)
	path := filepath.Join(t.TempDir(), "released.yaml.gz")
	pack(t, path, current)
	more := strings.Replace(current, "    /v1/orders:\n", "    /v1/baskets:\n        get:\n            responses:\n"+
		"                \"200\":\n                    description: OK\n    /v1/orders:\n", 1)
	for _, c := range []struct {
		document string
		breaks   bool
		found    int
		kept     string
	}{
		{more, false, 0, more},
		{current, false, 1, more},
		{current, true, 0, current},
	} {
		found := keep(t, path, c.document, true, c.breaks)
		if kept := unpacked(t, path) == string(compact(t, c.kept)); len(found) != c.found || !kept {
			t.Errorf("with -breaking=%v: found %q; the file has the right document: %v", c.breaks, found, kept)
		}
	}
}

// compact returns a document without its texts for people and examples, which breaking does not compare. Each operation
// and each component has one line, for zdiff.
func compact(t *testing.T, document string) []byte {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(document), &root); err != nil {
		t.Fatal(err)
	}
	shorten(root.Content[0], 0, false)
	text, err := yaml.Marshal(&root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// shorten removes the texts from a part of a document, at a depth. names says that the part is a schema's list of
// members, which may have the names of texts.
func shorten(part *yaml.Node, depth int, names bool) {
	if depth == 3 {
		part.Style = yaml.FlowStyle
	}
	if part.Kind != yaml.MappingNode {
		for _, item := range part.Content {
			shorten(item, depth+1, false)
		}
		return
	}
	kept := part.Content[:0]
	for i := 0; i < len(part.Content); i += 2 {
		name, value := part.Content[i], part.Content[i+1]
		if !names && slices.Contains([]string{"description", "summary", "tags", "example", "examples"}, name.Value) {
			continue
		}
		shorten(value, depth+1, !names && name.Value == "properties")
		kept = append(kept, name, value)
	}
	part.Content = kept
}

func decode(t *testing.T, text string) *openapi.Document {
	t.Helper()
	document := new(openapi.Document)
	if err := yaml.Unmarshal([]byte(text), document); err != nil {
		t.Fatal(err)
	}
	return document
}

func TestBreakingChanges(t *testing.T) {
	released := committed(t)
	before := decode(t, string(compact(t, released)))
	edit := func(old, changed string) string {
		edited := strings.Replace(released, old, changed, 1)
		if edited == released {
			t.Fatalf("the document lacks %q", old)
		}
		return edited
	}
	for what, current := range map[string]string{
		"the same document": released,
		"one more route": edit("    /v1/orders:\n", "    /v1/baskets:\n        get:\n            responses:\n"+
			"                \"200\":\n                    description: OK\n    /v1/orders:\n"),
		"one more parameter": edit("                - name: status\n",
			"                - name: since\n                  in: query\n"+
				"                  schema:\n                    type: string\n                - name: status\n"),
		"one more word": edit("                        - not_activated\n",
			"                        - not_activated\n                        - lost\n"),
		"another text": edit("                    description: OK\n", "                    description: fine\n"),
		"one more member of requests": edit(
			"        ActivationRequest:\n            type: object\n            properties:\n",
			"        ActivationRequest:\n            type: object\n            properties:\n"+
				"                note:\n                    type: string\n"),
		"one more member that responses always have": edit("                - refund_due\n",
			"                - refund_due\n                - note\n"),
		"one more member": edit("                refund_due:\n",
			"                note:\n                    type: string\n"+
				"                refund_due:\n"),
	} {
		if found := breaking(before, decode(t, current)); len(found) > 0 {
			t.Errorf("%s breaks clients: %q", what, found)
		}
	}
	for what, current := range map[string]string{
		"a removed route":  edit("    /v1/orders:\n", "    /v1/baskets:\n"),
		"a removed member": edit("                refund_due:\n", "                refund_owed:\n"),
		"another type": edit("                late:\n                    type: boolean\n",
			"                late:\n                    type: string\n"),
		"another limit": edit("                    maxLength: 64\n", "                    maxLength: 63\n"),
		"one word less": edit("                        - not_activated\n", ""),
		"one more member that requests need": edit("                - license_key\n",
			"                - license_key\n                - device_name\n"),
		"one member that responses may lack": edit("                - refund_due\n", ""),
		"one more parameter that requests need": edit("                - name: status\n",
			"                - name: since\n                  in: query\n                  required: true\n"+
				"                  schema:\n                    type: string\n                - name: status\n"),
		"a header that responses may lack": edit("'#/components/headers/X-Request-Id'",
			"'#/components/headers/optional-RateLimit'"),
		"a removed header": edit("                        RateLimit:\n", "                        Rate:\n"),
		"other scopes": edit("                - ApiKey:\n                    - licenses",
			"                - ApiKey:\n                    - orders"),
		"a removed message":        edit("    order.paid:\n", "    order.bought:\n"),
		"another parameter":        edit("                - name: status\n", "                - name: state\n"),
		"another operationId":      edit(" operationId: activate\n", " operationId: activateLicense\n"),
		"another limit of bodies":  edit("x-max-bytes: 65536\n", "x-max-bytes: 65535\n"),
		"another type of a header": edit("                const: nosniff\n", "                const: sniff\n"),
		"another name of a schema": strings.ReplaceAll(released, "ActivationRequest", "Activating"),
		"a removed code":           edit("                \"404\":\n", "                \"499\":\n"),
	} {
		if found := breaking(before, decode(t, current)); len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}
