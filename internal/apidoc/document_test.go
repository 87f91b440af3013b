package apidoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	served "licet/docs/reference"
	"licet/handlers"
	"licet/internal/apidoc/openapi"
)

var update = flag.Bool("update", false, "write the document anew")

const (
	goldenFiles     = "../../handlers/testdata/golden"
	referenceFolder = "../../docs/reference/"
)

// The committed document equals the document made from the routes and types.
func TestDocumentIsCurrent(t *testing.T) {
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	current(t, referenceFolder+"openapi.yaml", text)
}

// The generated parts of the reference say the same as the document.
func TestReferenceIsCurrent(t *testing.T) {
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(referenceFolder + "api.md")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Page(document, string(text))
	if err != nil {
		t.Fatal(err)
	}
	current(t, referenceFolder+"api.md", []byte(made))
}

// The page about the error codes says the same as the document.
func TestErrorCodesIsCurrent(t *testing.T) {
	codes, err := ErrorCodes(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	current(t, "../../handlers/docs/errors.json", codes)
}

// Every member and every parameter has a description, and every description belongs to one.
func TestEverythingIsDescribed(t *testing.T) {
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	unused := members()
	check := func(of, name string) {
		if description(of, name) == "" {
			t.Errorf("members.go has no row of %s in %s", name, of)
		}
		if _, own := unused[of+"."+name]; own {
			delete(unused, of+"."+name)
			return
		}
		delete(unused, name)
	}
	for name, schema := range document.Components.Schemas.All() {
		for member := range schema.Properties.All() {
			if name != "Failure" {
				check(name, member)
			}
		}
	}
	for _, item := range document.Paths.All() {
		for _, operation := range item.Operations() {
			for _, p := range operation.Parameters {
				switch {
				case p.Ref != "":
				case p.In == "path":
					check("Path", p.Name)
				default:
					check(operation.OperationID, p.Name)
				}
			}
		}
	}
	for name := range unused {
		t.Errorf("members.go describes %s, which is neither a member nor a parameter", name)
	}
}

// The example of a request has only members that the route knows.
func TestExamplesOfRequests(t *testing.T) {
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, r := range handlers.Routes() {
		body := (*document.Paths.Get(r.Pattern).Place(r.Method)).RequestBody
		if body == nil || body.Content.First().Examples == nil {
			continue
		}
		count++
		properties := document.Components.Schemas.Get(nameOf(r.Request)).Properties
		example := body.Content.First().Examples.First().Value
		for i := 0; i < len(example.Content); i += 2 {
			if name := example.Content[i].Value; properties.Get(name) == nil {
				t.Errorf("the example of %s %s has the unknown member %s", r.Method, r.Pattern, name)
			}
		}
	}
	if count < 15 {
		t.Errorf("%d requests have an example", count)
	}
}

// The document in JSON says the same as in YAML, in the same order.
func TestDocumentInJSON(t *testing.T) {
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	var node yaml.Node
	if err := node.Encode(document); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	writeJSON(t, &text, &node)
	want, got := jsontext.Value(text.Bytes()), jsontext.Value(served.OpenAPIInJSON())
	if err := errors.Join(want.Format(), got.Format()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("made (-), served (+):\n%s", diff)
	}
}

// writeJSON writes YAML as JSON.
func writeJSON(t *testing.T, to *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	if node.Kind == yaml.ScalarNode {
		var value any
		err := node.Decode(&value)
		text, failed := json.Marshal(value)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		to.Write(text)
		return
	}
	ends := "[]"
	if node.Kind == yaml.MappingNode {
		ends = "{}"
	}
	to.WriteByte(ends[0])
	for i, inner := range node.Content {
		switch {
		case i == 0:
		case node.Kind == yaml.MappingNode && i%2 == 1:
			to.WriteByte(':')
		default:
			to.WriteByte(',')
		}
		writeJSON(t, to, inner)
	}
	to.WriteByte(ends[1])
}

// current fails the test unless a committed file has a text, or writes it with -update.
func current(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("%s is not current; make openapi writes it anew (-committed +made):\n%s", path, diff)
	}
}

// The document keeps to the rules of OpenAPI 3.1, which openapi-3.1.json has as published on spec.openapis.org, and
// its schemas keep to those of JSON Schema.
func TestDocumentIsValid(t *testing.T) {
	c, err := newCompiler([]byte(committed(t)))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := c.schemas.Compile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := rules.Validate(c.resource); err != nil {
		t.Error(err)
	}
	for at, items := range map[string]*openapi.Map[*openapi.PathItem]{
		"paths": c.document.Paths, "webhooks": c.document.Webhooks,
	} {
		count := 0
		for name, item := range items.All() {
			for method, o := range item.Operations() {
				c.operation(at, name, method, o)
				count++
			}
		}
		if count == 0 {
			t.Errorf("no operations in %s", at)
		}
	}
	for name := range c.document.Components.Schemas.All() {
		c.schema("#/components/schemas/" + name)
	}
	if c.err != nil {
		t.Error(c.err)
	}
}

// Every row of the table of operations belongs to a route.
func TestOperationsAreRoutes(t *testing.T) {
	rows := operations()
	for _, r := range handlers.Routes() {
		delete(rows, r.Method+" "+r.Pattern)
	}
	for name := range rows {
		t.Errorf("operations.go has a row of %s, which is no route", name)
	}
}

// The example of each message fits the schema of the message.
func TestExamplesOfMessages(t *testing.T) {
	text, err := os.ReadFile(referenceFolder + "openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCompiler(text)
	if err != nil {
		t.Fatal(err)
	}
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	for typ, item := range document.Webhooks.All() {
		checked := c.operation("webhooks", typ, "POST", item.Post)
		if c.err != nil {
			t.Fatal(c.err)
		}
		examples := item.Post.RequestBody.Content.First().Examples
		if examples == nil {
			t.Errorf("%s has no example", typ)
			continue
		}
		var value any
		if err := examples.First().Value.Decode(&value); err != nil {
			t.Fatal(err)
		}
		inJSON, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		example, err := jsonschema.UnmarshalJSON(bytes.NewReader(inJSON))
		if err != nil {
			t.Fatal(err)
		}
		if err := checked.body["application/json"].Validate(example); err != nil {
			t.Errorf("the example of %s: %v", typ, err)
		}
	}
}
