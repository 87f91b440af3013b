package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// listed is a package as go list shows it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // for the packages that the standard library has copies of
	Module          *struct{ Main bool }
}

// importer finds packages that are checked already.
type importer func(path string) *types.Package

// Import implements [types.Importer].
func (i importer) Import(path string) (*types.Package, error) {
	if p := i(path); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not checked", path)
}

// typeErrors returns why packages of the module in a folder do not compile for a platform. It only checks types, and of
// other modules only declarations, so it takes seconds where a build without a cache takes minutes.
func typeErrors(t *testing.T, folder string, to platform, packages ...string) (found []error) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps",
		"-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, packages...)...)
	list.Dir, list.Stderr = folder, os.Stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+to.arch, "GOOS="+to.os)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; { // each package comes after those it imports
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		ours := p.Module != nil && p.Module.Main
		config := types.Config{
			IgnoreFuncBodies: !ours, Sizes: types.SizesFor("gc", to.arch),
			Importer: importer(func(path string) *types.Package {
				if copied := p.ImportMap[path]; copied != "" {
					path = copied
				}
				return checked[path]
			}),
			Error: func(err error) {
				if ours {
					found = append(found, err)
				}
			},
		}
		checked[p.ImportPath], _ = config.Check(p.ImportPath, files, parsed, nil)
	}
}

// TestOtherPlatforms: the programs and packages for users compile for the platforms that the gate does not build. For
// darwin and windows, amd64 stands for both processors.
func TestOtherPlatforms(t *testing.T) {
	for _, to := range []platform{{"linux", "arm64"}, {"darwin", "amd64"}, {"windows", "amd64"}} {
		programs := "./cmd/licet"
		if to.os == "linux" {
			programs = "./cmd/..."
		}
		t.Run(to.String(), func(t *testing.T) {
			t.Parallel()
			for _, err := range typeErrors(t, repository, to, programs, "./client/...", "./examples/...") {
				t.Error(err)
			}
		})
	}
}

// TestTypeErrors: code that only Linux has is found, in a package that does compile on Linux.
func TestTypeErrors(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n",
		"x.go": "package x\n\nimport \"syscall\"\n\n" +
			"func f() error { return syscall.Mount(\"\", \"\", \"\", 0, \"\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found := typeErrors(t, folder, platform{"linux", "amd64"}, "."); len(found) > 0 {
		t.Errorf("on Linux: %v", found)
	}
	if found := typeErrors(t, folder, platform{"windows", "amd64"}, "."); len(found) != 1 ||
		!strings.Contains(found[0].Error(), "undefined: syscall.Mount") {
		t.Errorf("on Windows: %v", found)
	}
}
