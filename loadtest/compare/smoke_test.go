package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"licet/internal/depth"
	"licet/internal/process"
	"licet/loadtest/rig"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	process.BeEtcd()
	m.Run()
}

// TestEveryRowIsFilled runs the comparison in small: real etcd, real nodes. At full depth it runs every row, at the
// usual depth the rows that share one store, deliveries, accounts, external, and fair. Their speed does not matter.
func TestEveryRowIsFilled(t *testing.T) {
	t.Parallel()
	var cfg config
	if !depth.Full() {
		cfg.only = []string{
			"distinct", "cold", "hot", "reactivate", "mixed", "cpu", "idle", "p99", "overload", "storm", "guessing",
			"deliveries", "backlog", "accounts", "external", "fair",
		}
	}
	var stdout, stderr bytes.Buffer
	args := []string{"--quick", "--no-fail", "--dir", t.TempDir(), "--only=" + strings.Join(cfg.only, ",")}
	if rig.RaceFlag != "" {
		args = append(args, "--build-flags", rig.RaceFlag)
	}
	if code := command(t.Context(), args, &stdout, &stderr); code != rig.ExitOK {
		t.Fatalf("exit code %d; stderr:\n%s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if !strings.HasPrefix(lines[0], "QUICK") {
		t.Errorf("it does not begin by saying that it means nothing: %s", lines[0])
	}
	var d document
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil {
		t.Fatalf("the last line is no JSON: %v", err)
	}
	if !d.Quick || d.Machine.Cores == 0 || d.Machine.Go == "" || d.Machine.Etcd == "" {
		t.Errorf("got %+v", d.Machine)
	}
	checks := 0
	for _, r := range rows() {
		if cfg.wants(r.id) {
			checks += len(r.checks)
		}
	}
	if len(d.Rows) != checks {
		t.Errorf("%d lines, want %d", len(d.Rows), checks)
	}
	for _, line := range d.Rows {
		if line.Verdict == unknown || len(line.Samples) == 0 {
			t.Errorf("not filled: %+v", line)
		}
	}
	// A load that failed has a note; in this small one nothing is refused.
	for _, line := range d.Rows {
		for _, note := range line.Notes {
			if strings.Contains(note, codeName(codeBroken)) {
				t.Errorf("%s: %s", line.Row, note)
			}
		}
	}
}

func TestUsageError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := command(t.Context(), []string{"--rounds", "none"}, &stdout, &stderr); code != rig.ExitUsage ||
		stderr.Len() == 0 {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	if code := command(t.Context(), []string{"--help"}, &stdout, &stderr); code != rig.ExitOK ||
		!strings.Contains(stderr.String(), "--quick") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}
