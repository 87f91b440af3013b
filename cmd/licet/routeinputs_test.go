package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// routeInputs is what a route reads of a request, as the source of package
// handlers says. A table of bad inputs that is held against it can't lack any.
type routeInputs struct {
	method, pattern string
	access          string            // open, keyed, or empty: nobody's credentials are looked at
	body            string            // jsonBody, formBody or empty
	members         map[string]string // of the body, with what reads them: textMember and so on
	queries         map[string]bool
	once            bool // an Idempotency-Key is read
}

func (r *routeInputs) name() string { return r.method + " " + r.pattern }

// variables lists the variable segments of the path.
func (r *routeInputs) variables() (names []string) {
	for _, found := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(r.pattern, -1) {
		names = append(names, found[1])
	}
	return names
}

// handlersSource is package handlers, type-checked without what it imports: all
// that is asked of it is which of its own functions call which.
type handlersSource struct {
	info      types.Info
	functions map[*types.Func]*ast.FuncDecl
}

func parseHandlers(t *testing.T) *handlersSource {
	t.Helper()
	const dir = "../../handlers"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(dir, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	h := &handlersSource{
		info:      types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)},
		functions: make(map[*types.Func]*ast.FuncDecl),
	}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}} // of what is imported all is missing
	_, _ = config.Check("licet/handlers", set, files, &h.info)
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				if object, ok := h.info.Defs[f.Name].(*types.Func); ok {
					h.functions[object] = f
				}
			}
		}
	}
	return h
}

// emptyPackages imports every package as an empty one.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	return p, nil
}

// routes reads the table of routes, and what their handlers read.
func (h *handlersSource) routes(t *testing.T) []*routeInputs {
	t.Helper()
	var routes []*routeInputs
	attributed := make(map[*ast.CallExpr]bool)
	for object, f := range h.functions {
		if object.Name() != "apiRoutes" && object.Name() != "probeRoutes" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			row, ok := n.(*ast.CompositeLit)
			if !ok || row.Type != nil { // the rows themselves leave their type out
				return true
			}
			routes = append(routes, h.route(row, attributed))
			return false
		})
	}
	// Each function that reads a member must have been found in some route. refuseIfShared
	// looks ahead at a member that the handlers of the same routes read themselves.
	for object, f := range h.functions {
		if object.Name() == "refuseIfShared" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && memberReader(h.called(call)) && !attributed[call] {
				t.Errorf("%s reads a member, and no route was found to call it", f.Name)
			}
			return true
		})
	}
	return routes
}

func memberReader(name string) bool {
	switch name {
	case "textMember", "integerMember", "objectMember", "textsMember", "flagMember":
		return true
	}
	return false
}

// route reads a row of the table.
func (h *handlersSource) route(row *ast.CompositeLit, attributed map[*ast.CallExpr]bool) *routeInputs {
	r := &routeInputs{members: make(map[string]string), queries: make(map[string]bool)}
	for _, element := range row.Elts {
		pair := element.(*ast.KeyValueExpr)
		ident, _ := pair.Value.(*ast.Ident)
		switch pair.Key.(*ast.Ident).Name {
		case "method":
			r.method = literal(pair.Value)
		case "pattern":
			r.pattern = literal(pair.Value)
		case "access":
			r.access = ident.Name
		case "body":
			r.body = ident.Name
		case "handle":
			if handler, ok := h.info.Uses[pair.Value.(*ast.SelectorExpr).Sel].(*types.Func); ok {
				h.read(r, handler, make(map[*types.Func]bool), attributed)
			}
		}
	}
	return r
}

// read notes what a function reads, and all that it calls.
func (h *handlersSource) read(r *routeInputs, f *types.Func, seen map[*types.Func]bool, attributed map[*ast.CallExpr]bool) {
	decl := h.functions[f]
	if decl == nil || seen[f] {
		return
	}
	seen[f] = true
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if callee, ok := h.info.Uses[n].(*types.Func); ok {
				h.read(r, callee, seen, attributed)
			}
		case *ast.IndexExpr:
			if r.body == "formBody" && literal(n.Index) != "" {
				r.members[literal(n.Index)] = "form"
			}
		case *ast.CallExpr:
			switch name := h.called(n); {
			case memberReader(name):
				r.members[literal(n.Args[0])] = name
				attributed[n] = true
			case name == "queryValue" && literal(n.Args[1]) != "":
				r.queries[literal(n.Args[1])] = true
			case name == "filter" && literal(n.Args[0]) != "":
				r.queries[literal(n.Args[0])] = true
			case name == "once":
				r.once = true
			}
		}
		return true
	})
}

// called is the name of the function of the package that is called, if it is one.
func (h *handlersSource) called(call *ast.CallExpr) string {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return ""
	}
	if object, ok := h.info.Uses[name].(*types.Func); ok && h.functions[object] != nil {
		return object.Name()
	}
	return ""
}

// literal is what a string literal says; empty for everything else.
func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	value, _ := strconv.Unquote(l.Value)
	return value
}

// TestInputsArePublished: the reference has every member and query parameter that
// a route reads.
func TestInputsArePublished(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range parseHandlers(t).routes(t) {
		names := slices.Collect(maps.Keys(r.members))
		for _, name := range slices.AppendSeq(names, maps.Keys(r.queries)) {
			if !strings.Contains(string(reference), "`"+name+"`") {
				t.Errorf("docs/reference/api.md has nothing of %s, which %s reads", name, r.name())
			}
		}
	}
}
