package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// checkTable demands a row for every package.
func checkTable(r *report, f *folder) {
	if f.room == nil && len(f.files) > 0 {
		r.add(f.files[0].path, 1, "package %s has no row in the table: say in internal/archtest/packages_test.go what it may import", f.dir)
	}
}

// checkImports holds each file to its room's row and to the gates. Tests may
// import what they need, since that is where rooms meet; only cmd is closed to
// them too.
func checkImports(r *report, f *folder) {
	if f.room == nil {
		return
	}
	for _, s := range f.files {
		for _, spec := range s.syntax.Imports {
			p := importPath(spec)
			kind, rest := origin(p)
			if spec.Name != nil && spec.Name.Name == "." && !s.test {
				r.at(spec.Pos(), "imports %s with a dot, which hides where names come from", p)
			}
			switch {
			case kind == ours:
				checkOurs(r, f, s, spec, rest)
			case s.test:
			case kind == thirdParty:
				checkThirdParty(r, f, spec, p)
			case anyWithin(p, f.room.banned):
				r.at(spec.Pos(), "%s must not import %s: it knows no I/O and no randomness", f.dir, p)
			}
		}
	}
}

func checkOurs(r *report, f *folder, s *source, spec *ast.ImportSpec, dir string) {
	target := roomOf(dir)
	switch {
	case target == nil:
		r.at(spec.Pos(), "imports %s, which has no row in the table", dir)
	case target.path == "cmd/..." && f.room != target:
		r.at(spec.Pos(), "%s must not import %s: nobody imports cmd", f.dir, dir)
	case s.test || f.room.mayImport(target):
	case target.testOnly:
		r.at(spec.Pos(), "only tests may import %s", dir)
	default:
		r.at(spec.Pos(), "%s must not import %s", f.dir, dir)
	}
}

func checkThirdParty(r *report, f *folder, spec *ast.ImportSpec, p string) {
	if slices.Contains(f.room.third, p) {
		return
	}
	for _, gate := range gates {
		if within(p, gate.path) && !anyWithin(f.room.path, gate.rooms) {
			r.at(spec.Pos(), "%s must not import %s: only %s may", f.dir, p, strings.Join(gate.rooms, " and "))
			return
		}
	}
	if f.room.third != nil && !anyWithin(p, f.room.third) {
		r.at(spec.Pos(), "%s must not import %s: of third-party code it may import only %s",
			f.dir, p, strings.Join(f.room.third, ", "))
	}
}

// owner tells whose code a package is.
type owner int

const (
	standard owner = iota
	thirdParty
	ours
)

// origin tells whose package an import path names, and for ours its folder.
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

// checkClock keeps the time out of the pure room: it comes in as an argument.
func checkClock(r *report, f *folder) {
	if f.room == nil || !f.room.pure {
		return
	}
	for _, s := range f.code() {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && s.imports[x.Name] == "time" && slices.Contains(clock, sel.Sel.Name) {
				r.at(sel.Pos(), "%s must not use time.%s: the time is an argument", f.dir, sel.Sel.Name)
			}
			return true
		})
	}
}
