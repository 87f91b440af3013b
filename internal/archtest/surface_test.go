package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// checkNames refuses packages that are named after nothing.
func checkNames(r *report, f *folder) {
	if len(f.files) == 0 {
		return
	}
	first := f.files[0]
	names := append(strings.Split(f.dir, "/"), first.syntax.Name.Name)
	for _, name := range names {
		if slices.Contains(bags, strings.TrimSuffix(name, "_test")) {
			r.at(first.syntax.Package, "the name %q says nothing about what is inside", name)
			return
		}
	}
}

// checkLength keeps files short enough to be read in one go.
func checkLength(r *report, f *folder) {
	for _, s := range f.code() {
		if s.lines > maxLines {
			r.add(s.path, s.lines, "has %d lines, and %d is the most", s.lines, maxLines)
		}
	}
}

// checkPackageComment demands one package comment, in one file. Where a folder
// holds tests only, one of them carries it.
func checkPackageComment(r *report, f *folder) {
	files := f.code()
	if len(files) == 0 {
		files = f.files
	}
	var found []*source
	for _, s := range files {
		if s.syntax.Doc.Text() != "" {
			found = append(found, s)
		}
	}
	switch {
	case len(files) == 0:
	case len(found) == 0:
		r.at(files[0].syntax.Package, "no file of %s has a package comment", f.dir)
	case len(found) > 1:
		r.at(found[1].syntax.Package, "a second package comment: there is one in %s", found[0].path)
	default:
		name := found[0].syntax.Name.Name
		if name != "main" && !strings.HasPrefix(found[0].syntax.Doc.Text(), "Package "+name+" ") {
			r.at(found[0].syntax.Package, "the package comment should begin with \"Package %s\"", name)
		}
	}
}

// plain lists methods whose meaning their name already fixes.
var plain = []string{"Error", "Read", "ServeHTTP", "String", "Unwrap", "Write"}

// checkComments demands a comment for whatever a package exports.
func checkComments(r *report, f *folder) {
	for _, s := range f.code() {
		for _, decl := range s.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if exportedFunc(d) && d.Doc.Text() == "" && !(d.Recv != nil && slices.Contains(plain, d.Name.Name)) {
					r.at(d.Name.Pos(), "%s is exported and has no comment", d.Name.Name)
				}
			case *ast.GenDecl:
				checkGroup(r, d)
			}
		}
	}
}

// checkGroup accepts one comment for a whole group of constants or variables,
// and one above the first of a few that names the others; a type has its own.
func checkGroup(r *report, d *ast.GenDecl) {
	var above []string
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			alone := !d.Lparen.IsValid() && d.Doc.Text() != ""
			if s.Name.IsExported() && !alone && s.Doc.Text() == "" {
				r.at(s.Name.Pos(), "%s is exported and has no comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			above = append(above, words(s.Doc.Text())...)
			said := d.Doc.Text() != "" || s.Doc.Text() != "" || s.Comment.Text() != ""
			for _, name := range s.Names {
				if name.IsExported() && !said && !slices.Contains(above, name.Name) {
					r.at(name.Pos(), "%s is exported and has no comment", name.Name)
				}
			}
		}
	}
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}

// exportedFunc tells whether a function, or a method of an exported type, can
// be called from outside.
func exportedFunc(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() {
		return false
	}
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	base := d.Recv.List[0].Type
	for {
		switch t := base.(type) {
		case *ast.StarExpr:
			base = t.X
		case *ast.IndexExpr:
			base = t.X
		case *ast.IndexListExpr:
			base = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// checkSeal looks for types of the sealed path in what the sealed room
// exports: in signatures, exported fields, methods of interfaces, and
// variables. Aliases of the room's own are followed.
func checkSeal(r *report, f *folder) {
	if f.dir != sealed.room {
		return
	}
	g := &leaks{report: r, aliases: map[string]typeExpr{}}
	for _, s := range f.code() {
		for _, spec := range typeSpecs(s) {
			if spec.Assign.IsValid() {
				g.aliases[spec.Name.Name] = typeExpr{s, spec.Type}
			}
		}
	}
	for _, s := range f.code() {
		for _, decl := range s.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if exportedFunc(d) {
					g.look(d.Name, s, d.Type)
				}
			case *ast.GenDecl:
				g.group(s, d)
			}
		}
	}
}

// typeExpr is a type as written, and where.
type typeExpr struct {
	file *source
	expr ast.Expr
}

type leaks struct {
	*report
	aliases map[string]typeExpr
}

func (g *leaks) group(s *source, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				if spec.TypeParams != nil {
					g.look(spec.Name, s, spec.TypeParams)
				}
				g.look(spec.Name, s, spec.Type)
			}
		case *ast.ValueSpec:
			for i, name := range spec.Names {
				switch {
				case !name.IsExported():
				case spec.Type != nil:
					g.look(name, s, spec.Type)
				case i < len(spec.Values): // its type is the value's
					g.look(name, s, spec.Values[i])
				case len(spec.Values) == 1:
					g.look(name, s, spec.Values[0])
				}
			}
		}
	}
}

// look complains about name where a node reaches the sealed path.
func (g *leaks) look(name *ast.Ident, s *source, n ast.Node) {
	if p := g.find(s, n, nil); p != "" {
		g.at(name.Pos(), "%s is exported and shows %s: no type of it leaves %s", name.Name, p, sealed.room)
	}
}

func (g *leaks) find(s *source, n ast.Node, seen []string) (found string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if found != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			found = g.find(s, n.Type, seen)
			return false
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if exportedField(field) && found == "" {
					found = g.find(s, field.Type, seen)
				}
			}
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && within(s.imports[x.Name], sealed.path) {
				found = s.imports[x.Name]
			}
		case *ast.Ident:
			if a, ok := g.aliases[n.Name]; ok && !slices.Contains(seen, n.Name) {
				found = g.find(a.file, a.expr, append(seen, n.Name))
			}
		}
		return true
	})
	return found
}

// exportedField tells whether a field can be reached from outside. An embedded
// one is taken as reachable.
func exportedField(f *ast.Field) bool {
	return len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
}

// typeSpecs lists the types that a file declares.
func typeSpecs(s *source) []*ast.TypeSpec {
	var list []*ast.TypeSpec
	for _, decl := range s.syntax.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			for _, spec := range d.Specs {
				list = append(list, spec.(*ast.TypeSpec))
			}
		}
	}
	return list
}
