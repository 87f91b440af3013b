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
	syntax  *ast.File
	imports map[string]string // name in this file → import path
}

// folder is what one folder holds: a package and its tests.
type folder struct {
	dir   string // "." for the root
	room  *room  // nil where the table has no row
	files []*source
}

// code lists the files that are no tests.
func (f *folder) code() []*source {
	return slices.DeleteFunc(slices.Clone(f.files), func(s *source) bool { return s.test })
}

// report collects complaints with the place they are about.
type report struct {
	fset *token.FileSet
	list []complaint
}

type complaint struct {
	file string
	line int
	text string
}

func (r *report) at(pos token.Pos, format string, args ...any) {
	p := r.fset.Position(pos)
	r.add(p.Filename, p.Line, format, args...)
}

func (r *report) add(file string, line int, format string, args ...any) {
	r.list = append(r.list, complaint{file, line, fmt.Sprintf(format, args...)})
}

// check reads a tree and answers all that is wrong with it, in order of place.
func check(tree fs.FS) ([]string, error) {
	r := &report{fset: token.NewFileSet()}
	folders, err := load(tree, r)
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		for _, rule := range []func(*report, *folder){
			checkTable, checkImports, checkClock, checkSeal,
			checkNames, checkLength, checkPackageComment, checkComments,
			checkVariables, checkAssignments, checkGoroutines, checkDoors, checkOutcomes,
		} {
			rule(r, f)
		}
	}
	slices.SortStableFunc(r.list, func(a, b complaint) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	var out []string
	for _, c := range r.list {
		out = append(out, fmt.Sprintf("%s:%d: %s", c.file, c.line, c.text))
	}
	return out, nil
}

// load parses every Go file of the module, whatever its build constraints.
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
		if path.Ext(name) != ".go" || strings.HasPrefix(path.Base(name), "_") || strings.HasPrefix(path.Base(name), ".") {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &folder{dir: dir, room: roomOf(dir)}
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

// skipped tells whether the go command would not look into a folder, or has
// no business there.
func skipped(tree fs.FS, dir string) bool {
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" {
		return true
	}
	if dir == "bin" || dir == "licet-data" {
		return true
	}
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
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has seen to its form
	return p
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// packageNames guesses what a package calls itself, from its import path. The
// clause itself is out of reach: nothing is downloaded here. For a path like
// go.etcd.io/etcd/client/v3 both "client" and "clientv3" are in use.
func packageNames(importPath string) []string {
	base := path.Base(importPath)
	if parent := path.Base(path.Dir(importPath)); majorVersion.MatchString(base) {
		return []string{parent, parent + base}
	}
	base, _, _ = strings.Cut(base, ".v")
	return []string{base, strings.TrimPrefix(base, "go-")}
}
