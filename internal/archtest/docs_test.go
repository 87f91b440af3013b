package archtest

import (
	"fmt"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// maxColumns is how wide a line of a page may be, except in tables and code, and with a URL. The same limit holds for
// lines of Go code, see wideLines.
const maxColumns = 120

// TestPages checks the links and the line lengths of every page of the repository.
func TestPages(t *testing.T) {
	wantNoViolations(t, checkPages)
}

// checkPages returns what is wrong with the pages (*.md) of a tree: a link to a missing file, a link to a missing
// heading, a line that is too long, or a page of a folder of docs that the folder's README does not link. It skips
// folders that begin with a dot and build output.
func checkPages(tree fs.FS) (violations []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hasNoPages(entry) {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		found, err := checkPage(tree, name)
		violations = append(violations, found...)
		if folder, page := path.Split(name); path.Dir(path.Dir(name)) == "docs" && page != "README.md" {
			index, _ := fs.ReadFile(tree, folder+"README.md")
			if !strings.Contains(string(index), "]("+page+")") {
				violations = append(violations, name+" is not in the README.md of its folder")
			}
		}
		return err
	})
	return violations, err
}

// TestArchitectureListsThePackages compares the list of packages in docs/explanation/architecture.md with the folders
// of the module, and its order with their imports.
func TestArchitectureListsThePackages(t *testing.T) {
	wantNoViolations(t, checkArchitecture)
}

// checkArchitecture returns the packages that the architecture page does not list or does not list above each package
// that they import, and the folders that the page lists and that do not exist. Packages whose name ends in "test" need
// no line.
func checkArchitecture(tree fs.FS) (violations []string, err error) {
	const page = "docs/explanation/architecture.md"
	text, err := fs.ReadFile(tree, page)
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(text), "\n## Packages and their order\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, line := range packageLine.FindAllStringSubmatch(section, -1) {
		listed = append(listed, line[1])
		if _, err := fs.Stat(tree, line[1]); err != nil {
			violations = append(violations, page+" lists "+line[1]+", which is not a folder")
		}
	}
	folders, err := load(tree, &report{fset: token.NewFileSet()})
	for _, f := range folders {
		at := slices.Index(listed, f.dir)
		if at < 0 {
			if !strings.HasSuffix(f.dir, "test") {
				violations = append(violations, page+" does not list the package "+f.dir)
			}
			continue
		}
		for _, other := range listed[:at] {
			if f.imports(other) {
				violations = append(violations,
					fmt.Sprintf("%s lists %s below %s, which it imports", page, f.dir, other))
			}
		}
	}
	return violations, err
}

// packageLine is a line of the list of packages: the folder, and what the package is for.
var packageLine = regexp.MustCompile(`(?m)^    ([a-z0-9/-]+)  +\S`)

// TestArchitectureIsChecked checks the check.
func TestArchitectureIsChecked(t *testing.T) {
	importing := func(packages ...string) *fstest.MapFile {
		text := "package x\n"
		for _, p := range packages {
			text += fmt.Sprintf("import %q\n", p)
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	got, err := checkArchitecture(fstest.MapFS{
		"node/x.go": importing("fmt", "licet/node/store"), "node/x_test.go": importing("licet/kv"),
		"node/store/x.go": importing(), "node/storetest/x.go": importing("licet/kv"),
		"kv/x.go": importing(), "kv/y.go": importing("licet/node/store", "licet/kv/internal/layout"),
		"kv/internal/etcd/x.go": importing(), "kv/internal/layout/x.go": importing(), "store/x.go": importing(),
		"docs/explanation/architecture.md": {Data: []byte(`# Architecture

    store   not in the list

## Packages and their order

    node                the engine
    node/store          interfaces
    node/gone           not a folder
    kv                  the store
    kv/internal/layout  keys

## Data

    func Apply  of package
    store       not in the list
`)},
	})
	want := []string{
		"docs/explanation/architecture.md lists node/gone, which is not a folder",
		"docs/explanation/architecture.md lists kv below node/store, which it imports",
		"docs/explanation/architecture.md does not list the package kv/internal/etcd",
		"docs/explanation/architecture.md does not list the package store",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("violations (-want +got), %v:\n%s", err, diff)
	}
}

// hasNoPages reports whether an entry is a folder that begins with a dot or contains build output.
func hasNoPages(entry fs.DirEntry) bool {
	name := entry.Name()
	return entry.IsDir() && name != "." &&
		(strings.HasPrefix(name, ".") ||
			slices.Contains([]string{"bin", "testdata", "load-results", "node_modules"}, name))
}

var (
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
)

func checkPage(tree fs.FS, name string) (violations []string, err error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	for number, line := range prose(string(text)) {
		length := utf8.RuneCountInString(line)
		if length > maxColumns && !strings.HasPrefix(line, "|") && !strings.Contains(line, "://") {
			violations = append(violations, fmt.Sprintf("%s:%d has %d columns", name, number, length))
		}
		for _, match := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "``"), -1) {
			if problem := checkLink(tree, name, match[1]); problem != "" {
				violations = append(violations, fmt.Sprintf("%s:%d links to %s: %s", name, number, match[1], problem))
			}
		}
	}
	return violations, nil
}

// checkLink returns why a link of a page leads nowhere, or "". Links to other sites are not checked.
func checkLink(tree fs.FS, page, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, heading, _ := strings.Cut(target, "#")
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	if _, err := fs.Stat(tree, name); err != nil {
		return "no such file"
	}
	if heading == "" {
		return ""
	}
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return "a folder has no headings"
	}
	if !slices.Contains(anchors(string(text)), heading) {
		return "no such heading"
	}
	return ""
}

// prose iterates over the lines of a page outside code blocks, with their numbers.
func prose(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fenced, number := false, 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.HasPrefix(strings.TrimLeft(line, " "), "```"):
				fenced = !fenced
			case fenced || strings.HasPrefix(line, "    "):
			case !yield(number, line):
				return
			}
		}
	}
}

// anchors returns the anchors of the headings of a page, as GitHub forms them.
func anchors(text string) (all []string) {
	seen := map[string]int{}
	for _, line := range prose(text) {
		marks, heading, found := strings.Cut(line, " ")
		if !found || strings.Trim(marks, "#") != "" || marks == "" {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, heading)
		if n := seen[anchor]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return all
}

// TestPagesAreChecked checks the checks: each page has one fault, or comes close to one.
func TestPagesAreChecked(t *testing.T) {
	long := strings.Repeat("é ", maxColumns/2)
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"main.go":       "package main\n",
		"docs/other.md": "# Other\n\n## What's `new`?\n\n## Twice\n\n## Twice\n",
		"docs/good.md":  "[a](other.md#whats-new) [b](other.md#twice-1)\n[c](../main.go) [d](..) [e](#f)\n\n# F\n",
		"docs/long.md": long + "\n" + long + "x\n|" + long + "|\nhttps://" + long + "\n    " + long +
			"\n```\n" + long + "x\n```\n",
		"docs/file.md":          "`[a](gone.md)`\n```\n[a](gone.md)\n```\n[a](gone.md)\n",
		"docs/guides/README.md": "[a](in.md)\n",
		"docs/guides/in.md":     "in\n",
		"docs/guides/out.md":    "out\n",
		"docs/heading.md":       "[a](other.md#new) [b](..#new) [c](https://example.com/gone)\n",
		".hidden/skipped.md":    "[a](gone.md)\n",
		"testdata/skipped.md":   "[a](gone.md)\n",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := checkPages(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/file.md:5 links to gone.md: no such file",
		"docs/guides/out.md is not in the README.md of its folder",
		"docs/heading.md:1 links to other.md#new: no such heading",
		"docs/heading.md:1 links to ..#new: a folder has no headings",
		"docs/long.md:2 has 121 columns",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
