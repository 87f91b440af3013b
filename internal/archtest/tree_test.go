package archtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is one parsed Go file.
type source struct {
	path    string // from the module's root, with slashes
	test    bool
	lines   int
	wide    []int // numbers of the lines that are too wide
	syntax  *ast.File
	imports map[string]string // name in this file → import path
}

// folder is a folder with Go files: a package and its tests.
type folder struct {
	dir   string // "." for the root
	row   *row   // nil if the table has no row for the package
	files []*source
}

// code returns the files that are not tests.
func (f *folder) code() []*source {
	return slices.DeleteFunc(slices.Clone(f.files), func(s *source) bool { return s.test })
}

// imports reports whether the package, apart from its tests, imports the package of another folder of the module.
func (f *folder) imports(dir string) bool {
	return slices.ContainsFunc(f.code(), func(s *source) bool {
		return slices.ContainsFunc(s.syntax.Imports, func(spec *ast.ImportSpec) bool {
			return importPath(spec) == module+"/"+dir
		})
	})
}

// report collects violations.
type report struct {
	fset *token.FileSet
	list []violation
}

type violation struct {
	file string
	line int
	text string
}

func (r *report) at(pos token.Pos, format string, args ...any) {
	p := r.fset.Position(pos)
	r.add(p.Filename, p.Line, format, args...)
}

func (r *report) add(file string, line int, format string, args ...any) {
	r.list = append(r.list, violation{file, line, fmt.Sprintf(format, args...)})
}

// check returns all violations in the module of a tree, sorted by position.
func check(tree fs.FS) ([]string, error) {
	return checkRules(tree,
		checkTable, checkImports, checkClock, checkHiddenTypes,
		checkNames, checkLength, checkWidth, checkFolderSize, checkTypeSize, checkPackageComment, checkFileMap,
		checkComments, checkVariables, checkAssignments, checkGoroutines, checkEtcdAccess, checkOutcomes)
}

// checkRules returns the violations of some rules in the module of a tree, sorted by position.
func checkRules(tree fs.FS, rules ...func(*report, *folder)) ([]string, error) {
	r := &report{fset: token.NewFileSet()}
	folders, err := load(tree, r)
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		for _, rule := range rules {
			rule(r, f)
		}
	}
	slices.SortStableFunc(r.list, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	var out []string
	for _, c := range r.list {
		out = append(out, fmt.Sprintf("%s:%d: %s", c.file, c.line, c.text))
	}
	return out, nil
}

// load parses every Go file of the module, whatever its build constraints are.
func load(tree fs.FS, r *report) ([]*folder, error) {
	folders := map[string]*folder{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && skipped(tree, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasPrefix(path.Base(name), "_") ||
			strings.HasPrefix(path.Base(name), ".") {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &folder{dir: dir, row: rowOf(dir)}
		}
		if s := parse(r, name, text); s != nil {
			folders[dir].files = append(folders[dir].files, s)
		}
		return nil
	})
	var list []*folder
	for _, f := range folders {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *folder) int { return cmp.Compare(a.dir, b.dir) })
	return list, err
}

// skipped reports whether the checks of a module skip a folder: the go command ignores it, it is another module,
// or it is generated.
func skipped(tree fs.FS, dir string) bool { return ignored(dir) || isModule(tree, dir) }

// ignored reports whether the go command ignores a folder, or the folder is generated.
func ignored(dir string) bool {
	base := path.Base(dir)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" ||
		dir == "bin" || dir == "licet-data"
}

// isModule reports whether a folder has a module of its own.
func isModule(tree fs.FS, dir string) bool {
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

func parse(r *report, name string, text []byte) *source {
	syntax, err := parser.ParseFile(r.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		line := 1
		if list := (scanner.ErrorList)(nil); errors.As(err, &list) && len(list) > 0 {
			line, err = list[0].Pos.Line, errors.New(list[0].Msg)
		}
		r.add(name, line, "does not parse: %v", err)
		return nil
	}
	s := &source{
		path:    name,
		test:    strings.HasSuffix(name, "_test.go"),
		lines:   bytes.Count(text, []byte("\n")),
		wide:    wideLines(r.fset, syntax, string(text)),
		syntax:  syntax,
		imports: map[string]string{},
	}
	for _, spec := range syntax.Imports {
		p := importPath(spec)
		if spec.Name != nil {
			s.imports[spec.Name.Name] = p
			continue
		}
		for _, guess := range packageNames(p) {
			s.imports[guess] = p
		}
	}
	return s
}

func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked the syntax
	return p
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// packageNames returns the names that a package may have, guessed from its import path. The tests
// don't download packages, so they can't read the package clause. A path like
// go.etcd.io/etcd/client/v3 may have the name "client" or "clientv3".
func packageNames(importPath string) []string {
	base := path.Base(importPath)
	if parent := path.Base(path.Dir(importPath)); majorVersion.MatchString(base) {
		return []string{parent, parent + base}
	}
	base, _, _ = strings.Cut(base, ".v")
	return []string{base, strings.TrimPrefix(base, "go-")}
}
