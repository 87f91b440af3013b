package apidoc

import (
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi-validator/schema_validation"

	served "licet/docs/reference"
	"licet/handlers"
)

var update = flag.Bool("update", false, "write the document anew")

const (
	goldenFiles     = "../../handlers/testdata/golden"
	referenceFolder = "../../docs/reference/"
)

// The committed document is the one that the routes and types make.
func TestDocumentIsCurrent(t *testing.T) {
	document, err := Document(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	text, err := document.Render()
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
	for name, schema := range document.Components.Schemas.FromOldest() {
		for member := range schema.Schema().Properties.KeysFromOldest() {
			if name != "Failure" {
				check(name, member)
			}
		}
	}
	for _, item := range document.Paths.PathItems.FromOldest() {
		for _, operation := range item.GetOperations().FromOldest() {
			for _, p := range operation.Parameters {
				if !p.IsReference() {
					check(operation.OperationId, p.Name)
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
		body := (*method(document.Paths.PathItems.GetOrZero(r.Pattern), r.Method)).RequestBody
		if body == nil || body.Content.First().Value().Examples == nil {
			continue
		}
		count++
		properties := document.Components.Schemas.GetOrZero(nameOf(r.Request)).Schema().Properties
		example := body.Content.First().Value().Examples.First().Value().Value
		for i := 0; i < len(example.Content); i += 2 {
			if name := example.Content[i].Value; properties.GetOrZero(name) == nil {
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
	text, err := document.RenderJSON("")
	if err != nil {
		t.Fatal(err)
	}
	want, got := jsontext.Value(text), jsontext.Value(served.OpenAPIInJSON())
	if err := errors.Join(want.Format(), got.Format()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("made (-), served (+):\n%s", diff)
	}
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

// The document keeps to the rules of OpenAPI 3.1.
func TestDocumentIsValid(t *testing.T) {
	text, err := os.ReadFile(referenceFolder + "openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := document.BuildV3Model(); err != nil {
		t.Fatal(err)
	}
	if valid, problems := schema_validation.ValidateOpenAPIDocument(document); !valid {
		for _, p := range problems {
			t.Error(p)
		}
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
