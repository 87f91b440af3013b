package main

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/trial"
	"licet/loadtest/trial/trialtest"
)

// TestSmallRun is a run in small: real etcd, real nodes, real kills. Then things are
// done that the journal does not know of, and deliveries are struck from the books,
// each of which must be found.
func TestSmallRun(t *testing.T) {
	ctx, cfg, progress := trialtest.Begin(t, parseConfig, "--activations", "150", "--kills", "4",
		"--failures-each", "1")
	s, err := newScene(ctx, cfg, progress)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if err := s.play(ctx); err != nil {
		t.Fatalf("%v\n%v", err, s.journal.Err())
	}
	e, err := s.evidence(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := s.report(e)
	trialtest.Nothing(t, r.Problems)

	// A delivery that was lost.
	lost := slices.Sorted(maps.Keys(e.endpoints[1].taken))[7]
	delete(e.endpoints[1].taken, lost)
	trialtest.Says(t, audit(e), "an event was not delivered to the endpoint unreliable: "+lost)

	// An activation that the journal does not have.
	if _, err := s.shop.program.Activate(ctx,
		client.Activation{LicenseKey: s.shop.shared[0], DeviceID: "unnoted"}); err != nil {
		t.Fatal(err)
	}
	want := "an event without a change: "
	for found := audit(e); !strings.Contains(strings.Join(found, "\n"), want); found = audit(e) {
		if ctx.Err() != nil {
			t.Fatalf("it never says %q", want)
		}
		if e, err = s.evidence(ctx); err != nil {
			t.Fatal(err)
		}
	}
	trialtest.Says(t, audit(e), "device.bound of "+s.shop.shared[0]+" unnoted")

	end := &trial.Report{}
	s.shut(ctx, end)
	trialtest.Nothing(t, end.Problems)

	// A backup without one of the licenses.
	stored, err := s.Stage.Verify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stored["license"]++
	if err := s.Stage.VerifyRestored(ctx, stored); err == nil ||
		!strings.Contains(err.Error(), "the restored backup has") {
		t.Errorf("a license that is not in the backup: %v", err)
	}
}

// TestRunThatCantBegin is given a program that is not there.
func TestRunThatCantBegin(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := program().Command(t.Context(), []string{"--dir", dir, "--licet", filepath.Join(dir, "licet")}, &stdout,
		&stderr)
	if code != rig.ExitFailed || stdout.Len() > 0 {
		t.Errorf("exit code %d\n%s", code, &stdout)
	}
	trialtest.Says(t, []string{stderr.String()}, "webhooks: FAILED: ", "no such file")
}

func TestUsage(t *testing.T) {
	trialtest.Refuses(t, parseConfig, map[string][]string{
		"from 50":                        {"--activations", "5"},
		"from 0 to 50":                   {"--activations", "200", "--kills", "51"},
		"--nodes is 1: it must":          {"--nodes", "1"},
		"--members is 0: it must":        {"--members", "0"},
		"--failures-each is -1: it must": {"--failures-each", "-1"},
		"--impatience is 0s: it must":    {"--impatience", "0s"},
		"unexpected argument":            {"now"},
		"invalid argument":               {"--activations", "many"},
		"unknown flag":                   {"--orders", "60"},
	})
}
