package archtest

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestOtherModules checks the code of the other modules in the repository, such as deploy/release: the rules for lines,
// sizes, package comments and maps hold there, too.
func TestOtherModules(t *testing.T) {
	wantNoViolations(t, checkOtherModules)
}

// checkOtherModules returns the violations in the modules below the root of a tree.
func checkOtherModules(tree fs.FS) (violations []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." || !entry.IsDir() {
			return err
		}
		if ignored(name) {
			return fs.SkipDir
		}
		if !isModule(tree, name) {
			return nil
		}
		inner, err := fs.Sub(tree, name)
		if err != nil {
			return err
		}
		found, err := checkRules(inner, checkLength, checkWidth, checkFolderSize, checkTypeSize, checkPackageComment,
			checkFileMap)
		for _, c := range found {
			violations = append(violations, path.Join(name, c))
		}
		return err
	})
	return violations, err
}

// TestOtherModulesAreChecked: a wide line, a long file and a lost file of another module are violations, also of a
// module inside the folder of another one.
func TestOtherModulesAreChecked(t *testing.T) {
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"go.mod":                 "module x\n",
		"wide.go":                "package x // " + strings.Repeat("w", maxColumns) + "\n",
		"deploy/go.mod":          "module x/deploy\n",
		"deploy/doc.go":          "// Package deploy is small. Its map:\n//\n//\tdoc.go this\npackage deploy\n",
		"deploy/a.go":            "package deploy\n\n// " + strings.Repeat("w", maxColumns) + "\n",
		"deploy/in/go.mod":       "module x/deploy/in\n",
		"deploy/in/b.go":         "// Package in is long.\npackage in\n" + strings.Repeat("\n", maxLines),
		"deploy/testdata/go.mod": "module x/deploy/testdata\n",
		"deploy/testdata/c.go":   "package none\n",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := checkOtherModules(tree)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"deploy/a.go:3: has more than 120 columns",
		"deploy/doc.go:4: the map of the package lacks a.go",
		"deploy/in/b.go:402: has 402 lines; the limit is 400",
	}, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// sharedVersions are pairs of modules that require the same versions of the modules that both require. Otherwise Go
// compiles the packages of these modules, and all packages that import them, once for each version.
var sharedVersions = [][2]string{
	{"deploy/k8s/tools/etcd/go.mod", "go.mod"},
	{"loadtest/k6/go.mod", "go.mod"},
	{"tools/go.mod", "go.mod"},
	{"deploy/k8s/tools/kubernetes/go.mod", "deploy/k8s/check/go.mod"},
}

// ownVersions are modules whose versions may differ. Of deploy/k8s/tools/kubernetes, only kubelet needs its module, and
// .ci/run does not build kubelet. k6 is written for an earlier json, and needs later versions of two small packages.
var ownVersions = []string{"github.com/cyphar/filepath-securejoin", "github.com/go-json-experiment/json",
	"github.com/mattn/go-colorable", "github.com/mattn/go-isatty"}

// TestSharedVersions compares the versions of each pair of modules.
func TestSharedVersions(t *testing.T) {
	for _, pair := range sharedVersions {
		var versions [2]map[string]string
		for i, name := range pair {
			text, err := os.ReadFile("../../" + name)
			if err != nil {
				t.Fatal(err)
			}
			versions[i] = requirements(string(text))
		}
		a, b := versions[0], versions[1]
		for _, name := range slices.Sorted(maps.Keys(a)) {
			if v := b[name]; v != "" && v != a[name] && !slices.Contains(ownVersions, name) {
				t.Errorf("%s has %s %s, and %s has %s: go get the greater version", pair[0], name, a[name], pair[1], v)
			}
		}
	}
}

var (
	required = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) (v\S+)`)
	replaced = regexp.MustCompile(`(?m)^(?:replace |\t)(\S+)(?: v\S+)? => \S+ (v\S+)`)
)

// requirements returns the version of each module that a go.mod requires, after its replacements.
func requirements(text string) map[string]string {
	versions := map[string]string{}
	for _, lines := range []*regexp.Regexp{required, replaced} {
		for _, match := range lines.FindAllStringSubmatch(text, -1) {
			versions[match[1]] = match[2]
		}
	}
	return versions
}

func TestRequirements(t *testing.T) {
	got := requirements("module x\n\nreplace (\n\ta.example/a => b.example/b v1.2.0\n)\n\n" +
		"replace c.example/c v1.0.0 => c.example/c v1.1.0\n\nrequire d.example/d v1.0.0\n\n" +
		"require (\n\ta.example/a v1.0.0\n\tc.example/c v1.0.0 // indirect\n)\n")
	want := map[string]string{"a.example/a": "v1.2.0", "c.example/c": "v1.1.0", "d.example/d": "v1.0.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
}
