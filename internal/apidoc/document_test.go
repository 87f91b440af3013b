package apidoc

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

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
	inYAML, inJSON, err := Render(document)
	if err != nil {
		t.Fatal(err)
	}
	current(t, referenceFolder+"openapi.yaml", inYAML)
	current(t, referenceFolder+"openapi.json", inJSON)
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
	v, errs := validator.NewValidator(document)
	if errs != nil {
		t.Fatal(errs)
	}
	if valid, problems := v.ValidateDocument(); !valid {
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
