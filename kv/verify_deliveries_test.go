package kv

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/internal/depth"
	"licet/kv/deliveries"
	"licet/kv/deliveries/deliveriestest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

const hooked = "we_0elab"

// endpoint creates an endpoint of the lab's owner.
func (l *lab) endpoint() {
	l.t.Helper()
	if err := l.store.UseMaster(l.ctx(),
		kvtest.Must(keyring.NewMasterKey("m1", [keyring.MasterKeySize]byte{1}))(l.t)); err != nil {
		l.t.Fatal(err)
	}
	deliveriestest.PutEndpoints(l.client)(l.t, labOwner, []licensing.Endpoint{{
		ID: hooked, URL: "https://shop.example/hook", Types: []licensing.EventType{licensing.EventOrderPaid},
		SecretVersion: 1, MasterID: "m1", Since: "pos_0", CreatedAt: kvtest.Time, ResetAt: kvtest.Time,
	}})
}

// atWork runs do as the worker that a store is.
func atWork(t *testing.T, s *Store, do func(ctx context.Context, w store.DeliveryWorker)) {
	t.Helper()
	err := deliveries.New(s).Work(t.Context(),
		func(ctx context.Context, w store.DeliveryWorker) error {
			do(ctx, w)
			return nil
		})
	if err != nil {
		t.Error(err)
	}
}

// holding returns the lease on the lab's endpoint.
func holding(t *testing.T, ctx context.Context, w store.DeliveryWorker) store.DeliveryLease {
	t.Helper()
	hold, ok, err := w.Acquire(ctx, labOwner, hooked)
	if err != nil || !ok {
		t.Fatalf("acquire: %v, %v", ok, err)
	}
	return hold
}

// deliver writes keys of each kind for the lab's endpoint, except for a lease.
func (l *lab) deliver() {
	l.t.Helper()
	l.endpoint()
	message := func(event string) store.Delivery {
		d := kvtest.Delivery()
		d.EventID = event
		return d
	}
	atWork(l.t, l.store, func(ctx context.Context, w store.DeliveryWorker) {
		hold := holding(l.t, ctx, w)
		for _, done := range []store.Checkpoint{
			{Delivered: []store.Delivery{message("evt_1")}},
			{Progress: store.DeliveryProgress{Place: "evt_4"},
				Delivered: []store.Delivery{message("evt_2"), message("evt_3")},
				Pending:   []store.Delivery{message("evt_4"), message("evt_5")},
				Dead:      []store.Delivery{message("evt_6")}},
		} {
			if err := hold.Checkpoint(ctx, done); err != nil {
				l.t.Fatal(err)
			}
		}
		if err := deliveries.New(l.store).AddReplay(ctx, labOwner, hooked, kvtest.Replay()); err != nil {
			l.t.Fatal(err)
		}
		if err := hold.Release(ctx); err != nil {
			l.t.Fatal(err)
		}
	})
}

// TestVerifyDeliveries plants corruptions of stored deliveries: verify finds and names exactly these.
func TestVerifyDeliveries(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newLab(t)
	l.deliver()
	summary, found := l.verify(verify.Config{})
	if len(found) > 0 {
		t.Fatalf("found %v", found)
	}
	counts := make(map[string]int64)
	for _, f := range summary.Families {
		counts[f.Name] = f.Keys
	}
	if counts["delivery"] != 7 || counts["delivery_lease"] != 0 {
		t.Errorf("there are %d keys of deliveries, and %d leases", counts["delivery"], counts["delivery_lease"])
	}
	delivery, replay := kvtest.Delivery(), kvtest.Replay()
	message := layout.EncodeDelivery(&delivery)
	progress := func(change func(*layout.Progress)) seed {
		p := kvtest.Must(layout.DecodeProgress(l.value(keyspace.ProgressKey(hooked))))(t)
		change(p)
		return seed{keyspace.ProgressKey(hooked): p.Encode()}
	}
	at := "v/" + hooked
	stranger := licensing.Owner{AccountID: "acct_stranger", Mode: licensing.Live}
	everything := seed{}
	for _, key := range []string{keyspace.PageKey(hooked, 0), keyspace.PageKey(hooked, 1),
		keyspace.DeadKey(hooked, "evt_6"),
		keyspace.PendingKey(hooked, "evt_4")} {
		everything[key] = nil
	}
	everything[keyspace.DeletedWebhookKey("we_0egone")], everything[keyspace.PendingKey("we_0egone",
		"evt_1")] = []byte{}, message
	many := seed{}
	for i := range store.MaxReplays {
		many[keyspace.ReplayKey(hooked, strings.Repeat("x", i+1))] = layout.EncodeReplay(labOwner, &replay)
	}
	for _, c := range []struct {
		name string
		seed seed
		want []string
	}{
		{"a pending message that is gone", seed{keyspace.PendingKey(hooked, "evt_4"): nil},
			[]string{"delivery pending_count " + at}},
		{"a pending message more", seed{keyspace.PendingKey(hooked, "evt_9"): message},
			[]string{"delivery pending_count " + at}},
		{"a dead message is gone", seed{keyspace.DeadKey(hooked, "evt_6"): nil},
			[]string{"delivery dead_count " + at}},
		{"one more that was given up", seed{keyspace.DeadKey(hooked, "evt_9"): message},
			[]string{"delivery dead_count " + at}},
		{"other counts", progress(func(p *layout.Progress) { p.Progress.Pending, p.Progress.Dead = 1, 2 }),
			[]string{"delivery pending_count " + at, "delivery dead_count " + at}},
		{"the oldest page is gone", seed{keyspace.PageKey(hooked, 0): nil}, []string{"delivery log " + at}},
		{"the latest page is gone", seed{keyspace.PageKey(hooked, 1): nil}, []string{"delivery log " + at}},
		{"a page more", seed{keyspace.PageKey(hooked, 2): l.value(keyspace.PageKey(hooked, 1))},
			[]string{"delivery log " + at}},
		{"another page", seed{keyspace.PageKey(hooked, 1): l.value(keyspace.PageKey(hooked, 0))},
			[]string{"delivery log " + at}},
		{"another log", progress(func(p *layout.Progress) { p.Log.First++ }), []string{"delivery log " + at}},
		{"no progress", seed{keyspace.ProgressKey(hooked): nil}, []string{"delivery progress_missing " + at}},
		{"progress that can't be read", seed{keyspace.ProgressKey(hooked): bytesOf("\x01")},
			[]string{"delivery value " + at + "/p"}},
		{"a page that can't be read", seed{keyspace.PageKey(hooked, 1): bytesOf("\x02")},
			[]string{"delivery value " + at + "/a1"}},
		{"a message that can't be read", seed{keyspace.PendingKey(hooked, "evt_4"): bytesOf("\x01\x0a")},
			[]string{"delivery value " + at + "/revt_4"}},
		{"a dead message can't be read", seed{keyspace.DeadKey(hooked, "evt_6"): bytesOf("?")},
			[]string{"delivery value " + at + "/fevt_6"}},
		{"a replay without an owner", seed{keyspace.ReplayKey(hooked, "a\nb"): bytesOf("\x01")},
			[]string{"delivery value " + at + "/j" + verify.Opaque("a\nb")}},
		{"too many replays", many, []string{"delivery replays " + at}},
		{"an endpoint of another owner", progress(func(p *layout.Progress) { p.Owner = stranger }),
			[]string{"delivery endpoint_missing " + at}},
		{"an endpoint that is gone", seed{keyspace.WebhooksKey(labOwner): (&layout.Webhooks{}).Encode()},
			[]string{"delivery endpoint_missing " + at}},
		{"a replay at no endpoint", seed{keyspace.ReplayKey("we_0enone", kvtest.ULID): layout.EncodeReplay(labOwner,
			&replay)}, []string{"delivery endpoint_missing v/we_0enone"}},
		{"what is being " +
			"swept", seed{keyspace.WebhooksKey(labOwner): (&layout.Webhooks{}).Encode(),
			keyspace.DeletedWebhookKey(hooked): {}, keyspace.PageKey(hooked, 0): nil, keyspace.DeadKey(hooked,
				"evt_6"): nil}, nil},
		{"what is being swept of another one", everything,
			[]string{"delivery dead_count " + at, "delivery log " + at, "delivery pending_count " + at}},
		{"a lease of a worker that is not there", seed{keyspace.DeliveryLeaseKey(hooked): bytesOf("12345678"),
			keyspace.DeliveryLeaseKey("we_0egone"): bytesOf("12345678"), keyspace.WorkerKey(store.Incarnation{1}): {}},
			nil},
		{"a lease without a worker", seed{keyspace.DeliveryLeaseKey(hooked): bytesOf("1234567")},
			[]string{"delivery_lease value cell/g/" + hooked}},
		{"keys of no form", seed{
			inLab("v/x"): {}, inLab("v/we_1/"): {}, inLab("v/we_1/x"): {}, inLab("v/we_1/pp"): {},
			inLab("v/we_1/a1234567"): {}, inLab("v/we_1/r"): {}, inLab("v/WE/p"): {},
			keyspace.Prefix + "cell/g/x": bytesOf("12345678"), keyspace.Prefix + "cell/g/-/x": {},
			keyspace.WorkerKey(store.Incarnation{1}): bytesOf("x"),
		}, []string{
			"delivery key v/" + verify.Opaque("x"), "delivery key v/" + verify.Opaque("we_1/"), "delivery key v/" +
				verify.Opaque("we_1/x"), "delivery key v/" + verify.Opaque("we_1/pp"),
			"delivery key v/" + verify.Opaque("we_1/a1234567"), "delivery key v/" + verify.Opaque("we_1/r"),
			"delivery key v/" + verify.Opaque("WE/p"),
			"delivery_lease key cell/g/" + verify.Opaque("x"), "delivery_lease key cell/g/" + verify.Opaque("-/x"),
			"delivery_lease key cell/g/" + verify.Opaque("-/\x01\x00\x00\x00\x00\x00\x00\x00"),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer l.plant(c.seed)()
			for _, reading := range []string{"streamed", "in pages of 7 keys"} {
				store, cfg := readings()[reading](l.store)
				_, found := (&lab{t: t, store: store}).verify(cfg)
				if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), names(found)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%v", reading, diff, found)
				}
			}
		})
	}
	l.clean()
}
