package trialtest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/loadtest/rig"
)

// parser reads a program's command line.
type parser[C any] func(args []string, stderr io.Writer) (C, error)

// Begin begins a test that plays a trial with these flags besides the usual ones. If the test fails, it logs the
// trial's progress.
func Begin[C any](t *testing.T, parse parser[C], more ...string) (context.Context, C, *rig.Progress) {
	t.Helper()
	depth.NeedFull(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	args := append([]string{"--members", "1", "--dir", t.TempDir()}, more...)
	if depth.Raced() { // as this test, whose packages are in the build cache
		args = append(args, "--build-flags", "-race")
	}
	var log bytes.Buffer
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	cfg, err := parse(args, &log)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, cfg, rig.NewProgress(&log)
}

// Refuses fails a test if a command line is accepted, or refused without the expected
// words. The keys of lines are those words.
func Refuses[C any](t *testing.T, parse parser[C], lines map[string][]string) {
	t.Helper()
	for says, args := range lines {
		if _, err := parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// Nothing fails a test in which there are problems.
func Nothing(t *testing.T, problems []string) {
	t.Helper()
	for _, problem := range problems {
		t.Error(problem)
	}
}

// Says fails a test if the problems found do not contain all wanted words.
func Says(t *testing.T, found []string, wanted ...string) {
	t.Helper()
	text := strings.Join(found, "\n")
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}
