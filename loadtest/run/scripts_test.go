package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestScriptAlone checks the command of loadtest/README.md that runs a script without this program: the script exists,
// and the scripts read the variables.
func TestScriptAlone(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	command := regexp.MustCompile(`(?m)^ +((?:[A-Z_]+=\S+ )+)k6 run loadtest/(\S+)$`).FindStringSubmatch(read("../README.md"))
	if command == nil {
		t.Fatal("the page runs no script")
	}
	read("../" + command[2])
	settings := read("../lib/settings.js")
	for word := range strings.FieldsSeq(command[1]) {
		name, _, _ := strings.Cut(word, "=")
		if !strings.Contains(settings, "__ENV."+name) {
			t.Errorf("no script reads %s", name)
		}
	}
}
