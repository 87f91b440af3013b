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
			walk(child)
		}
	}
	var parsed bool
	walk(newRoot(io.Discard, io.Discard, &parsed))
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
	needTools(t, "curl")
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

// runDocumented runs all sh blocks of a page in one shell, with a separate licet dev. It returns the licet dev, the
// output and the number of blocks.
func runDocumented(t *testing.T, page string) (p *process, printed string, blocks int) {
	t.Helper()
	needTools(t, "sh", "sed")
	p = startProcess(t, filepath.Join(t.TempDir(), "licet-data"))
	bin := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n" + runAsLicet + "=1 GORACE=atexit_sleep_ms=0 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "licet"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var commands strings.Builder
	commands.WriteString("set -e\n")
	for _, block := range strings.Split(page, "\n```sh\n")[1:] {
		blocks++
		block, _, _ = strings.Cut(block, "\n```\n")
		commands.WriteString(block + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", commands.String())
	cmd.Dir = filepath.Dir(p.dir)
	cmd.Env = append(plainEnvironment(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"XDG_CONFIG_HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v, after\n%s", err, out)
	}
	return p, string(out), blocks
}
