package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docPage returns the text of a page, named by its path below docs.
func docPage(t *testing.T, name string) string {
	t.Helper()
	return readText(t, filepath.Join("..", "..", "docs", filepath.FromSlash(name)))
}

// blocksOf returns the code blocks of a page in a language, without the indentation of a list that a block is in.
func blocksOf(page, language string) (blocks []string) {
	fence := regexp.MustCompile("(?m)^( *)```" + language + "\n")
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		indent := page[at[2]:at[3]]
		block, _, _ := strings.Cut("\n"+page[at[1]:], "\n"+indent+"```\n")
		blocks = append(blocks, strings.ReplaceAll(block, "\n"+indent, "\n")[1:]+"\n")
	}
	return blocks
}

// runDocumented runs all sh blocks of a page in one shell, with a separate licet dev and the programs of some folders.
// It returns the licet dev, the output and the number of blocks.
//
// Where the page says to stop licet dev, the shell stops it. A licet dev that the page starts is stopped when it is
// ready.
func runDocumented(t *testing.T, page string, programs ...string) (p *process, printed string, blocks int) {
	t.Helper()
	needTools(t, "sh", "sed")
	p = startProcess(t, filepath.Join(t.TempDir(), "licet-data"))
	stop := fmt.Sprintf("kill %d; while kill -0 %[1]d 2>/dev/null; do sleep 0.1; done", p.cmd.Process.Pid)
	dev := regexp.MustCompile(`(?m)^licet dev .*`)
	var commands strings.Builder
	commands.WriteString("set -e\n")
	for _, block := range blocksOf(page, "sh") {
		blocks++
		block = strings.ReplaceAll(block, "# stop licet dev here", stop)
		commands.WriteString(dev.ReplaceAllString(block, `$0 --listen 127.0.0.1:0 > dev.log 2>&1 & dev=$$!
until grep '^`+lastLineOfStart+`' dev.log; do kill -0 $$dev; sleep 0.1; done
kill $$dev; wait $$dev`))
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", commands.String())
	cmd.Dir = filepath.Dir(p.dir)
	path := append(append([]string{selfAsLicet(t)}, programs...), os.Getenv("PATH"))
	cmd.Env = append(plainEnvironment(), "PATH="+strings.Join(path, string(os.PathListSeparator)),
		"XDG_CONFIG_HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v, after\n%s", err, out)
	}
	return p, string(out), blocks
}

// selfAsLicet returns a folder with a program licet, which is this test binary.
func selfAsLicet(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(folder, "licet"),
		"#!/bin/sh\n"+runAsLicet+"=1 GORACE=atexit_sleep_ms=0 exec '"+self+"' \"$@\"\n")
	if err := os.Chmod(filepath.Join(folder, "licet"), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}
