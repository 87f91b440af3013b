package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkNames reports packages with vague names.
func checkNames(r *report, f *folder) {
	if len(f.files) == 0 {
		return
	}
	first := f.files[0]
	names := append(strings.Split(f.dir, "/"), first.syntax.Name.Name)
	for _, name := range names {
		if slices.Contains(vagueNames, strings.TrimSuffix(name, "_test")) {
			r.at(first.syntax.Package, "the name %q does not say what the package contains", name)
			return
		}
	}
}

// checkLength reports files that are too long.
func checkLength(r *report, f *folder) {
	for _, s := range f.code() {
		if s.lines > maxLines {
			r.add(s.path, s.lines, "has %d lines; the limit is %d", s.lines, maxLines)
		}
	}
}

// checkWidth reports lines that are too wide.
func checkWidth(r *report, f *folder) {
	for _, s := range f.files {
		for _, line := range s.wide {
			r.add(s.path, line, "has more than %d columns", maxColumns)
		}
	}
}

// wideLines returns the numbers of the lines with more than maxColumns columns, where a tab counts as four columns. It
// leaves out lines that can't be split: those with a URL, and those of a literal in back quotes. The path of
// the module does not count where make module-path changes the path, which may become longer.
func wideLines(fset *token.FileSet, syntax *ast.File, text string) (wide []int) {
	raw := map[int]bool{}
	ast.Inspect(syntax, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, "`") {
			for line := fset.Position(literal.Pos()).Line; line <= fset.Position(literal.End()).Line; line++ {
				raw[line] = true
			}
		}
		return true
	})
	paths := regexp.MustCompile("(^|[^A-Za-z0-9_/.-])" + regexp.QuoteMeta(module) + "/") // as in tools/module-path
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		if columns(line) > maxColumns && !raw[number] && !strings.Contains(line, "://") &&
			columns(paths.ReplaceAllString(line, "$1")) > maxColumns {
			wide = append(wide, number)
		}
	}
	return wide
}

// columns returns the width of a line.
func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// checkPackageComment requires exactly one package comment. If a folder contains only tests, one of them
// carries it.
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
			r.at(found[0].syntax.Package, "the package comment must begin with \"Package %s\"", name)
		}
	}
}

// wellKnownMethods are methods that need no comment, since an interface of the standard library
// defines their meaning.
var wellKnownMethods = []string{"Error", "Read", "ServeHTTP", "String", "Unwrap", "Write"}

// checkComments requires a comment for every exported identifier.
func checkComments(r *report, f *folder) {
	for _, s := range f.code() {
		for _, decl := range s.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if exportedFunc(d) && d.Doc.Text() == "" &&
					!(d.Recv != nil && slices.Contains(wellKnownMethods, d.Name.Name)) {
					r.at(d.Name.Pos(), "%s is exported and has no comment", d.Name.Name)
				}
			case *ast.GenDecl:
				checkGroup(r, d)
			}
		}
	}
}

// checkGroup accepts one comment for a whole group of constants or variables, and one comment above
// several names that mentions each of them. Every type needs a comment of its own.
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
	return strings.FieldsFunc(text,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}

// exportedFunc reports whether other packages can call a function, or a method of an exported type.
func exportedFunc(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() {
		return false
	}
	return d.Recv == nil || ast.IsExported(receiver(d))
}

// receiver returns the name of the type of a method.
func receiver(method *ast.FuncDecl) string {
	base := method.Recv.List[0].Type
	for {
		switch t := base.(type) {
		case *ast.StarExpr:
			base = t.X
		case *ast.IndexExpr:
			base = t.X
		case *ast.IndexListExpr:
			base = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// checkHiddenTypes reports exported identifiers of hiddenTypes.dir that mention a hidden type: in
// signatures, exported fields, methods of interfaces, and variables. It follows the package's own
// aliases.
func checkHiddenTypes(r *report, f *folder) {
	if f.dir != hiddenTypes.dir {
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

// typeExpr is a type expression and its file.
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
				case i < len(spec.Values): // the value determines the type
					g.look(name, s, spec.Values[i])
				case len(spec.Values) == 1:
					g.look(name, s, spec.Values[0])
				}
			}
		}
	}
}

// look reports name if the node mentions a hidden type.
func (g *leaks) look(name *ast.Ident, s *source, n ast.Node) {
	if p := g.find(s, n, nil); p != "" {
		g.at(name.Pos(), "%s is exported and mentions a type of %s: package %s hides these types", name.Name, p,
			hiddenTypes.dir)
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
			if x, ok := n.X.(*ast.Ident); ok && within(s.imports[x.Name], hiddenTypes.path) {
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

// exportedField reports whether other packages can use a field. It treats every embedded field as
// exported.
func exportedField(f *ast.Field) bool {
	return len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
}

// typeSpecs returns the types that a file declares.
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
