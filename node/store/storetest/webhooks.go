package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// endpoint is an endpoint for some kinds of events. Its master key is that of the
// suite, which the store must use.
func (f fixture) endpoint(owner licensing.Owner, types ...licensing.EventType) licensing.Endpoint {
	return licensing.Endpoint{
		ID: licensing.NewEndpointID(owner, ulid.Make().String()), URL: "https://shop.example/licet", Description: "the shop",
		Types: types, SecretVersion: 1, MasterID: webhookMaster, Since: "pos_0",
	}
}

// webhookMaster is the master key that secrets of endpoints are derived from.
const webhookMaster = "m_webhooks"

// useMaster has the store know the master key, if it knows any.
func (f fixture) useMaster() {
	f.t.Helper()
	keys, ok := f.store.(store.Keys)
	if !ok {
		return
	}
	master, err := keyring.NewMasterKey(webhookMaster, [keyring.MasterKeySize]byte{1})
	if err == nil {
		err = keys.UseMaster(f.context(), master)
	}
	if err != nil && !errors.Is(err, licensing.ErrOutcomeUnknown) {
		f.t.Fatal(err)
	}
}

// stepWebhooks runs a command on an owner's endpoints, as often as it takes: one key shows which owners listen, so a
// swap may be lost to a change of any owner.
func (f fixture) stepWebhooks(owner licensing.Owner, cmd licensing.Command, now time.Time) {
	f.t.Helper()
	ref := licensing.WebhooksRef(owner)
	snapshot := f.load(ref)
	for range 100 {
		if _, err := licensing.Apply(&snapshot.Record, cmd, now); err != nil {
			f.t.Fatalf("%T: %v", cmd, err)
		}
		outcome := f.commit(store.Write{Ref: ref, Token: snapshot.Token, Record: snapshot.Record})
		if outcome.Landed {
			return
		}
		snapshot = f.rival(outcome, ref)
	}
	f.t.Fatalf("%T: it is lost again and again", cmd)
}

// testWebhooks makes, changes and removes endpoints, each time once with what is
// stored and once with what was.
func testWebhooks(t *testing.T, f fixture) {
	f.useMaster()
	owner := f.owner()
	ref := licensing.WebhooksRef(owner)
	first, second := f.endpoint(owner, licensing.EventOrderPaid,
		licensing.EventWebhookDisabled), f.endpoint(owner, licensing.EventLicenseIssued)
	want := &licensing.Webhooks{Owner: owner}
	disabled := true
	for i, cmd := range []licensing.Command{
		licensing.CreateEndpoint{Owner: owner, Endpoint: first},
		licensing.CreateEndpoint{Owner: owner, Endpoint: second},
		licensing.RotateEndpointSecret{ID: second.ID, MasterID: webhookMaster, Overlap: time.Hour},
		licensing.UpdateEndpoint{ID: first.ID, URL: new("https://shop.example/other"), Description: new("")},
		licensing.DisableEndpoint{ID: second.ID, ResetAt: created.Add(time.Second), Because: licensing.DisabledGone},
		licensing.UpdateEndpoint{ID: second.ID, Enabled: &disabled},
		licensing.DeleteEndpoint{ID: first.ID},
		licensing.DeleteEndpoint{ID: second.ID},
	} {
		now := created.Add(time.Duration(i) * time.Second)
		stale := f.load(ref)
		if i == 0 && (stale.Token != nil || stale.Record.Webhooks != nil) {
			t.Fatalf("there is %+v", stale)
		}
		f.stepWebhooks(owner, cmd, now)
		model := licensing.Record{Webhooks: want}
		if _, err := licensing.Apply(&model, cmd, now); err != nil {
			t.Fatal(err)
		}
		want = model.Webhooks
		f.equal("the endpoints", f.load(ref).Record.Webhooks, want)
		late := stale
		late.Record = late.Record.Clone()
		create := licensing.CreateEndpoint{Owner: owner, Endpoint: f.endpoint(owner, licensing.EventOrderPaid)}
		if _, err := licensing.Apply(&late.Record, create, now); err != nil {
			t.Fatal(err)
		}
		outcome := f.commit(store.Write{Ref: ref, Token: late.Token, Record: late.Record})
		if outcome.Landed {
			t.Fatal("a swap on what the endpoints were landed")
		}
		f.equal("the rival", f.rival(outcome, ref).Record.Webhooks, want)
	}
	if f.load(ref).Token == nil {
		t.Error("the record is gone along with its endpoints")
	}
	if other := (licensing.Owner{AccountID: owner.AccountID,
		Mode: licensing.Live}); f.load(licensing.WebhooksRef(other)).Record.Webhooks != nil {
		t.Error("the other mode has them too")
	}
}

// testListening subscribes to activations and unsubscribes. The store records the activations between the two, even
// if the snapshot of the change was read before.
func testListening(t *testing.T, f fixture, events EventfulStore, activations bool) {
	f.useMaster()
	l := f.createLicense(0)
	ref, owner := licensing.LicenseRef(l.Key), l.Owner
	yes, no := true, false
	all, orders := f.endpoint(owner), f.endpoint(owner, licensing.EventOrderPaid)
	want := []string{}
	for i, step := range []struct {
		cmd     licensing.Command
		listens bool
	}{
		{licensing.CreateEndpoint{Owner: owner, Endpoint: orders}, false},
		{licensing.CreateEndpoint{Owner: owner, Endpoint: all}, true},
		{licensing.UpdateEndpoint{ID: all.ID, Enabled: &no}, false},
		{licensing.UpdateEndpoint{ID: all.ID, Enabled: &yes}, true},
		{licensing.UpdateEndpoint{ID: all.ID,
			Types: &[]licensing.EventType{licensing.EventOrderPaid, licensing.EventOrderCreated}}, false},
		{licensing.UpdateEndpoint{ID: orders.ID, Types: &[]licensing.EventType{licensing.EventDeviceBound}}, true},
		{licensing.DeleteEndpoint{ID: orders.ID}, false},
		{licensing.UpdateEndpoint{ID: all.ID, Types: new([]licensing.EventType)}, true},
		{licensing.DisableEndpoint{ID: all.ID, ResetAt: created.Add(3 * time.Second),
			Because: licensing.DisabledFailing}, false},
	} {
		device := "device-" + string(rune('a'+i))
		before := f.load(ref, device) // and the change is of before the subscription was
		f.stepWebhooks(owner, step.cmd, created.Add(time.Duration(i)*time.Second))
		for range 100 {
			f.apply(&before.Record, l, created, device)
			outcome := f.commit(store.Write{Ref: ref, Token: before.Token, Record: before.Record})
			if outcome.Landed {
				break
			}
			before = f.rival(outcome, ref, device)
		}
		if step.listens || activations {
			want = append(want, device)
		}
	}
	f.closeEpoch(events)
	var bound, disabled []string
	for _, e := range f.readFeed(events, owner, "", 50) {
		switch e.Type {
		case licensing.EventDeviceBound:
			bound = append(bound, e.Device.ID)
		case licensing.EventWebhookDisabled:
			disabled = append(disabled,
				strings.Join([]string{e.Webhook.ID, string(e.Webhook.DisabledBecause), string(e.Actor)}, " "))
			if e.Sequence != 1 || e.Webhook.MasterID != "" || e.Webhook.URL != all.URL || e.License != nil ||
				e.Order != nil {
				t.Errorf("the event is %+v of %+v", e, e.Webhook)
			}
		}
	}
	f.equal("the devices with events", bound, want)
	f.equal("the endpoints that were disabled", disabled, []string{all.ID + " failing system"})
	history, err := events.History(f.context(), licensing.WebhooksRef(owner), store.HistoryPage{Limit: 5})
	if err != nil || len(history.Events) != 1 || history.Next != "" ||
		!slices.Equal(history.Events[0].Webhook.Types, nil) {
		t.Errorf("the history is %+v, %v", history, err)
	}
}
