package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// checkTable reports a package without a row.
func checkTable(r *report, f *folder) {
	if f.row == nil && len(f.files) > 0 {
		r.add(f.files[0].path, 1, "package %s has no row in the table: add one in internal/archtest/packages_test.go",
			f.dir)
	}
}

// checkImports reports imports that the row of the package or the list restricted does not allow.
// Tests may import any package but cmd, since they connect packages.
func checkImports(r *report, f *folder) {
	if f.row == nil {
		return
	}
	for _, s := range f.files {
		for _, spec := range s.syntax.Imports {
			p := importPath(spec)
			kind, rest := origin(p)
			if spec.Name != nil && spec.Name.Name == "." && !s.test {
				r.at(spec.Pos(), "dot import of %s: a dot import hides where names come from", p)
			}
			switch {
			case kind == ours:
				checkOurs(r, f, s, spec, rest)
			case s.test:
			case kind == thirdParty:
				checkThirdParty(r, f, spec, p)
			case anyWithin(p, f.row.forbidden):
				r.at(spec.Pos(), "%s must not import %s: its row forbids I/O and randomness", f.dir, p)
			}
		}
	}
}

func checkOurs(r *report, f *folder, s *source, spec *ast.ImportSpec, dir string) {
	target := rowOf(dir)
	switch {
	case target == nil:
		r.at(spec.Pos(), "imports %s, which has no row in the table", dir)
	case target.path == "cmd/..." && f.row != target:
		r.at(spec.Pos(), "%s must not import %s: cmd is not importable", f.dir, dir)
	case s.test || f.row.mayImport(target):
	case target.testOnly:
		r.at(spec.Pos(), "only tests may import %s", dir)
	default:
		r.at(spec.Pos(), "%s must not import %s", f.dir, dir)
	}
}

func checkThirdParty(r *report, f *folder, spec *ast.ImportSpec, p string) {
	if slices.Contains(f.row.thirdParty, p) {
		return
	}
	for _, rule := range restricted {
		if within(p, rule.path) && !anyWithin(f.row.path, rule.importers) {
			r.at(spec.Pos(), "%s must not import %s: only %s may", f.dir, p, strings.Join(rule.importers, ", "))
			return
		}
	}
	if f.row.thirdParty != nil && !anyWithin(p, f.row.thirdParty) {
		r.at(spec.Pos(), "%s must not import %s: the only third-party packages in its row are %s",
			f.dir, p, strings.Join(f.row.thirdParty, ", "))
	}
}

// owner says who maintains a package.
type owner int

const (
	standard owner = iota
	thirdParty
	ours
)

// origin returns the owner of a package by its import path, and for a package of this module its
// folder.
func origin(p string) (owner, string) {
	if p == module {
		return ours, "."
	}
	if dir, ok := strings.CutPrefix(p, module+"/"); ok {
		return ours, dir
	}
	if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
		return thirdParty, ""
	}
	return standard, ""
}

// checkClock reports a package with noClock that reads the time.
func checkClock(r *report, f *folder) {
	if f.row == nil || !f.row.noClock {
		return
	}
	for _, s := range f.code() {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && s.imports[x.Name] == "time" && slices.Contains(clockFunctions, sel.Sel.Name) {
				r.at(sel.Pos(), "%s must not use time.%s: the time is an argument", f.dir, sel.Sel.Name)
			}
			return true
		})
	}
}
