package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestProofInTheReports(t *testing.T) {
	r, err := newResults(&config{out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path("summary.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &proof{Facts: []fact{{What: "bound devices", Acknowledged: 7, Stored: 6}}}
	p.Problem("device <x> is lost")
	if err := r.writeProof(p, time.Second); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"summary.txt": {"before\n", "WRONG: device <x> is lost"},
		"proof.json":  {`"acknowledged": 7`, `"device \u003cx\u003e is lost"`},
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
