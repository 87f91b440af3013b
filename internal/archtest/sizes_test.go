package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"
)

const (
	// maxFiles is how many files of code a folder may contain.
	maxFiles = 40
	// maxMethods is how many methods a type may have, without methods of embedded types.
	maxMethods = 40
)

// checkFolderSize reports a folder with too many files.
func checkFolderSize(r *report, f *folder) {
	code := f.code()
	if len(code) > maxFiles {
		r.at(code[0].syntax.Package, "%s has %d files; the limit is %d", f.dir, len(code), maxFiles)
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
		"internal/wide/a.go:2: internal/wide has 41 files; the limit is 40",
		"payment/y.go:3: t has 41 methods; the limit is 40",
	})
}
