package main

import (
	"bytes"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"licet/client"
	"licet/internal/process"
	"licet/loadtest/rig"
	"licet/loadtest/trial"
	"licet/loadtest/trial/trialtest"
	"licet/loadtest/webhooks"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	process.BeEtcd()
	m.Run()
}

// TestWebhooks is the scenario webhooks in small: real etcd, real nodes, k6, real kills. Then the service does what the
// journal does not have, and the journal has what the service did not do: the audit must find both.
func TestWebhooks(t *testing.T) {
	parse := func(args []string, stderr io.Writer) (*config, error) { return parseIn(root, args, stderr) }
	ctx, cfg, progress := trialtest.Begin(t, parse, "--scenario", "webhooks", "--rate", "10", "--duration", "30s",
		"--kills", "2", "--failures-each", "1", "--slack", "10", "--out", t.TempDir())
	out, err := newResults(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k6, err := findK6(ctx, cfg, out)
	if err != nil {
		t.Fatal(err)
	}
	s, seeds, err := begin(ctx, cfg, out, progress)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if err := load(ctx, cfg, k6, s, seeds, out, progress); err != nil {
		t.Fatal(err)
	}
	j, st, err := s.evidence(ctx, seeds, out)
	if err != nil {
		t.Fatal(err)
	}
	audit := func(changes map[webhooks.Change]bool) *webhooks.Result {
		t.Helper()
		r, err := s.hooks.Audit(ctx, changes)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	changes := changesOf(j, st)
	r := audit(changes)
	trialtest.Nothing(t, r.Problems)
	if r.Events < 100 || r.Accepted["reliable"] != r.Events || r.Accepted["unreliable"] != r.Events {
		t.Errorf("%d events, accepted: %v", r.Events, r.Accepted)
	}

	// A change without an event.
	lost := webhooks.Change{Kind: "order.paid", Subject: "ord_lost"}
	more := maps.Clone(changes)
	more[lost] = true
	trialtest.Says(t, audit(more).Problems, "a change has no event: "+lost.String())

	// An activation that the journal does not have. Its event is in the feed some time later.
	license := seeds[0].key
	api, err := s.clients(s.urls[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api[0].Activate(ctx, client.Activation{LicenseKey: license, DeviceID: "unnoted"}); err != nil {
		t.Fatal(err)
	}
	for want := "an event without a change: "; ; {
		found := audit(changes).Problems
		if strings.Contains(strings.Join(found, "\n"), want) {
			trialtest.Says(t, found, "device.bound of "+license+" unnoted",
				"the client that follows the feed got another event: nothing in place of ")
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the audit never says %q", want)
		}
	}

	s.hooks.Stop()
	end := &trial.Report{}
	stored := s.Shut(ctx, end)
	trialtest.Nothing(t, end.Problems)
	// A backup without one of the licenses.
	stored["license"]++
	if err := s.Stage.VerifyRestored(ctx, stored); err == nil ||
		!strings.Contains(err.Error(), "the restored backup has") {
		t.Errorf("a license that is not in the backup: %v", err)
	}
}

// TestRunThatCantBegin is given a program that is not there.
func TestRunThatCantBegin(t *testing.T) {
	t.Chdir(filepath.Join(root, ".."))
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := program().Command(t.Context(), []string{"--scenario", "mixed", "--k6", "true", "--out", dir, "--dir", dir,
		"--licet", filepath.Join(dir, "licet")}, &stdout, &stderr)
	if code != rig.ExitFailed || stdout.Len() > 0 {
		t.Errorf("exit code %d\n%s", code, &stdout)
	}
	trialtest.Says(t, []string{stderr.String()}, "run: FAILED: ", "no such file")
}

// TestChanges lists the changes of a journal, with changes whose outcome is unknown.
func TestChanges(t *testing.T) {
	j := newJournal()
	j.seed([]*seeded{{group: &group{}, key: "B"}})
	if err := j.read(strings.NewReader(goodJournal + "cancel O2 7 300 310 unknown\n")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for c, known := range changesOf(j, goodStore()) {
		line := c.String()
		if !known {
			line += "?"
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := []string{"device.bound of A guest", "device.bound of A maybe?", "device.bound of A one",
		"device.bound of B one", "device.bound of L one", "device.removed of A guest", "license.activated of A",
		"license.activated of B", "license.activated of L", "license.issued of A", "license.issued of B",
		"license.issued of L", "order.canceled of O2?", "order.created of O1", "order.created of O2",
		"order.paid of O1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
