package kv

import (
	"context"
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/deliveries"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// TestOneUnreadableValue damages one value of each kind of key in turn. Whatever the value is, another owner's requests
// and all work in the background go on, the damaged owner's lists stay readable, and verify shows the value. A new kind
// of key needs a row in damagedKeys. At the usual depth the test damages each third kind.
func TestOneUnreadableValue(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newLab(t)
	n := newNeighbor(l, l.fill())
	summary, found := l.verify(verify.Config{})
	if len(found) > 0 {
		t.Fatalf("verify finds %v before", found)
	}
	rows := n.damagedKeys()
	asWorker(t, l.store, func(ctx context.Context, w store.DeliveryWorker) {
		n.worker = w
		n.goesOn("a whole store")
		for i, prefix := range verify.Prefixes() {
			keys := rows[prefix]
			if keys == nil {
				t.Errorf("no row says which key of the kind %q to damage", prefix)
				continue
			}
			delete(rows, prefix)
			if i%depth.Of(3, 1) != 0 {
				continue
			}
			for _, key := range keys() {
				n.damage(key, summary.Families[i].Name)
			}
		}
	})
	for prefix := range rows {
		t.Errorf("%q is no kind of key", prefix)
	}
}

// damage damages one value while the neighbor works. family is the kind of the key as verify calls it.
func (n *neighbor) damage(key, family string) {
	n.t.Helper()
	what := fmt.Sprintf("a damaged value of the kind %s, %q", family, key)
	const bad = "?"
	undo := n.plant(seed{key: bytesOf(bad)})
	if _, found := n.verify(verify.Config{}); !slices.ContainsFunc(found,
		func(v verify.Violation) bool { return v.Family == family }) {
		n.t.Errorf("%s: verify finds %v", what, found)
	}
	before := kvtest.Counted(n.t, n.metrics.EventValuesUnreadable)
	n.damaged = family
	n.goesOn(what)
	if slices.Contains([]string{"listener", "listen_fence", "listen_request"}, family) {
		n.listensAnew() // for these kinds only: moves of the fence are a second apart
	}
	counted := kvtest.Counted(n.t, n.metrics.EventValuesUnreadable) - before
	if want := !slices.Contains(undecoded(), family); counted != 0 != want || counted > 1 {
		n.t.Errorf("%s: %v values are counted, want %v", what, counted, want)
	}
	// The work in the background writes some values again, and removes some.
	if kvs := kvtest.Must(n.client.Get(n.ctx(), key))(n.t).Kvs; len(kvs) > 0 && string(kvs[0].Value) == bad {
		undo()
	}
}

// damagedKeys returns, for each kind of key, the keys to damage.
func (n *neighbor) damagedKeys() map[string]func() []string {
	l := n.lab
	apiKey := [32]byte(l.value(keyspace.APIKeyIndexKey(labOwner, "key_0elab")))
	one := func(key string) func() []string { return func() []string { return []string{key} } }
	first := func(prefix string) func() []string {
		return func() []string { return []string{l.keyIn(prefix, clientv3.SortAscend)} }
	}
	oldestClaim := func() string {
		l.refuse(kvtest.Time)
		return l.keyIn(inLab(keyspace.ClaimAges), clientv3.SortAscend)
	}
	rows := map[string]func() []string{
		"a/": one(keyspace.APIKeyIndexKey(labOwner, "key_0elab")),
		"b/": first(keyspace.OfOwner(labOwner, "b/")),
		"c/": first(keyspace.OfOwner(labOwner, "c/")),
		"d/": first(keyspace.DevicesPrefix(n.spilled.ID())),
		"e/": func() []string {
			l.order(100)
			return []string{l.keyIn(keyspace.EventsOf(labOwner), clientv3.SortDescend)}
		},
		"g/":            first(keyspace.OfOwner(labOwner, keyspace.CustomersFamily)),
		"cell/f/":       one(keyspace.ListenerKey(labListener)),
		"cell/g/":       one(keyspace.DeliveryLeaseKey(labHook)),
		"h/":            one(keyspace.OwnerKey(labOwner)),
		"i/":            first(keyspace.OfOwner(labOwner, "i/")),
		"j/":            first(inLab("j/")),
		"k/":            one(keyspace.APIKeyKey(apiKey)),
		"l/":            one(keyspace.LicenseKey(n.inline.ID())),
		"m/":            one(keyspace.MetadataKey(n.inline.ID())),
		"cell/n/":       one(keyspace.NodeKey(store.Incarnation{7})),
		"o/":            one(keyspace.OrderKey(labOwner, n.paid.OrderNo)),
		"p/":            one(keyspace.OrderOwnerKey(n.paid.OrderNo)),
		"f/":            one(keyspace.SettingsKey(labOwner)),
		"rk/":           one(keyspace.ReceiptKeysKey(labOwner)),
		"rv/":           first(keyspace.RevocationsOf(labOwner)),
		"cell/receipts": one(keyspace.ReceiptKeysMark),
		"n/":            one(l.labAlias()),
		"q/":            one(keyspace.ProductKey(labOwner, "pro")),
		"pa/":           one(labPaymentKey()),
		"sb/":           one(keyspace.SandboxKey(licensing.SandboxRef(labOwner, n.unpaid.OrderNo))),
		"pi/":           first(keyspace.OfOwner(labOwner, keyspace.PaymentListings)),
		"pt/":           first(keyspace.OfOwner(labOwner, keyspace.SalesFamily)),
		"cell/books": func() []string {
			if err := l.store.NoteBooks(l.ctx(), kvtest.Time); err != nil {
				l.t.Fatal(err)
			}
			return []string{keyspace.BooksKey}
		},
		"cell/backup":  one(keyspace.BackupKey),
		"cell/check":   one(keyspace.CheckKey), // a node that starts refuses to
		"cell/epoch":   one(keyspace.EpochKey),
		"cell/id_key":  one(keyspace.IDKeyKey),
		"cell/keys":    func() []string { return []string{keyspace.APIKeysMark, keyspace.APIKeyPartMark(7)} },
		"r/":           one(keyspace.LedgerKey(labOwner)),
		"cell/listen":  one(keyspace.ListenKey),
		"cell/map":     one(keyspace.SlotMapKey),         // a node that starts refuses to
		"cell/master/": one(keyspace.MasterKeyKey("m2")), // a node that starts refuses to
		"cell/recount": func() []string { return []string{keyspace.RecountKey, keyspace.RecountedKey} },
		"cell/pe/": func() []string {
			kvtest.Must(l.store.PutProviderEvents(l.ctx(), labOwner, store.ProviderEvents{From: kvtest.Time}, 0))(l.t)
			return []string{keyspace.ProviderEventsKey(labOwner)}
		},
		"cell/retired/": one(keyspace.RetiredMasterKey("m9")),
		"cell/s/":       one(keyspace.SlotKey(licensing.SlotOf(labOwner))),
		"cell/swept":    one(keyspace.TrimmedKey),
		"s/":            one(keyspace.UsageKey(labOwner)),
		"t/":            one(keyspace.TermsKey(licensing.TermsRef(labOwner, labEntitlements.Version()))), // remembered
		"cell/webhooks": one(keyspace.WebhooksMark),
		"cell/t/": func() []string { // the latest mark, behind which the next sweep makes another one
			kvtest.Must(l.client.Put(l.ctx(), keyspace.EpochKey, ""))(l.t)
			kvtest.Must(l.store.SweepEvents(l.ctx(), n.now, keepAll))(l.t)
			return []string{l.keyIn(keyspace.MarksPrefix, clientv3.SortDescend)}
		},
		"u/": one(keyspace.KeyUseKey(apiKey)),
		"v/": func() []string {
			page := l.keyIn(keyspace.DeliveriesPrefix(labHook, keyspace.KeyOfPage), clientv3.SortDescend)
			return []string{keyspace.ProgressKey(labHook), page, keyspace.PendingKey(labHook, "evt_1"),
				keyspace.DeadKey(labHook, "evt_2"), keyspace.ReplayKey(labHook, "1")}
		},
		"w/":      one(keyspace.WebhooksKey(labOwner)),
		"cell/a/": one(keyspace.ListenRequestKey(labListener)),
		"tr/":     one(keyspace.TrialKey(n.trial.TrialRef())),
		"x/w/":    one(keyspace.DeletedWebhookKey("we_0edeleted")),
		"y/": func() []string {
			return []string{inLab("y/" + oldestClaim()[len(inLab(keyspace.ClaimAges))+keyspace.TimeSize:])}
		},
		"z/": func() []string { return []string{oldestClaim()} },
	}
	for x := range keyspace.DueIndexes() {
		rows[x.Family] = first(inLab(x.Family))
	}
	rows["x/i/"] = func() []string {
		l.issuing() // a node may have issued the last license of an earlier one
		return first(inLab("x/i/"))()
	}
	rows["x/c/"] = func() []string {
		l.checkout()
		return first(inLab("x/c/"))()
	}
	rows["x/s/"] = func() []string {
		l.subscribe()
		return first(inLab("x/s/"))()
	}
	rows["x/t/"] = one(keyspace.DueOf(licensing.Due{Kind: licensing.DueTrial, At: kvtest.Time}).
		Key(keyspace.LicenseKey(n.trial.Key.ID())))
	return rows
}

// keyIn returns the first or the last key with a prefix.
func (l *lab) keyIn(prefix string, order clientv3.SortOrder) string {
	l.t.Helper()
	kvs := kvtest.Must(l.client.Get(l.ctx(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithLimit(1), clientv3.WithSort(clientv3.SortByKey, order)))(l.t).Kvs
	if len(kvs) == 0 {
		l.t.Fatalf("there is no key %q…", prefix)
	}
	return string(kvs[0].Key)
}

// undecoded returns the kinds of keys whose values a running node does not decode in goesOn. Most of these values are
// empty, or only show by their revision that something has changed. A node reads master keys, the check key and the map
// of slots when it starts, and then refuses to start. Devices and order_owner are read for one license or order only.
func undecoded() []string {
	return []string{"buyer", "customer", "catalog", "listener", "owner", "slot", "slot_map", "listing", "skip", "epoch",
		"api_key_mark", "webhooks_mark", "leases", "rollout", "issue", "license_end", "license_notice",
		"checkout", "order_end", "refund", "sandbox_renewal", "deleted_webhook", "claim_age", "check_key", "master_key",
		"retired_master_key", "backup", "device", "order_owner", "settings", "receipts_mark",
		"alias", "terms", "trial", "trial_end", "payment", "payment_listing", "sale", "sandbox",
		"books", "provider_events"}
}

// asWorker runs do as the worker that a store is.
func asWorker(t *testing.T, s *Store, do func(ctx context.Context, w store.DeliveryWorker)) {
	t.Helper()
	err := deliveries.New(s).Work(t.Context(), func(ctx context.Context, w store.DeliveryWorker) error {
		do(ctx, w)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
