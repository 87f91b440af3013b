package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/trial"
	"licet/loadtest/trial/trialtest"
)

// TestDay plays a whole day: real etcd, real nodes. Then it changes things without telling the ledger, and each change
// must be found.
func TestDay(t *testing.T) {
	ctx, cfg, progress := trialtest.Begin(t, parseConfig, "--members", "3")
	premises, err := newStage(ctx, cfg, progress)
	if err != nil {
		t.Fatal(err)
	}
	defer premises.Stop()
	s, err := newDay(cfg, premises, progress)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.play(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := s.compare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	trialtest.Nothing(t, r.Problems)

	wanted := s.actUnnoted(ctx, t)
	again, err := s.compare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	trialtest.Says(t, again.Problems, wanted...)
	end := &trial.Report{}
	s.shut(ctx, end)
	trialtest.Nothing(t, end.Problems)
}

// actUnnoted changes things without telling the ledger, and returns what the comparison must
// say about them.
func (s *day) actUnnoted(ctx context.Context, t *testing.T) (want []string) {
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
			_, err := s.support.tryActivate(ctx, l, "unnoted")
			say(err, "license %s: current_devices is %d by the ledger, and %d by the service", l.key, len(l.devices),
				len(l.devices)+1)
			_, err = s.desk.SuspendLicense(ctx, l.key, "")
			say(err, "license %s: status is activated by the ledger, and suspended by the service", l.key)
			break
		}
	}
	granted, err := s.desk.GrantLicenses(ctx, client.Grant{ProductID: "editor", Quantity: 1})
	for i := range granted {
		say(err, `license %s (not_activated, of order "") is listed, and no response returned it`, granted[i].LicenseKey)
	}
	key, err := s.root.CreateKey(ctx, client.NewKey{Name: "unnoted", Scopes: []string{"orders:read"}})
	say(err, "only in the service: [%s]", key.ID)
	say(nil, "in the store: license: %d by the ledger, %d by the service", len(s.ledger.licenses),
		len(s.ledger.licenses)+1)
	return want
}

func TestUsage(t *testing.T) {
	trialtest.Refuses(t, parseConfig, map[string][]string{
		"from 40":      {"--orders", "5"},
		"a quarter":    {"--refunds", "400"},
		"at least 1":   {"--members", "0"},
		"unexpected":   {"now"},
		"invalid":      {"--orders", "few"},
		"unknown flag": {"--kills", "4"},
	})
}

func TestReportNamesDifferences(t *testing.T) {
	p := program()
	p.Run = func(context.Context, *config, *rig.Progress) (*trial.Report, error) {
		r := &trial.Report{}
		report(r, []line{
			{"orders", 3, 3},
			{"orders, paid", 2, 1},
		})
		return r, nil
	}
	var out bytes.Buffer
	if code := p.Command(t.Context(), nil, &out, io.Discard); code != rig.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	trialtest.Says(t, []string{out.String()}, "orders        3       3        \n",
		"orders, paid  2       1        DIFFERS\n",
		"WRONG: orders, paid: 2 by the ledger, 1 by the service\n", "WRONG: 1\n")
}
