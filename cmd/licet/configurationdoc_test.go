package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the generated parts of the docs anew")

// TestEverySettingIsDocumented compares the table of docs/reference/configuration.md with the flags of licet dev and
// licet serve, both ways: the name, the variable, both defaults and the meaning. Every setting that the other sections
// of the page name exists.
func TestEverySettingIsDocumented(t *testing.T) {
	const begin, end = "<!-- settings -->\n", "<!-- /settings -->\n"
	path := filepath.Join("..", "..", "docs", "reference", "configuration.md")
	page := readText(t, path)
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/reference/configuration.md has no generated part")
	}
	table, names := settingsTable()
	want := before + begin + table + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != want {
		t.Error("docs/reference/configuration.md differs from the flags: run this test with -update")
	}
	more := after[:strings.Index(after, "## Files")]
	for _, m := range regexp.MustCompile("(?m)^\\| (`.*`) \\|").FindAllStringSubmatch(more, -1) {
		for _, name := range strings.Split(m[1], ", ") {
			name = strings.Trim(name, "`-")
			prefix, group := strings.CutSuffix(name, "…")
			known := func(n string) bool { return n == name || group && strings.HasPrefix(n, prefix) }
			if !slices.ContainsFunc(names, known) {
				t.Errorf("docs/reference/configuration.md explains --%s, which does not exist", name)
			}
		}
	}
}

// settingsTable returns the table of all flags of licet dev and licet serve, in the order of their help, and the names
// of the flags.
func settingsTable() (table string, names []string) {
	type setting struct {
		flag     *pflag.Flag
		defaults [2]string
	}
	var (
		dev      devConfig
		serve    serveConfig
		settings = make(map[string]*setting)
	)
	for column, addFlags := range []func(*pflag.FlagSet){serve.addFlags, dev.addFlags} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		addFlags(flags)
		flags.SortFlags = false
		flags.VisitAll(func(f *pflag.Flag) {
			s := settings[f.Name]
			if s == nil {
				s = &setting{f, [2]string{"–", "–"}}
				settings[f.Name] = s
				names = append(names, f.Name)
			}
			s.defaults[1-column] = "`" + f.DefValue + "`"
			if f.DefValue == "" || f.DefValue == "[]" {
				s.defaults[1-column] = "none"
			}
		})
	}
	var b strings.Builder
	b.WriteString("| Flag | Variable | Default of `licet dev` | Default of `licet serve` | Meaning |\n" +
		"|---|---|---|---|---|\n")
	for _, name := range names {
		s := settings[name]
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s | %s |\n",
			name, variable(s.flag), s.defaults[0], s.defaults[1], meaning(s.flag))
	}
	return b.String(), names
}

// meaning returns the usage of a flag as a sentence in Markdown.
func meaning(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	text = strings.TrimSuffix(text, " ($"+variable(f)+")")
	text = regexp.MustCompile(`--[a-z-]+|https?://[a-z0-9.:]*`).ReplaceAllString(text, "`$0`")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
