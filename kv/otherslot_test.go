package kv

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// TestIDsOfOtherSlots: the store refuses each kind of new record whose id contains the slot of another owner.
func TestIDsOfOtherSlots(t *testing.T) {
	s := openStore(t)
	stranger := licensing.Owner{AccountID: "acct_stranger", Mode: licensing.Test}
	slot := licensing.SlotOf(stranger)
	if slot == licensing.SlotOf(licenseOwner) || slot == licensing.SlotOf(countsOwner) {
		t.Fatal("the owners share a slot")
	}
	commit := func(ref licensing.Ref, token store.Token, record *licensing.Record) error {
		_, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{{Ref: ref, Token: token, Record: *record}}})
		return err
	}
	granted := newLicense(t, 0)
	granted.Key = newKeyOf(t, stranger)
	order := licensing.NewOrder(&licensing.Order{
		OrderNo: licensing.NewOrderNo(stranger, ulid.Make().String()), Owner: countsOwner, ProductID: "pro",
		OrderPayment: licensing.OrderPayment{Amount: 100, Currency: "USD"}, PayHash: keyring.HashPayToken("token"),
		Terms: licensing.DefaultTerms(), CreatedAt: kvtest.Time, ExpiresAt: kvtest.Time.AddDate(0, 0, 1),
	}, licensing.System)
	unpaid, paying := createOrder(t, s)
	kvtest.Must(licensing.Apply(&paying.Record, licensing.PayOrder{Payment: "p", Terms: paying.Record.Order.Terms,
		Key: newKeyOf(t, stranger)}, kvtest.Time))(t)
	hooks := licensing.WebhooksRef(licenseOwner)
	subscribed := loadOne(t, s, hooks)
	endpoint := labEndpoint(licensing.NewEndpointID(stranger, "stranger"), licensing.EventDeviceBound)
	kvtest.Must(licensing.Apply(&subscribed.Record, licensing.CreateEndpoint{Owner: licenseOwner, Endpoint: endpoint},
		kvtest.Time))(t)
	key, hashed := newAPIKey(), newAPIKey()
	key.ID = licensing.NewAPIKeyID(stranger, ulid.Make().String())
	hashed.Hash = newAPIKeyOf(stranger).Hash
	revision := func() int64 {
		return kvtest.Must(s.etcd.Native.Get(t.Context(), keyspace.ListenKey))(t).Header.Revision
	}
	before := revision()
	for kind, err := range map[string]error{
		"a license":               commit(licensing.LicenseRef(granted.Key), nil, &licensing.Record{License: granted}),
		"an order":                commit(licensing.OrderRef(countsOwner, order.Order.OrderNo), nil, &order),
		"the license of an order": commit(unpaid, paying.Token, &paying.Record),
		"an endpoint":             commit(hooks, subscribed.Token, &subscribed.Record),
		"an API key":              s.CreateAPIKey(t.Context(), key),
		"the hash of an API key":  s.CreateAPIKey(t.Context(), hashed),
	} {
		if !errors.Is(err, errOtherSlot) {
			t.Errorf("%s of another slot: %v", kind, err)
		}
	}
	if after := revision(); after != before {
		t.Errorf("the store went from revision %d to %d", before, after)
	}
}

// TestOneSlotHoldsAnOwner: all keys of an owner are in the owner's slot, whatever the owner has stored, and all other
// keys are the cell's.
func TestOneSlotHoldsAnOwner(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.fill()
	l.deliver()
	owners := map[licensing.Slot]bool{licensing.SlotOf(labOwner): true, licensing.SlotOf(labListener): true}
	families := map[string]bool{}
	for _, kv := range kvtest.Must(l.client.Get(l.ctx(), keyspace.Prefix, clientv3.WithPrefix()))(t).Kvs {
		key := string(kv.Key)
		slot, path, ok := keyspace.CutSlot(key)
		switch {
		case ok && owners[slot]:
			family, _, _ := strings.Cut(path, "/")
			families[family] = true
		case !strings.HasPrefix(key, keyspace.CellPrefix):
			t.Errorf("%q is neither the cell's nor in the slot of an owner", key)
		}
	}
	if len(families) < 20 {
		t.Errorf("there are only the families %v", slices.Sorted(maps.Keys(families)))
	}
}
