package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestPageIsRun compares the page with the steps: the steps run every block, and name no other block.
func TestPageIsRun(t *testing.T) {
	p, err := newPage("../../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("steps*.go")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{"settings": true}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		calls := regexp.MustCompile(`\.blocks?\(ctx, ("[a-z0-9", -]+")\)`)
		for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
			for _, name := range regexp.MustCompile(`[a-z0-9-]+`).FindAllString(call[1], -1) {
				called[name] = true
			}
		}
	}
	for _, name := range p.names {
		if !called[name] {
			t.Errorf("no step runs the commands named %q", name)
		}
	}
	for name := range called {
		if !slices.Contains(p.names, name) {
			t.Errorf("a step runs the commands named %q, and %s has none", name, pagePath)
		}
	}
	if len(p.names) < 10 {
		t.Errorf("the page has %d blocks only", len(p.names))
	}
}

func TestBlocks(t *testing.T) {
	names, found, err := blocks("# A page\n\n```sh first\necho 1\necho 2\n```\n\n```text\nno command\n```\n\n" +
		"```sh second\necho 3\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"first", "second"}) || found["first"] != "echo 1\necho 2\n" ||
		found["second"] != "echo 3\n" {
		t.Errorf("found %q, %q", names, found)
	}
	for _, text := range []string{"```sh\necho\n```\n", "```sh a\necho\n```\n```sh a\necho\n```\n"} {
		if _, _, err := blocks(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
