package main

import (
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsOfPagesAreKnown parses every command of licet in the pages, those in sentences and of runbooks too: the
// command and its flags must exist.
func TestCommandsOfPagesAreKnown(t *testing.T) {
	tree, parsed := os.DirFS("../.."), 0
	command := regexp.MustCompile("(?m)(?:^ +|^|`|\\$\\()(?:bin/)?licet(?:-new)? ([a-z][^\n`]*)")
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() &&
			(base == "node_modules" || base == "testdata" || base == "decisions") {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		joined := strings.ReplaceAll(string(text), "\\\n", "")
		for _, match := range command.FindAllStringSubmatch(joined, -1) {
			line, _, _ := strings.Cut(match[1], " #")
			if problem := unknownCommand(t, line); problem != "" {
				t.Errorf("%s: licet %s: %s", name, line, problem)
			}
			parsed++
		}
		return nil
	})
	if err != nil || parsed < 100 {
		t.Errorf("%d commands were found, %v", parsed, err)
	}
}

// unknownCommand returns why licet does not have a command or one of its flags, or "".
func unknownCommand(t *testing.T, line string) string {
	t.Helper()
	line, _, _ = strings.Cut(regexp.MustCompile(`[|>&;)]`).ReplaceAllString(line, "\n"), "\n")
	var parsed bool
	root := newRoot(nil, io.Discard, io.Discard, &parsed)
	root.InitDefaultCompletionCmd()
	words := strings.Fields(line)
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && len(rest) > 0 && regexp.MustCompile(`^[a-z-]+$`).MatchString(rest[0]) {
		return "there is no command " + rest[0]
	}
	for _, word := range words {
		name, flag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if name = strings.TrimRight(name, `.,:"'`); flag && name != "" && name != "help" && name != "version" &&
			cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return "there is no flag --" + name
		}
	}
	return ""
}
