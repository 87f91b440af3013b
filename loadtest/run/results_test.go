package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestProofInTheReports(t *testing.T) {
	r, err := newResults(&config{out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path("summary.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &proof{Facts: []fact{{What: "bound devices", Acknowledged: 7, Stored: 6}},
		Problems: []string{"device <x> is lost"}}
	var stdout strings.Builder
	if err := r.writeProof(&stdout, p); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"summary.txt": {"before\n", "WRONG device <x> is lost", "FAILED"},
		"proof.json":  {`"acknowledged": 7`},
	} {
		text, err := os.ReadFile(r.path(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q: %s", name, want, text)
			}
		}
	}
	if !strings.Contains(stdout.String(), "FAILED") {
		t.Errorf("printed %s", &stdout)
	}
}

func TestVerdict(t *testing.T) {
	good := &proof{}
	if text := string(good.text(nil)); !strings.Contains(text, "PASSED") {
		t.Error(text)
	}
	if text := string(good.text(errors.New("a threshold was missed"))); !strings.Contains(text, "FAILED") ||
		strings.Contains(text, "PASSED") {
		t.Error(text)
	}
}

// TestNewResultsForgetOldOnes: k6 appends to the journal that it finds.
func TestNewResultsForgetOldOnes(t *testing.T) {
	cfg := &config{out: t.TempDir()}
	for range 2 {
		r, err := newResults(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(r.path("journal.txt")); err == nil {
			t.Fatal("the old journal is still there")
		}
		if err := os.WriteFile(r.path("journal.txt"), []byte("bind A x 1 2 ok\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
