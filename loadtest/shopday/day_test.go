package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	rig.BeEtcd()
	m.Run()
}

// TestSmallDay plays a day in small: real etcd, real nodes. Then it does things
// that the ledger does not know of, each of which must be found.
func TestSmallDay(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var log bytes.Buffer
	cfg, err := parseConfig([]string{"--orders", "60", "--refunds", "8", "--members", "1", "--dir", t.TempDir(), "--build-flags", rig.RaceFlag}, &log)
	if err != nil {
		t.Fatal(err)
	}
	premises, err := newStage(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer premises.Stop()
	s, err := newShop(cfg, premises, rig.NewProgress(&log))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.day(ctx); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	r, err := s.compare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range r.problems {
		t.Error(problem)
	}

	wanted := s.actUnnoted(ctx, t)
	again, err := s.compare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Join(again.problems, "\n")
	for _, want := range wanted {
		if !strings.Contains(found, want) {
			t.Errorf("it does not say %q:\n%s", want, found)
		}
	}
	end := &report{}
	s.shut(ctx, end)
	for _, problem := range end.problems {
		t.Error(problem)
	}
}

// actUnnoted does what the ledger does not know of, and gives what must be said
// of that.
func (s *shop) actUnnoted(ctx context.Context, t *testing.T) (want []string) {
	t.Helper()
	say := func(err error, format string, args ...any) {
		if err != nil {
			t.Error(err)
		}
		want = append(want, fmt.Sprintf(format, args...))
	}
	for _, o := range s.ledger.allOrders() {
		if o.status(time.Now()) == stateUnpaid {
			_, err := s.desk.CancelOrder(ctx, o.number, "")
			say(err, "order %s, %s: status is unpaid by the ledger, and canceled by the service", o.number, o.plan)
			break
		}
	}
	for _, l := range s.ledger.allLicenses() {
		if l.status(time.Now()) == stateActivated && !l.full() {
			_, err := s.tryActivate(ctx, l, "unnoted")
			say(err, "license %s: current_devices is %d by the ledger, and %d by the service", l.key, len(l.devices), len(l.devices)+1)
			_, err = s.desk.SuspendLicense(ctx, l.key, "")
			say(err, "license %s: status is activated by the ledger, and suspended by the service", l.key)
			break
		}
	}
	granted, err := s.desk.GrantLicenses(ctx, client.Grant{ProductID: "editor", Quantity: 1})
	for i := range granted {
		say(err, `license %s (not_activated, of order "") is listed, and nobody was given it`, granted[i].LicenseKey)
	}
	key, err := s.root.CreateKey(ctx, client.NewKey{Name: "unnoted", Scopes: []string{"orders:read"}})
	say(err, "only in the service: [%s]", key.ID)
	say(nil, "in the store: license: %d by the ledger, %d by the service", len(s.ledger.licenses), len(s.ledger.licenses)+1)
	return want
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, rig.ExitOK, "--refunds"},
		{[]string{"--orders", "few"}, rig.ExitUsage, "--orders"},
		{[]string{"--orders", "5"}, rig.ExitUsage, "from 40"},
		{[]string{"--refunds", "400"}, rig.ExitUsage, "a quarter"},
		{[]string{"--members", "0"}, rig.ExitUsage, "at least 1"},
		{[]string{"now"}, rig.ExitUsage, `"now"`},
	} {
		var stdout, stderr bytes.Buffer
		if code := command(t.Context(), c.args, &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, code, &stderr)
		}
	}
}

func TestReportTellsWhatIsWrong(t *testing.T) {
	r := &report{seed: 7, traffic: stage.Traffic{Sent: []int64{1, 2}}, done: map[string]int{"orders made": 3}}
	r.lines = []line{{"orders", sum{count: 3}, sum{count: 3}}, {"orders, paid", sum{2, map[string]int64{"USD": 5}}, sum{count: 1}}}
	r.problem("order %s is lost", "ord_1")
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"orders made", "2  USD 5", "DIFFERS", "WRONG: order ord_1 is lost", "seed 7", "WRONG: 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}
