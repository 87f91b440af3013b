package kv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
	"licet/node/store"
)

// hooked returns the change that a command makes of an owner's endpoints, as s reads them.
func (l *eventsLab) hooked(s *Store, owner licensing.Owner, cmd licensing.Command) store.Change {
	l.t.Helper()
	ref := licensing.WebhooksRef(owner)
	snapshot := loadOne(l.t, s, ref)
	kvtest.Must(licensing.Apply(&snapshot.Record, cmd, kvtest.Time))(l.t)
	return store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}}
}

// hook runs a command on an owner's endpoints, and returns how often its swap was lost.
func (l *eventsLab) hook(s *Store, owner licensing.Owner, cmd licensing.Command) (losses int) {
	l.t.Helper()
	for ; losses < 10; losses++ {
		outcome, err := s.Commit(l.t.Context(), l.hooked(s, owner, cmd))
		if err != nil {
			l.t.Fatalf("%T: %v", cmd, err)
		}
		if outcome.Landed {
			return losses
		}
	}
	l.t.Fatalf("%T is lost again and again", cmd)
	return losses
}

// subscribe makes an endpoint of an owner that wants activations.
func subscribe(owner licensing.Owner) licensing.CreateEndpoint {
	id := licensing.NewEndpointID(owner, strings.ReplaceAll(owner.AccountID, "_", ""))
	return licensing.CreateEndpoint{Owner: owner, Endpoint: labEndpoint(id, licensing.EventDeviceBound)}
}

func unsubscribe(owner licensing.Owner) licensing.DeleteEndpoint {
	return licensing.DeleteEndpoint{ID: subscribe(owner).Endpoint.ID}
}

// useMaster puts the master key of the endpoints into use in the store.
func (l *eventsLab) useMaster() {
	l.t.Helper()
	if err := l.store.UseMaster(l.t.Context(),
		kvtest.Must(keyring.NewMasterKey("m2", [keyring.MasterKeySize]byte{2}))(l.t)); err != nil {
		l.t.Fatal(err)
	}
}

// listeners reads which owners listen.
func (l *eventsLab) listeners() map[licensing.Owner]struct{} {
	l.t.Helper()
	found := kvtest.Must(l.store.etcd.Native.Get(l.t.Context(), keyspace.ListenersPrefix,
		clientv3.WithPrefix()))(l.t)
	listeners := make(map[licensing.Owner]struct{})
	for _, kv := range found.Kvs {
		owner, rest, ok := keyspace.CutOwner(string(kv.Key[len(keyspace.ListenersPrefix):]))
		if !ok || rest != "" {
			l.t.Fatalf("%q is the key of no owner", kv.Key)
		}
		listeners[owner] = struct{}{}
	}
	return listeners
}

func (l *eventsLab) wantListeners(owners ...licensing.Owner) {
	l.t.Helper()
	now := l.listeners()
	for _, owner := range owners {
		if _, is := now[owner]; !is {
			l.t.Errorf("%v does not listen", owner)
		}
	}
	if len(now) != len(owners) {
		l.t.Errorf("%v listen, want %v", slices.Collect(maps.Keys(now)), owners)
	}
}

func newHooksLab(t *testing.T) *eventsLab {
	t.Helper()
	l := newEventsLab(t)
	l.store.recordActivations = false
	l.useMaster()
	return l
}

// TestSubscriptionsInABatch sends subscriptions of some owners and activations of all owners in few requests, flat and
// nested: an activation after the subscription has an event.
func TestSubscriptionsInABatch(t *testing.T) {
	l := newHooksLab(t)
	for _, nested := range []int32{0, 100} {
		var owners []licensing.Owner
		var refs []licensing.Ref
		var changes []store.Change
		for i := range 8 {
			owner := acct(fmt.Sprintf("batch%d%d", nested, i))
			owners, refs = append(owners, owner), append(refs, l.license(l.store, owner))
			changes = append(changes, l.bound(l.store, refs[i], "a"), l.hooked(l.store, owner, subscribe(owner)))
		}
		l.store.nested.Store(nested)
		outcomes, errs := batched(t, l.store, changes...)
		for i, outcome := range outcomes {
			switch {
			case errs[i] != nil:
				t.Errorf("change %d: %v", i, errs[i])
			case outcome.Landed:
			case i%2 == 0:
				l.commit(l.store, l.bound(l.store, refs[i/2], "a"))
			default:
				l.hook(l.store, owners[i/2], subscribe(owners[i/2]))
			}
		}
		l.wantListeners(owners...)
		l.store.nested.Store(nested)
		for i := range owners {
			changes[i] = l.bound(l.store, refs[i], "b")
		}
		outcomes, errs = batched(t, l.store, changes[:len(owners)]...)
		l.closeEpoch()
		for i, owner := range owners {
			if errs[i] != nil || !outcomes[i].Landed {
				t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
			}
			kinds := kindsOf(l.feed(owner, 10))
			if last := kinds[len(kinds)-1]; !strings.HasSuffix(last, "device.bound b") {
				t.Errorf("the feed is %q", kinds)
			}
			l.hook(l.store, owner, unsubscribe(owner))
		}
	}
	l.wantListeners()
}

// TestMarkMovesWithEndpoints: workers look for endpoints again after each change.
func TestMarkMovesWithEndpoints(t *testing.T) {
	l := newHooksLab(t)
	owner := acct("mark")
	revision := int64(0)
	for _, cmd := range []licensing.Command{
		subscribe(owner),
		licensing.UpdateEndpoint{ID: subscribe(owner).Endpoint.ID, Description: new("x")},
		licensing.RotateEndpointSecret{ID: subscribe(owner).Endpoint.ID, MasterID: "m2"},
		unsubscribe(owner),
	} {
		l.hook(l.store, owner, cmd)
		kvs := kvtest.Must(l.store.etcd.Native.Get(t.Context(), keyspace.WebhooksMark))(t).Kvs
		if len(kvs) != 1 || kvs[0].ModRevision <= revision {
			t.Fatalf("%T: the mark is %v", cmd, kvs)
		}
		revision = kvs[0].ModRevision
	}
	deleted := kvtest.Must(l.store.etcd.Native.Get(t.Context(),
		keyspace.InSlot(licensing.SlotOf(owner), keyspace.DeletedWebhooksFamily), clientv3.WithPrefix()))(t).Kvs
	if len(deleted) != 1 || string(deleted[0].Key) != keyspace.DeletedWebhookKey(subscribe(owner).Endpoint.ID) {
		t.Errorf("deleted are %v", deleted)
	}
}

// TestRestoreKeepsWhoListens subscribes and unsubscribes owners after a backup, and restores the backup: the owners
// that listened at the backup listen, also for a node that was up and knew the later state.
func TestRestoreKeepsWhoListens(t *testing.T) {
	t.Parallel()
	d := newDisaster(t)
	l := &eventsLab{t: t, etcd: d.etcd, store: d.store}
	key := func(owner licensing.Owner) licensing.Ref {
		unlimited := 0
		granted, _, err := d.node.Grant(d.ctx(), owner,
			service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &unlimited, Once: d.once(0)})
		if err != nil {
			t.Fatal(err)
		}
		return licensing.LicenseRef(granted[0].License.Key)
	}
	late := licensing.Owner{AccountID: "acct_late", Mode: licensing.Test}
	left := licensing.Owner{AccountID: "acct_left", Mode: licensing.Test}
	l.hook(d.store, left, subscribe(left))
	d.backup = backUp(t, d.etcd)
	l.hook(d.store, late, subscribe(late))
	l.hook(d.store, left, unsubscribe(left))
	d.restore(keyspace.RevisionBump)
	l.etcd = d.etcd
	l.wantListeners(labListener, left)
	for owner, listens := range map[licensing.Owner]bool{late: false, left: true} {
		ref := key(owner)
		d.activate(keyOf(ref), "a")
		history := kvtest.Must(d.store.History(d.ctx(), ref, store.HistoryPage{Limit: 10}))(t).Events
		if got := len(history) > 1; got != listens {
			t.Errorf("%s listens: %v, by %q", owner.AccountID, got, kindsOf(history))
		}
	}
	kvtest.Must(d.store.readOpenEpoch(d.ctx()))(t) // as a node does several times a second
	d.clean()
	l.hook(d.store, late, subscribe(late))
	l.hook(d.store, left, unsubscribe(left))
	l.wantListeners(labListener, late)
	d.clean()
}

// TestEndpointsKeepTheirMaster: the store retires no master key from which an endpoint's secret is derived, and no
// secret is derived from a retired master key.
func TestEndpointsKeepTheirMaster(t *testing.T) {
	l := newHooksLab(t)
	ctx := t.Context()
	if err := l.store.UseMaster(ctx,
		kvtest.Must(keyring.NewMasterKey("m3", [keyring.MasterKeySize]byte{3}))(t)); err != nil {
		t.Fatal(err)
	}
	owner := acct("masters")
	id := subscribe(owner).Endpoint.ID
	refused := func(at time.Time, why string) {
		t.Helper()
		if err := l.store.RetireMaster(ctx, "m2", at); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %s", err, why)
		}
	}
	before := kvtest.Must(l.store.MasterUses(ctx, kvtest.Time))(t)
	l.hook(l.store, owner, subscribe(owner))
	if retired := kvtest.Must(l.store.retireMaster(ctx, "m2", before))(t); retired {
		t.Error("the master key was retired although an endpoint was made meanwhile")
	}
	l.hook(l.store, owner, licensing.UpdateEndpoint{ID: id, Enabled: new(false)})
	refused(kvtest.Time, "derived from it: the secrets of 1 webhook endpoints: "+id)
	l.hook(l.store, owner, licensing.RotateEndpointSecret{ID: id, MasterID: "m3", Overlap: time.Hour})
	ends := kvtest.Time.Add(time.Hour)
	refused(ends, "until "+ends.Format(time.RFC3339)+" the previous secrets of 1: "+id)
	if err := l.store.RetireMaster(ctx, "m2", ends.Add(retireMargin)); err != nil {
		t.Error(err)
	}
	outcome, err := l.store.Commit(ctx,
		l.hooked(l.store, owner, licensing.RotateEndpointSecret{ID: id, MasterID: "m2"}))
	if err != nil || outcome.Landed {
		t.Errorf("a secret was derived from a retired master key: %+v, %v", outcome, err)
	}
	l.hook(l.store, owner, licensing.UpdateEndpoint{ID: id, Enabled: new(true)})
	l.clean()
}

// TestUnsubscribeOnAStaleStore has a store unsubscribe an owner that the store already believes to be unsubscribed:
// the store has not read the latest changes.
func TestUnsubscribeOnAStaleStore(t *testing.T) {
	l := newHooksLab(t)
	owner := acct("unknowing")
	s := l.open(nil)
	enable := func(s *Store, enabled bool) {
		l.hook(s, owner, licensing.UpdateEndpoint{ID: subscribe(owner).Endpoint.ID, Enabled: &enabled})
	}
	l.hook(l.store, owner, subscribe(owner))
	enable(s, false) // a store that knows no listening owner
	l.wantListeners()
	enable(l.store, true)
	kvtest.Must(s.readOpenEpoch(t.Context()))(t) // from which the store learns that the owner listens
	enable(l.store, false)
	enable(s, true)
	l.wantListeners(owner)
	l.clean()
}

// TestNewerEndpoints changes endpoints that a newer node wrote: fields and kinds of events that this node does not know
// stay.
func TestNewerEndpoints(t *testing.T) {
	l := newHooksLab(t)
	owner := acct("newer")
	newer := kvtest.NewerField()
	first := labEndpoint(licensing.NewEndpointID(owner, "first"), "order.rented")
	first.CreatedAt, first.ResetAt = kvtest.Time, kvtest.Time
	second := first
	second.ID = licensing.NewEndpointID(owner, "second")
	stored := layout.Webhooks{
		Webhooks: licensing.Webhooks{Owner: owner, Endpoints: []licensing.Endpoint{first, second}},
		Unknown:  newer, UnknownOf: map[string][]byte{second.ID: newer},
	}
	if _, err := l.store.etcd.Native.Put(t.Context(), keyspace.WebhooksKey(owner),
		string(stored.Encode())); err != nil {
		t.Fatal(err)
	}
	l.hook(l.store, owner, licensing.UpdateEndpoint{ID: second.ID, Description: new("changed")})
	l.hook(l.store, owner, licensing.DeleteEndpoint{ID: first.ID})
	value := kvtest.Must(l.store.etcd.Native.Get(t.Context(),
		keyspace.WebhooksKey(owner)))(t).Kvs[0].Value
	got := kvtest.Must(layout.DecodeWebhooks(owner, value))(t)
	second.Description = "changed"
	stored.Webhooks.Endpoints, stored.Writers = []licensing.Endpoint{second}, got.Writers
	kvtest.Equal(t, got, &stored)
	l.wantListeners()
}

// TestEventsOfManyEndpoints disables several endpoints in one transaction: each event is about its own endpoint.
func TestEventsOfManyEndpoints(t *testing.T) {
	l := newHooksLab(t)
	owner := acct("manyhooks")
	ref := licensing.WebhooksRef(owner)
	var ids []string
	for i := range 3 {
		ids = append(ids, licensing.NewEndpointID(owner, fmt.Sprint(i)))
		l.hook(l.store, owner,
			licensing.CreateEndpoint{Owner: owner, Endpoint: labEndpoint(ids[i], licensing.EventOrderPaid)})
	}
	snapshot := loadOne(t, l.store, ref)
	for _, id := range ids {
		kvtest.Must(licensing.Apply(&snapshot.Record,
			licensing.DisableEndpoint{ID: id, ResetAt: kvtest.Time, Because: licensing.DisabledGone}, kvtest.Time))(t)
	}
	l.commit(l.store, store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
	l.closeEpoch()
	var events []string
	for i, e := range l.feed(owner, 2) {
		events = append(events, e.Webhook.ID)
		if e.Sequence != uint64(i+1) || e.Webhook.Enabled() ||
			!slices.Equal(e.Webhook.Types, []licensing.EventType{licensing.EventOrderPaid}) {
			t.Errorf("event %d is %+v of %+v", i, e, e.Webhook)
		}
	}
	if !slices.Equal(events, ids) {
		t.Errorf("events of %q, want %q", events, ids)
	}
	l.clean()
}
