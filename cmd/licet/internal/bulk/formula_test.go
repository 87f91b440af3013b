package bulk

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGuard(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"editor":            "editor",
		"it's = 3":          "it's = 3",
		"'quoted'":          "'quoted'",
		"=1+1":              "'=1+1",
		"+49 30":            "'+49 30",
		"-x":                "'-x",
		"@SUM(A1)":          "'@SUM(A1)",
		"\t=1":              "'\t'=1",
		"\r=1":              "'\r=1",
		"\n=1":              "'\n=1",
		"＝1":                "'＝1",
		"'=1":               "''=1",
		"''-":               "'''-",
		`{"a":"=1"}`:        `{"a":"=1"}`,
		"=HYPERLINK(\"x\")": "'=HYPERLINK(\"x\")",
		"a;=1":              "a;'=1",
		"a\t=1":             "a\t'=1",
		"a;b;;-1;":          "a;b;;'-1;",
		"a;'=1":             "a;''=1",
		`a;"=1"`:            `a;'"=1"`,
		"=1;@x":             "'=1;'@x",
		";=1":               ";'=1",
		"a,=1; b":           "a,=1; b",
	} {
		if got := guard(text); got != want {
			t.Errorf("guard(%q) = %q, want %q", text, got, want)
		}
		if got := unguard(want); got != text {
			t.Errorf("unguard(%q) = %q, want %q", want, got, text)
		}
	}
}

// TestUnguardOfEarlierExports: earlier versions put an apostrophe only at the beginning of a cell.
func TestUnguardOfEarlierExports(t *testing.T) {
	for text, want := range map[string]string{"'\t=1": "\t=1", "'=1;=2": "=1;=2", "a;=1": "a;=1"} {
		if got := unguard(text); got != want {
			t.Errorf("unguard(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestUnguardUndoesGuard(t *testing.T) {
	text := rapid.StringMatching(`['=+\-@a\t＝;"]{0,8}.{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		want := text.Draw(t, "text")
		guarded := guard(want)
		if startsFormula(guarded) {
			t.Errorf("%q would run", guarded)
		}
		for _, cell := range strings.Split(strings.ReplaceAll(guarded, "\t", ";"), ";")[1:] {
			if startsFormula(strings.TrimLeft(cell, `"`)) {
				t.Errorf("%q of %q would run", cell, guarded)
			}
		}
		if got := unguard(guarded); got != want {
			t.Errorf("%q became %q", want, got)
		}
	})
}
