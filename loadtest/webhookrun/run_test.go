package main

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/loadtest/rig"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	rig.BeEtcd()
	m.Run()
}

// TestSmallRun is a run in small: real etcd, real nodes, real kills. Then things are
// done that the journal does not know of, and deliveries are struck from the books,
// each of which must be found.
func TestSmallRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var log bytes.Buffer
	args := []string{"--activations", "80", "--kills", "4", "--members", "1", "--failures-each", "1", "--dir", t.TempDir()}
	if rig.RaceFlag != "" { // what is built with it is there already
		args = append(args, "--build-flags", rig.RaceFlag)
	}
	cfg, err := parseConfig(args, &log)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScene(ctx, cfg, rig.NewProgress(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	followed, err := s.play(ctx)
	if err != nil {
		t.Fatalf("%v\n%v\n%s", err, s.troubles(), &log)
	}
	e, err := s.evidence(ctx, followed)
	if err != nil {
		t.Fatal(err)
	}
	r := s.report(e)
	for _, problem := range r.problems {
		t.Error(problem)
	}

	// A delivery that was lost.
	lost := slices.Sorted(maps.Keys(e.endpoints[1].taken))[7]
	delete(e.endpoints[1].taken, lost)
	expect(t, audit(e), "an event was not delivered to the endpoint unreliable: "+lost)

	// An activation that nobody noted.
	if _, err := s.shop.program.Activate(ctx, client.Activation{LicenseKey: s.shop.shared[0], DeviceID: "unnoted"}); err != nil {
		t.Fatal(err)
	}
	want := "an event of what nobody did: "
	for found := audit(e); !strings.Contains(strings.Join(found, "\n"), want); found = audit(e) {
		if ctx.Err() != nil {
			t.Fatalf("it never says %q", want)
		}
		if e, err = s.evidence(ctx, followed); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, audit(e), "device.bound of "+s.shop.shared[0]+" unnoted", "who followed the feed missed its end")

	end := &report{}
	s.shut(ctx, end)
	for _, problem := range end.problems {
		t.Error(problem)
	}
}

func expect(t *testing.T, found []string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if text := strings.Join(found, "\n"); !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, rig.ExitOK, "--kills"},
		{[]string{"--activations", "many"}, rig.ExitUsage, "--activations"},
		{[]string{"--activations", "5"}, rig.ExitUsage, "from 50"},
		{[]string{"--activations", "200", "--kills", "51"}, rig.ExitUsage, "a quarter"},
		{[]string{"--nodes", "1"}, rig.ExitUsage, "at least 2"},
		{[]string{"--members", "0"}, rig.ExitUsage, "at least 1"},
		{[]string{"--failing", "1"}, rig.ExitUsage, "to 0.9"},
		{[]string{"--failures-each", "-1"}, rig.ExitUsage, "at least 0"},
		{[]string{"--impatience", "0s"}, rig.ExitUsage, "above 0"},
		{[]string{"now"}, rig.ExitUsage, `"now"`},
	} {
		var stdout, stderr bytes.Buffer
		if code := command(t.Context(), c.args, &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, code, &stderr)
		}
	}
}

func TestReportTellsWhatIsWrong(t *testing.T) {
	r := &report{seed: 7, events: 12, kills: 3, done: map[string]int{"orders made": 3}, lines: []deliveries{{"reliable", 14, 2, 12, 0}}}
	r.problem("event %s is lost", "evt_1")
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"orders made", "reliable  14     2", "WRONG: event evt_1 is lost", "seed 7", "WRONG: 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}
