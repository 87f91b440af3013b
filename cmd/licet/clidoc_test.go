package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// cliDoc returns the text of docs/reference/cli.md.
func cliDoc(t *testing.T) string {
	t.Helper()
	return readText(t, filepath.Join("..", "..", "docs", "reference", "cli.md"))
}

// TestDocumentedCommandsAreAll compares the commands of docs/reference/cli.md with the commands of licet.
func TestDocumentedCommandsAreAll(t *testing.T) {
	var documented, have []string
	_, table, _ := strings.Cut(cliDoc(t), "\n## Commands\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range regexp.MustCompile("`(licet [a-z -]+)`").FindAllStringSubmatch(cells[1], -1) {
			documented = append(documented, name[1])
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			have = append(have, cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			if !child.Hidden && child.Name() != "help" {
				walk(child)
			}
		}
	}
	var parsed bool
	walk(newRoot(nil, io.Discard, io.Discard, &parsed))
	slices.Sort(documented)
	slices.Sort(have)
	if diff := cmp.Diff(documented, have); diff != "" {
		t.Errorf("documented (-), there (+):\n%s", diff)
	}
}

// TestDocumentedCommandsRun runs all commands of docs/reference/cli.md, one after the other in one shell.
func TestDocumentedCommandsRun(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, cliDoc(t))
	if blocks < 8 {
		t.Errorf("there are %d blocks of commands", blocks)
	}
	for _, word := range []string{"49.00 USD", "BOUND AT", "chargeback", "violation of the terms",
		"there is more: add --cursor"} {
		if !strings.Contains(out, word) {
			t.Errorf("it printed nothing of %q:\n%s", word, out)
		}
	}
	if orders := p.want(t, 200, "GET", "/v1/orders", "").Data.list("orders"); len(orders) != 2 {
		t.Errorf("there are %d orders, want 2", len(orders))
	}
}

// TestTutorialRuns runs all commands of the tutorial.
func TestTutorialRuns(t *testing.T) {
	t.Parallel()
	p, out, blocks := runDocumented(t, readText(t, filepath.Join("..", "..", "docs", "tutorials", "first-license.md")))
	if blocks < 8 {
		t.Errorf("there are %d blocks of commands", blocks)
	}
	for _, word := range []string{"49.00 USD", "40901", "license_suspended", "refunded", "license.issued",
		"license.revoked"} {
		if !strings.Contains(out, word) {
			t.Errorf("it printed nothing of %q:\n%s", word, out)
		}
	}
	if licenses := p.want(t, 200, "GET", "/v1/licenses?status=revoked", "").Data.list("licenses"); len(licenses) != 1 {
		t.Errorf("there are %d revoked licenses, want 1", len(licenses))
	}
}

// TestTutorialOfAProgramRuns runs all commands of the tutorial with the example program, and its calls in other
// languages. The Go code of the page is in the program.
func TestTutorialOfAProgramRuns(t *testing.T) {
	t.Parallel()
	needTools(t, "go")
	page := readText(t, filepath.Join("..", "..", "docs", "tutorials", "license-your-program.md"))
	program := readText(t, filepath.Join("..", "..", "examples", "notes", "license.go"))
	for _, code := range blocksOf(page, "go") {
		if !strings.Contains(program, code) {
			t.Errorf("the program does not have this code of the page:\n%s", code)
		}
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "../../examples/notes")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, out, blocks := runDocumented(t, page, bin)
	if blocks < 6 {
		t.Errorf("there are %d blocks of commands", blocks)
	}
	for _, word := range []string{"notes has no license on this device", "notes is activated", "buy milk",
		"exit code 1", "license_suspended", "notes is deactivated"} {
		if !strings.Contains(out, word) {
			t.Errorf("it printed nothing of %q:\n%s", word, out)
		}
	}
	licenses := p.want(t, 200, "GET", "/v1/licenses?product_id=notes", "").Data.list("licenses")
	if len(licenses) != 1 {
		t.Fatalf("there are %d licenses, want 1", len(licenses))
	}
	key, _ := licenses[0]["license_key"].(string)
	for _, language := range []struct {
		block, program, file string
	}{
		{"ts", "node", "license.mjs"},
		{"python", "python3", "check.py"},
	} {
		t.Run(language.program, func(t *testing.T) {
			needTools(t, language.program)
			if !strings.Contains(page, "`"+language.program+" "+language.file+"`") {
				t.Errorf("the page does not say how to run %s", language.file)
			}
			path := filepath.Join(t.TempDir(), language.file)
			writeText(t, path, strings.Join(blocksOf(page, language.block), ""))
			run := func(key string) (string, error) {
				cmd := exec.CommandContext(t.Context(), language.program, path)
				cmd.Env = append(os.Environ(), "LICET_URL="+p.url, "LICENSE_KEY="+key)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := run(key); err != nil || out != "valid\n" {
				t.Errorf("it printed %q, %v", out, err)
			}
			if out, err := run(key + "X"); err == nil || !strings.Contains(out, "40001 invalid_license_key: ") {
				t.Errorf("with a mistyped license key it printed %q, %v", out, err)
			}
		})
	}
}
