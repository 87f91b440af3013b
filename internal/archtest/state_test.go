package archtest

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// State belongs into structs that main creates and passes on. A package-level variable is allowed if it
// never changes: an error to compare with, a compiled pattern, an embedded file, or an unexported table.

// checkVariables reports variables of types that contain mutable state, exported tables, and func init.
func checkVariables(r *report, f *folder) {
	if f.row != nil && f.row.globals {
		return
	}
	own := map[string]typeExpr{}
	for _, s := range f.code() {
		for _, spec := range typeSpecs(s) {
			own[spec.Name.Name] = typeExpr{s, spec.Type}
		}
	}
	for _, s := range f.code() {
		for _, decl := range s.syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				r.at(d.Name.Pos(), "func init runs at every import: use a constructor")
			}
		}
		for _, v := range packageVars(s) {
			switch {
			case v.typ == nil:
			case changes(own, s, v.typ, nil):
				r.at(v.name.Pos(), "%s is a package-level variable of a mutable type: keep it in a struct", v.name.Name)
			case v.name.IsExported() && isTable(v.typ):
				r.at(v.name.Pos(), "%s is an exported table that any package could change: return it from a function",
					v.name.Name)
			}
		}
	}
}

type packageVar struct {
	name *ast.Ident
	typ  ast.Expr // as declared or as the value implies; nil if unknown
}

func packageVars(s *source) []packageVar {
	var list []packageVar
	for _, decl := range s.syntax.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, spec := range d.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				typ := spec.Type
				if typ == nil && i < len(spec.Values) {
					typ = valueType(spec.Values[i])
				}
				if name.Name != "_" {
					list = append(list, packageVar{name, typ})
				}
			}
		}
	}
	return list
}

// valueType returns the type of a value, as far as its syntax shows it. For a call of another
// package's function it returns the function, which names the package.
func valueType(value ast.Expr) ast.Expr {
	switch v := value.(type) {
	case *ast.ParenExpr:
		return valueType(v.X)
	case *ast.CompositeLit:
		return v.Type
	case *ast.UnaryExpr:
		if lit, ok := v.X.(*ast.CompositeLit); ok && v.Op == token.AND {
			return &ast.StarExpr{Star: v.OpPos, X: lit.Type}
		}
	case *ast.CallExpr:
		if fun, ok := v.Fun.(*ast.Ident); ok && (fun.Name == "make" || fun.Name == "new") && len(v.Args) > 0 {
			return v.Args[0]
		}
		if _, ok := v.Fun.(*ast.Ident); !ok {
			return v.Fun
		}
	}
	return nil
}

// changes reports whether a type contains mutable state: a channel, or a type of package sync. It follows
// types of the same package, but not functions.
func changes(own map[string]typeExpr, s *source, typ ast.Expr, seen []string) (found bool) {
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType, *ast.FuncLit:
			return false
		case *ast.ChanType:
			found = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && within(s.imports[x.Name], "sync/...") {
				found = true
			}
			return false
		case *ast.Field:
			found = found || changes(own, s, n.Type, seen)
			return false
		case *ast.Ident:
			if t, ok := own[n.Name]; ok && !slices.Contains(seen, n.Name) {
				found = found || changes(own, t.file, t.expr, append(seen, n.Name))
			}
		}
		return !found
	})
	return found
}

func isTable(typ ast.Expr) bool {
	switch t := typ.(type) {
	case *ast.MapType:
		return true
	case *ast.ArrayType:
		return t.Len == nil
	}
	return false
}

// checkAssignments reports code, tests included, that changes a package-level variable after its
// declaration or takes its address. The type checker resolves names, so that local variables of the
// same name don't count. Imports stay unresolved, and the errors of that are ignored.
func checkAssignments(r *report, f *folder) {
	if f.row != nil && f.row.globals {
		return
	}
	var vars []*ast.Ident
	for _, s := range f.code() {
		for _, v := range packageVars(s) {
			vars = append(vars, v.name)
		}
	}
	a := &assignments{report: r, vars: map[types.Object]bool{}, uses: map[*ast.Ident]types.Object{}}
	defs := map[*ast.Ident]types.Object{}
	for _, files := range byPackage(f) {
		config := types.Config{Importer: noPackages{}, Error: func(error) {}}
		_, _ = config.Check(f.dir, r.fset, files, &types.Info{Defs: defs, Uses: a.uses})
	}
	for _, name := range vars {
		if obj := defs[name]; obj != nil {
			a.vars[obj] = true
		}
	}
	for _, s := range f.files {
		a.file = s
		ast.Inspect(s.syntax, a.visit)
	}
}

// byPackage divides a folder's files into the package and its external tests.
func byPackage(f *folder) map[string][]*ast.File {
	parts := map[string][]*ast.File{}
	for _, s := range f.files {
		name := s.syntax.Name.Name
		parts[name] = append(parts[name], s.syntax)
	}
	return parts
}

// noPackages is an importer that finds no package.
type noPackages struct{}

func (noPackages) Import(string) (*types.Package, error) { return nil, errors.New("not resolved") }

type assignments struct {
	*report
	file *source
	vars map[types.Object]bool
	uses map[*ast.Ident]types.Object
}

func (a *assignments) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, left := range n.Lhs {
				a.changed(left)
			}
		}
	case *ast.IncDecStmt:
		a.changed(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			a.changed(n.Key)
			a.changed(n.Value)
		}
	case *ast.UnaryExpr:
		if id, ok := ast.Unparen(n.X).(*ast.Ident); ok && n.Op == token.AND && a.vars[a.uses[id]] {
			a.at(n.Pos(), "the address of the package-level variable %s lets other code change it", id.Name)
		}
	case *ast.CallExpr:
		if fun, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 &&
			slices.Contains([]string{"clear", "copy", "delete"}, fun.Name) {
			a.changed(n.Args[0])
		}
	}
	return true
}

// changed reports an expression that takes a new value and belongs to a package-level variable, of
// this package or of another one.
func (a *assignments) changed(left ast.Expr) {
	for {
		switch e := left.(type) {
		case *ast.ParenExpr:
			left = e.X
		case *ast.StarExpr:
			left = e.X
		case *ast.IndexExpr:
			left = e.X
		case *ast.SliceExpr:
			left = e.X
		case *ast.SelectorExpr:
			if x, ok := e.X.(*ast.Ident); ok && a.isPackage(x) {
				a.foreign(x, e.Sel)
				return
			}
			left = e.X
		case *ast.Ident:
			if a.vars[a.uses[e]] {
				a.at(e.Pos(), "%s is a package-level variable that changes here: keep it in a struct", e.Name)
			}
			return
		default:
			return
		}
	}
}

// foreign reports a change of another package's variable. Tests may change variables of third-party
// packages.
func (a *assignments) foreign(x, name *ast.Ident) {
	if kind, _ := origin(a.file.imports[x.Name]); kind == ours || !a.file.test {
		a.at(x.Pos(), "%s.%s is another package's variable that changes here", x.Name, name.Name)
	}
}

// isPackage reports whether an identifier names an imported package. The type checker can't tell if
// the package's name is not the last element of its path.
func (a *assignments) isPackage(x *ast.Ident) bool {
	if obj, ok := a.uses[x]; ok {
		_, ok := obj.(*types.PkgName)
		return ok
	}
	return a.file.imports[x.Name] != ""
}
