package kv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestDueEntries: an entry of the index of due work decodes to the encoded values.
func TestDueEntries(t *testing.T) {
	order := licensing.OrderRef(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A")
	refs := map[licensing.Kind]licensing.Ref{
		licensing.KindLicense: licensing.LicenseRef(kvtest.Key), licensing.KindOrder: order,
		licensing.KindProduct: licensing.ProductRef(kvtest.Owner, "pro"),
	}
	for x := range keyspace.DueIndexes() {
		for _, at := range []time.Time{{}, time.UnixMilli(0), kvtest.Time,
			time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)} {
			place := keyspace.DueOf(licensing.Due{Kind: x.Kind, At: at})
			key := place.Key(keyspace.RecordKey(refs[x.Record]))
			got, ref, ok := x.Decode(kvtest.Key.ID().Slot(), key[len("lc2/00/"+x.Family):], nil)
			if !ok || got != place || ref != refs[x.Record] || !at.IsZero() && !got.At().Equal(at) {
				t.Errorf("%q of %v is %v at %v, %v", key, at, ref, got.At(), ok)
			}
		}
	}
	if keyspace.DueOf(licensing.Due{}) != 0 {
		t.Error("an empty Due has a key")
	}
	for _, bad := range []struct {
		kind  licensing.DueKind
		rest  string
		value string
	}{
		{licensing.DueLicenseEnd, "1234567", ""}, {licensing.DueLicenseEnd, "12345678x", ""},
		{licensing.DueLicenseEnd, "12345678" + strings.Repeat("\x00", 16), "LIC"},
		{licensing.DueOrderEnd, "12345678acct/t/ord_1", ""}, {licensing.DueRefund, "12345678", ""},
		{licensing.DueRollout, "12345678acct/t/", ""}, {licensing.DueRollout, "12345678acct/t/pro", "x"},
		{licensing.DueRefund, "12345678" + keyspace.OwnerPath(kvtest.Owner) + order.ID, "x"},
	} {
		if _, _, ok := keyspace.DueIndexOf(bad.kind).Decode(0, bad.rest, []byte(bad.value)); ok {
			t.Errorf("%q with %q is read as a key of due work", bad.rest, bad.value)
		}
	}
}

// places lists the keys of due work.
func (l *lab) places() []string {
	l.t.Helper()
	var keys []string
	for _, kv := range kvtest.Must(l.client.Get(l.ctx(), inLab("x/"), clientv3.WithPrefix()))(l.t).Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// TestActivationsWriteNoIndexEntry: an activation writes no more keys than an activation of a license without an end,
// unless it sets the end.
func TestActivationsWriteNoIndexEntry(t *testing.T) {
	s, kv := seenStore(t)
	puts := func(ref licensing.Ref, device string) (n int) {
		t.Helper()
		kv.shape()
		if outcome, err := s.Commit(t.Context(),
			bind(t, ref, loadOne(t, s, ref, device), device)); err != nil || !outcome.Landed {
			t.Fatalf("%+v, %v", outcome, err)
		}
		for _, r := range kv.requests {
			for _, op := range r.Success {
				if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil {
					n++
				}
			}
		}
		return n
	}
	create := func(change func(*licensing.License)) licensing.Ref {
		t.Helper()
		l := newLicense(t, 9)
		change(l)
		ref := licensing.LicenseRef(l.Key)
		outcome, err := s.Commit(t.Context(),
			store.Change{Writes: []store.Write{{Ref: ref, Record: licensing.Record{License: l, Changed: true}}}})
		if err != nil || !outcome.Landed {
			t.Fatalf("%+v, %v", outcome, err)
		}
		return ref
	}
	for name, c := range map[string]struct {
		change func(*licensing.License)
		want   []int // operations of the first and the second activation
	}{
		"perpetual":       {func(*licensing.License) {}, []int{1, 1}},
		"with an end":     {func(l *licensing.License) { l.ExpiresAt = kvtest.Time.AddDate(90, 0, 0) }, []int{1, 1}},
		"from activation": {func(l *licensing.License) { l.Validity = licensing.Period{Years: 90} }, []int{2, 1}},
	} {
		ref := create(c.change)
		if got := []int{puts(ref, "a"), puts(ref, "b")}; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v operations, want %v", name, got, c.want)
		}
	}
}

// TestManyGrantsWithAnEnd: each license of a full transaction has its entry of due work.
func TestManyGrantsWithAnEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const quantity = 3*store.MaxNewLicenses - 5
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	if _, _, err := l.node.Grant(l.ctx(), labOwner, service.Grant{
		ProductID: "pro", Quantity: quantity, ExpiresAt: ends, Metadata: `{"a":1}`, Once: l.once(1),
	}); err != nil {
		t.Fatal(err)
	}
	if got := len(l.places()); got != quantity {
		t.Errorf("%d places of %d licenses", got, quantity)
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// countingKV adds up what etcd counts for ranges.
type countingKV struct {
	clientv3.KV
	count *int64
}

func (c countingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := c.KV.Get(ctx, key, opts...)
	if err == nil {
		*c.count += response.Count
	}
	return response, err
}

func (c countingKV) Txn(ctx context.Context) clientv3.Txn {
	return &countingTxn{c.KV.Txn(ctx), c.count}
}

type countingTxn struct {
	clientv3.Txn
	count *int64
}

func (c *countingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	c.Txn = c.Txn.Then(ops...)
	return c
}

func (c *countingTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	c.Txn = c.Txn.If(compares...)
	return c
}

func (c *countingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	c.Txn = c.Txn.Else(ops...)
	return c
}

func (c *countingTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := c.Txn.Commit()
	if err == nil {
		for _, r := range response.Responses {
			*c.count += r.GetResponseRange().GetCount()
		}
	}
	return response, err
}

// TestDueCountsNothingLater: etcd counts only keys up to Until for a page of due work.
func TestDueCountsNothingLater(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	plant := seed{}
	for i := range 50 {
		ref := licensing.OrderRef(labOwner, licensing.NewOrderNo(labOwner, fmt.Sprintf("%026d", i)))
		plant[keyspace.DueOf(licensing.Due{Kind: licensing.DueOrderEnd,
			At: kvtest.Time.Add(time.Duration(i) * time.Minute)}).Key(keyspace.RecordKey(ref))] = []byte{}
	}
	l.write(plant)
	counted := int64(0)
	l.store.etcd.KV = countingKV{l.store.etcd.KV, &counted}
	span := store.DueSpan{Until: kvtest.Time.Add(9 * time.Minute)}
	page, err := l.store.Due(l.ctx(), licensing.DueOrderEnd, licensing.SlotOf(labOwner), span, "", 4)
	if err != nil || len(page.Records) != 4 || page.Next == "" || counted != 10 {
		t.Errorf("%d records, %q, %v; etcd counted %d, want 10", len(page.Records), page.Next, err, counted)
	}
	counted = 0
	if slots, err := l.store.DueSlots(l.ctx(), licensing.DueOrderEnd, span); err != nil || len(slots) != 1 ||
		counted != 11 {
		t.Errorf("the slots %v, %v; etcd counted %d, want 10 and the key of the slot", slots, err, counted)
	}
}
