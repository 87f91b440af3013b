package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"slices"
	"testing"
)

const (
	// maxFiles is how many files of code a folder may hold.
	maxFiles = 48
	// maxMethods is how many methods a type may have, without methods of embedded types.
	maxMethods = 60
)

// largeFolders has bounds of their own for the folders that a cut would make worse. There are three rows at most: cut a
// folder before you add a row.
var largeFolders = map[string]int{
	"handlers":  56, // the routes and the adapter share the request, its checks and the server
	"licensing": 58, // a record holds all kinds of records, and every command changes records
}

// checkFolderSize reports a folder with too many files.
func checkFolderSize(r *report, f *folder) {
	code := f.code()
	if limit := max(maxFiles, largeFolders[f.dir]); len(code) > limit {
		r.at(code[0].syntax.Package, "%s has %d files; the limit is %d", f.dir, len(code), limit)
	}
}

// checkTypeSize reports types with too many methods.
func checkTypeSize(r *report, f *folder) {
	methods := methodsOf(f)
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		all := methods[name]
		if len(all) > maxMethods {
			r.at(all[maxMethods].Pos(), "%s has %d methods; the limit is %d", name, len(all), maxMethods)
		}
	}
}

// methodsOf returns the methods of the types of a folder, in the order of its files.
func methodsOf(f *folder) map[string][]*ast.FuncDecl {
	methods := map[string][]*ast.FuncDecl{}
	for _, s := range f.code() {
		for _, decl := range s.syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				name := receiver(d)
				methods[name] = append(methods[name], d)
			}
		}
	}
	return methods
}

// TestSizes: a folder and a type at their bounds pass; one more file and one more method are violations.
func TestSizes(t *testing.T) {
	files := map[string]string{"internal/wide/a.go": "// Package wide is wide.\npackage wide\n"}
	for i := range maxFiles - 1 {
		files[fmt.Sprintf("internal/wide/x%02d.go", i)] = "package wide\n"
	}
	many := "package payment\n\ntype t[K any] struct{}\n\n"
	for i := range maxMethods {
		many += fmt.Sprintf("func (*t[K]) m%d() {}\n", i)
	}
	files["payment/x.go"] = many
	expectViolations(t, files, nil)
	files["internal/wide/y.go"] = "package wide\n"
	files["payment/y.go"] = "package payment\n\nfunc (t[K]) last() {}\n"
	expectViolations(t, files, []string{
		"internal/wide/a.go:2: internal/wide has 49 files; the limit is 48",
		"payment/y.go:3: t has 61 methods; the limit is 60",
	})
}

// TestLargeFolders: each folder with a row is above the bound for all others.
func TestLargeFolders(t *testing.T) {
	if len(largeFolders) > 3 {
		t.Errorf("%d large folders; at most 3", len(largeFolders))
	}
	r := &report{fset: token.NewFileSet()}
	folders, err := load(os.DirFS("../.."), r)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]int{}
	for _, f := range folders {
		files[f.dir] = len(f.code())
	}
	for name := range largeFolders {
		if files[name] <= maxFiles {
			t.Errorf("%s has %d files, as any folder may have: remove its row", name, files[name])
		}
	}
}
