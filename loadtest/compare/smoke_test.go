package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
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

// fairFloor is the share of its rate that each attack of the row fair must leave another account, also on a busy
// machine and in loads of a fraction of a second. The faults that the row was made for left 0.03.
const fairFloor = 0.2

// quickly runs the comparison in small, and returns its report.
func quickly(t *testing.T, args ...string) (d document) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append(args, "--quick", "--no-fail", "--dir", t.TempDir())
	if depth.Raced() {
		args = append(args, "--build-flags", "-race")
	}
	if code := command(t.Context(), args, &stdout, &stderr); code != rig.ExitOK {
		t.Fatalf("exit code %d; stderr:\n%s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if !strings.HasPrefix(lines[0], "QUICK") {
		t.Errorf("it does not begin by saying that it means nothing: %s", lines[0])
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil {
		t.Fatalf("the last line is no JSON: %v", err)
	}
	return d
}

// unfair returns the lines of attacks that were measured and left less than fairFloor.
func unfair(d document) (below []result) {
	for _, line := range d.Rows {
		if line.Row == "fair" && line.Verdict != unknown && line.Median < fairFloor {
			below = append(below, line)
		}
	}
	return below
}

// TestEveryRowIsFilled runs the comparison in small: real etcd, real nodes. Its speed does not matter, but no attack of
// the row fair may leave less than fairFloor.
func TestEveryRowIsFilled(t *testing.T) {
	depth.NeedFull(t)
	t.Parallel()
	var cfg config
	d := quickly(t)
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
	// Other tests may have delayed a short load, and an attack begins with a burst: so longer loads decide.
	if below := unfair(d); len(below) > 0 {
		again := []string{"--only=fair", "--rounds=3", "--span=2s"}
		for _, line := range below {
			t.Logf("%s: %v: measured again", line.Figure, line.Median)
			again = append(again, "--attack="+strings.TrimPrefix(line.Figure, fairRow().figure+": "))
		}
		for _, line := range unfair(quickly(t, again...)) {
			t.Errorf("%s: %v, want a median of at least %v", line.Figure, line.Samples, fairFloor)
		}
	}
}

// TestAgainst measures a program against itself.
func TestAgainst(t *testing.T) {
	depth.NeedFull(t)
	t.Parallel()
	licet := filepath.Join(t.TempDir(), "licet")
	if err := process.BuildLicet(t.Context(), "", licet); err != nil {
		t.Fatal(err)
	}
	d := quickly(t, "--licet", licet, "--against", licet, "--rounds", "2")
	for _, row := range []string{"cold", "distinct", "hot", "mixed", "reactivate"} {
		name := row + ": rate ÷ the other program's"
		if !slices.ContainsFunc(d.Figures, func(f *figure) bool {
			return f.Name == name && len(f.Samples) == 2 && min(f.Samples[0], f.Samples[1]) > 0
		}) {
			t.Errorf("no %s in %+v", name, d.Figures)
		}
	}
	if len(d.Rows) > 0 {
		t.Errorf("rows: %+v", d.Rows)
	}
}

// TestUnfair: the median of the rounds of an attack decides.
func TestUnfair(t *testing.T) {
	r := newReport()
	for _, c := range fairRow().checks {
		r.add("fair", c.name, 0.2)
	}
	bad := attacks()[0].name
	r.add("fair", bad, 0.03)
	wanted := func(id ...string) bool { return slices.Contains(id, "fair") }
	below := unfair(document{Rows: r.results(wanted)})
	if len(below) != 1 || !strings.HasSuffix(below[0].Figure, bad) {
		t.Errorf("got %+v", below)
	}
	r.add("fair", bad, 0.9)
	if below := unfair(document{Rows: r.results(wanted)}); len(below) > 0 {
		t.Errorf("got %+v", below)
	}
}

func TestUsageError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := command(t.Context(), []string{"--rounds", "none"}, &stdout, &stderr); code != rig.ExitUsage ||
		stderr.Len() == 0 {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	if code := command(t.Context(), []string{"--against", "licet", "--only", "hot"}, &stdout, &stderr); code !=
		rig.ExitUsage {
		t.Errorf("rows beside another program: exit code %d, %s", code, &stderr)
	}
	if code := command(t.Context(), []string{"--help"}, &stdout, &stderr); code != rig.ExitOK ||
		!strings.Contains(stderr.String(), "--quick") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}
