package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// hookNode is a node that makes endpoints, with a store of its own on the etcd of all tests.
func hookNode(t *testing.T, change ...func(*service.Config)) (*service.Service, *kv.Store) {
	t.Helper()
	store := nodetest.OpenStore(t)
	return hookNodeOn(t, store, change...), store
}

func hookNodeOn(t *testing.T, store store.Store, change ...func(*service.Config)) *service.Service {
	t.Helper()
	return nodetest.New(t, store, append([]func(*service.Config){withRing(t)}, change...)...)
}

func hook(owner licensing.Owner, types ...licensing.EventType) service.EndpointCreation {
	return service.EndpointCreation{Owner: owner, URL: "https://shop.example/licet", Description: "the shop",
		Types: types, By: "key_1"}
}

func createHook(t *testing.T, n *service.Service, in service.EndpointCreation) service.IssuedEndpoint {
	t.Helper()
	issued, replayed, err := n.CreateWebhook(nodetest.Context(t), in)
	if err != nil || replayed {
		t.Fatalf("replayed %v, %v", replayed, err)
	}
	return issued
}

// TestWebhooks makes endpoints, changes, rotates and deletes them, at two nodes in
// turn.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	n, _ := hookNode(t)
	other, _ := hookNode(t)
	owner := nodetest.NewOwner(licensing.Live)
	if none, err := n.ListWebhooks(nodetest.Context(t), owner); err != nil || len(none) != 0 {
		t.Fatalf("there are %+v, %v", none, err)
	}
	first := createHook(t, n, hook(owner))
	second := createHook(t, other, hook(owner, licensing.EventOrderPaid))
	if !licensing.ValidEndpointID(first.Endpoint.ID) || first.Endpoint.Since == "" ||
		!strings.HasPrefix(first.Secret, "whsec_") || first.Secret == second.Secret {
		t.Errorf("made %+v", first)
	}
	all, err := n.ListWebhooks(nodetest.Context(t), owner)
	if err != nil || len(all) != 2 || all[0].ID != second.Endpoint.ID || all[1].ID != first.Endpoint.ID {
		t.Errorf("listed are %+v, %v", all, err)
	}
	secrets := func(want ...string) {
		t.Helper()
		endpoint, err := other.Webhook(nodetest.Context(t), owner, first.Endpoint.ID)
		nodetest.WantError(t, err, nil)
		if got, err := n.WebhookSecrets(&endpoint); err != nil || !slices.Equal(got, want) {
			t.Errorf("the secrets are %v, %v", got, err)
		}
	}
	secrets(first.Secret)
	rotated, replayed, err := other.RotateWebhookSecret(nodetest.Context(t),
		service.EndpointRotation{Owner: owner, ID: first.Endpoint.ID, Overlap: time.Hour})
	if err != nil || replayed || rotated.Endpoint.SecretVersion != 2 {
		t.Fatalf("rotated %+v, %v, %v", rotated, replayed, err)
	}
	secrets(rotated.Secret, first.Secret)
	no := false
	updated, err := n.UpdateWebhook(nodetest.Context(t), owner,
		licensing.UpdateEndpoint{ID: first.Endpoint.ID, Enabled: &no, Description: new("old")})
	if err != nil || updated.Enabled() || updated.DisabledBecause != licensing.DisabledByUser ||
		updated.Description != "old" {
		t.Errorf("updated %+v, %v", updated, err)
	}
	for _, stranger := range []licensing.Owner{nodetest.NewOwner(licensing.Live),
		{AccountID: owner.AccountID, Mode: licensing.Test}} {
		_, err := n.Webhook(nodetest.Context(t), stranger, first.Endpoint.ID)
		nodetest.WantError(t, err, licensing.ErrWebhookNotFound)
		_, err = n.UpdateWebhook(nodetest.Context(t), stranger, licensing.UpdateEndpoint{ID: first.Endpoint.ID})
		nodetest.WantError(t, err, licensing.ErrWebhookNotFound)
		_, _, err = n.RotateWebhookSecret(nodetest.Context(t),
			service.EndpointRotation{Owner: stranger, ID: first.Endpoint.ID})
		nodetest.WantError(t, err, licensing.ErrWebhookNotFound)
		nodetest.WantError(t, n.DeleteWebhook(nodetest.Context(t), stranger, first.Endpoint.ID, ""),
			licensing.ErrWebhookNotFound)
	}
	nodetest.WantError(t, n.DeleteWebhook(nodetest.Context(t), owner, first.Endpoint.ID, "key_1"), nil)
	nodetest.WantError(t, other.DeleteWebhook(nodetest.Context(t), owner, first.Endpoint.ID, "key_1"),
		licensing.ErrWebhookNotFound)
	_, err = other.Webhook(nodetest.Context(t), owner, first.Endpoint.ID)
	nodetest.WantError(t, err, licensing.ErrWebhookNotFound)
}

// TestTooManyWebhooks makes endpoints at two nodes at once: the owner gets exactly as many endpoints as allowed.
func TestTooManyWebhooks(t *testing.T) {
	t.Parallel()
	a, _ := hookNode(t)
	b, _ := hookNode(t)
	owner := nodetest.NewOwner(licensing.Test)
	var made, refused atomic.Int32
	var group sync.WaitGroup
	for i := range 2 * licensing.MaxEndpoints {
		group.Go(func() {
			_, _, err := []*service.Service{a, b}[i%2].CreateWebhook(nodetest.Context(t),
				hook(owner, licensing.EventOrderPaid))
			var limit *licensing.Error
			switch {
			case err == nil:
				made.Add(1)
			case errors.As(err, &limit) && limit.Reason == licensing.ReasonWebhookLimit &&
				limit.Details["max_endpoints"] == licensing.MaxEndpoints:
				refused.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	all, err := a.ListWebhooks(nodetest.Context(t), owner)
	if err != nil || len(all) != licensing.MaxEndpoints || made.Load() != licensing.MaxEndpoints ||
		refused.Load() != licensing.MaxEndpoints {
		t.Errorf("%d were made and %d refused; there are %d, %v", made.Load(), refused.Load(), len(all), err)
	}
}

// TestWebhooksOnce sends the same requests to two nodes at once: the service creates one endpoint and rotates its
// secret once, and one caller each gets the secrets.
func TestWebhooksOnce(t *testing.T) {
	t.Parallel()
	first, _ := hookNode(t)
	second, _ := hookNode(t)
	nodes := []*service.Service{first, second}
	owner := nodetest.NewOwner(licensing.Test)
	all := func(ask func(context.Context, *service.Service) (service.IssuedEndpoint, bool,
		error)) (made service.IssuedEndpoint) {
		t.Helper()
		var lock sync.Mutex
		answers, ids := 0, map[string]bool{}
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				ctx := nodetest.Context(t)
				issued, replayed, err := ask(ctx, nodes[i%2])
				for errors.Is(err, licensing.ErrRequestInProgress) {
					time.Sleep(time.Millisecond) // the other request needs the processor
					issued, replayed, err = ask(ctx, nodes[i%2])
				}
				nodetest.WantError(t, err, nil)
				lock.Lock()
				defer lock.Unlock()
				ids[issued.Endpoint.ID] = true
				if (issued.Secret == "") != replayed {
					t.Errorf("replayed %v with %+v", replayed, issued)
				}
				if !replayed {
					made = issued
					answers++
				}
			})
		}
		group.Wait()
		if answers != 1 || len(ids) != 1 {
			t.Errorf("%d callers got the secret, of %v", answers, ids)
		}
		return made
	}
	in := hook(owner)
	in.Once = nodetest.Once(ulid.Make().String(), "r")
	made := all(func(ctx context.Context, n *service.Service) (service.IssuedEndpoint, bool, error) {
		return n.CreateWebhook(ctx, in)
	})
	rotation := service.EndpointRotation{Owner: owner, ID: made.Endpoint.ID,
		Once: nodetest.Once(ulid.Make().String(), "r")}
	rotated := all(func(ctx context.Context, n *service.Service) (service.IssuedEndpoint, bool, error) {
		return n.RotateWebhookSecret(ctx, rotation)
	})
	if rotated.Endpoint.SecretVersion != 2 || rotated.Secret == made.Secret {
		t.Errorf("rotated to %+v", rotated.Endpoint)
	}
	reused := in
	reused.Once = &node.Once{Hash: in.Once.Hash, Fingerprint: [32]byte{1}}
	_, _, err := first.CreateWebhook(nodetest.Context(t), reused)
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)
	stale := hook(owner)
	stale.Once, stale.Stale = nodetest.Once(ulid.Make().String(), "r"), licensing.ErrCursorExpired
	_, _, err = first.CreateWebhook(nodetest.Context(t), stale)
	nodetest.WantError(t, err, licensing.ErrCursorExpired)
	nodetest.WantError(t, first.DeleteWebhook(nodetest.Context(t), owner, made.Endpoint.ID, ""), nil)
	_, replayed, err := second.CreateWebhook(nodetest.Context(t), in)
	nodetest.WantError(t, err, licensing.ErrWebhookNotFound)
	if replayed {
		t.Error("the creation of a deleted endpoint is replayed")
	}
}

// TestWebhookRefusalsAreRemembered: a request for an endpoint that was refused for want of room is refused again under
// the same key, although there is room by then.
func TestWebhookRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	n, _ := hookNode(t)
	owner := nodetest.NewOwner(licensing.Test)
	var last service.IssuedEndpoint
	for range licensing.MaxEndpoints {
		last = createHook(t, n, hook(owner))
	}
	in := hook(owner)
	in.Once = nodetest.Once("k", "r")
	for i := range 2 {
		_, replayed, err := n.CreateWebhook(nodetest.Context(t), in)
		var limit *licensing.Error
		if !errors.As(err, &limit) || limit.Reason != licensing.ReasonWebhookLimit || replayed != (i > 0) {
			t.Errorf("replayed %v, %v", replayed, err)
		}
		if i == 0 {
			nodetest.WantError(t, n.DeleteWebhook(nodetest.Context(t), owner, last.Endpoint.ID, ""), nil)
		}
	}
}

// TestWebhookInDoubt loses the answer to the creation of an endpoint, which the store has made or not. The repeated
// request makes the endpoint once.
func TestWebhookInDoubt(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		plain := nodetest.OpenStore(t)
		owner := nodetest.NewOwner(licensing.Test)
		failing := hookNodeOn(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			return storetest.Fault{Skip: !made, Say: licensing.ErrOutcomeUnknown}
		}})
		in := hook(owner, licensing.EventOrderPaid)
		in.Once = nodetest.Once("k", "r")
		_, _, err := failing.CreateWebhook(nodetest.Context(t), in)
		nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		n := hookNodeOn(t, plain)
		for i := range 2 {
			if _, replayed, err := n.CreateWebhook(nodetest.Context(t), in); err != nil || replayed != (made || i > 0) {
				t.Errorf("made %v: replayed %v, %v", made, replayed, err)
			}
		}
		if all, err := n.ListWebhooks(nodetest.Context(t), owner); err != nil || len(all) != 1 {
			t.Errorf("made %v: there are %+v, %v", made, all, err)
		}
	}
}

// TestWebhooksNeedTheRing asks nodes that were started with another ring, or drain.
func TestWebhooksNeedTheRing(t *testing.T) {
	t.Parallel()
	n, store := hookNode(t)
	owner := nodetest.NewOwner(licensing.Test)
	issued := createHook(t, n, hook(owner))
	wrong := hookNodeOn(t, store,
		func(cfg *service.Config) { cfg.Ring = parseRing(t, "m1:"+strings.Repeat("C", 42)+"A=") })
	draining := hookNodeOn(t, store)
	draining.StopIntake()
	for _, other := range []*service.Service{wrong, draining} {
		_, _, err := other.CreateWebhook(nodetest.Context(t), hook(owner))
		nodetest.WantError(t, err, licensing.ErrUnavailable)
		_, _, err = other.RotateWebhookSecret(nodetest.Context(t),
			service.EndpointRotation{Owner: owner, ID: issued.Endpoint.ID})
		nodetest.WantError(t, err, licensing.ErrUnavailable)
	}
	nodetest.WantError(t, wrong.DeleteWebhook(nodetest.Context(t), owner, issued.Endpoint.ID, ""), nil) // takes no ring
}

// TestSubscribeWhileActivating creates and deletes endpoints that want activations, while two nodes activate all the
// time: each activation that began after the creation was acknowledged has an event, and no activation that began
// after the deletion has one.
func TestSubscribeWhileActivating(t *testing.T) {
	t.Parallel()
	a, store := hookNode(t)
	b, _ := hookNode(t)
	nodes := []*service.Service{a, b}
	owner := nodetest.NewOwner(licensing.Test)
	unlimited := 0
	var keys []licensing.LicenseKey // of each node two: that others write too is not what is at stake
	for range 4 {
		granted, _, err := a.Grant(nodetest.Context(t), owner,
			service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &unlimited})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, granted[0].License.Key)
	}
	var phase atomic.Int64 // of 4: not listening, beginning to listen, listening, ending to listen
	var lock sync.Mutex
	var recorded, unrecorded []string // devices that must have an event, or must not
	stop := make(chan struct{})
	var group sync.WaitGroup
	for w := range 6 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				device := fmt.Sprintf("w%d-%d", w, i)
				before := phase.Load()
				if _, err := nodetest.Activate(nodetest.Context(t), nodes[w%2], keys[w%2+2*(i%2)], device); err != nil {
					t.Errorf("activate: %v", err)
					return
				}
				lock.Lock()
				if before == phase.Load() {
					switch before % 4 {
					case 0:
						unrecorded = append(unrecorded, device)
					case 2:
						recorded = append(recorded, device)
					}
				}
				lock.Unlock()
			}
		})
	}
	enough := func(list *[]string, n int) {
		t.Helper()
		for {
			lock.Lock()
			done := len(*list) >= n || t.Failed()
			lock.Unlock()
			if done {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	for round := range 4 {
		enough(&unrecorded, 30*(round+1))
		phase.Add(1)
		issued := createHook(t, nodes[round%2], hook(owner, licensing.EventDeviceBound))
		phase.Add(1)
		enough(&recorded, 30*(round+1))
		phase.Add(1)
		nodetest.WantError(t, nodes[round/2].DeleteWebhook(nodetest.Context(t), owner, issued.Endpoint.ID, ""), nil)
		phase.Add(1)
	}
	close(stop)
	group.Wait()
	events := map[string]int{}
	for _, e := range nodetest.FeedOf(t, store, owner) {
		if e.Type == licensing.EventDeviceBound {
			events[e.Device.ID]++
		}
	}
	for _, device := range recorded {
		if events[device] != 1 {
			t.Errorf("%s has %d events, and was bound while the owner listened", device, events[device])
		}
	}
	for _, device := range unrecorded {
		if events[device] != 0 {
			t.Errorf("%s has %d events, and the owner did not listen", device, events[device])
		}
	}
}

// TestOwnersSubscribeAtOnce: all owners that subscribe share one key. In the end exactly the owners that subscribed and
// did not unsubscribe listen.
func TestOwnersSubscribeAtOnce(t *testing.T) {
	t.Parallel()
	a, store := hookNode(t)
	b, _ := hookNode(t)
	nodes := []*service.Service{a, b}
	var group sync.WaitGroup
	owners := make([]licensing.Owner, 10)
	for i := range owners {
		owners[i] = nodetest.NewOwner(licensing.Test)
		group.Go(func() {
			issued, _, err := nodes[i%2].CreateWebhook(nodetest.Context(t), hook(owners[i]))
			nodetest.WantError(t, err, nil)
			if i%3 == 0 {
				nodetest.WantError(t,
					nodes[(i+1)%2].DeleteWebhook(nodetest.Context(t), owners[i], issued.Endpoint.ID, ""), nil)
			}
		})
	}
	group.Wait()
	for i, owner := range owners {
		granted, _, err := a.Grant(nodetest.Context(t), owner, service.Grant{ProductID: "pro", Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		key := granted[0].License.Key
		_, err = nodetest.Activate(nodetest.Context(t), b, key, "d")
		nodetest.WantError(t, err, nil)
		want := []string{"1 license.issued system", "2 license.activated system d", "3 device.bound system d"}
		if i%3 == 0 {
			want = want[:1]
		}
		nodetest.WantHistory(t, store, licensing.LicenseRef(key), want...)
	}
}

// TestDisableWebhook: the service disables an endpoint once, with one event, unless the endpoint was changed since it
// failed.
func TestDisableWebhook(t *testing.T) {
	t.Parallel()
	n, store := hookNode(t)
	owner := nodetest.NewOwner(licensing.Test)
	endpoint := createHook(t, n, hook(owner)).Endpoint
	ref := licensing.WebhooksRef(owner)
	updated, err := n.UpdateWebhook(nodetest.Context(t), owner,
		licensing.UpdateEndpoint{ID: endpoint.ID, URL: new("https://shop.example/new")})
	nodetest.WantError(t, err, nil)
	disable := licensing.DisableEndpoint{ID: endpoint.ID, ResetAt: endpoint.ResetAt, Because: licensing.DisabledGone}
	nodetest.WantError(t, n.DisableWebhook(nodetest.Context(t), owner, disable), nil)
	nodetest.WantHistory(t, store, ref)
	disable.ResetAt = updated.ResetAt
	for range 2 {
		nodetest.WantError(t, n.DisableWebhook(nodetest.Context(t), owner, disable), nil)
	}
	events := nodetest.WantHistory(t, store, ref, "1 webhook.disabled system")
	if len(events) == 1 &&
		(events[0].Webhook.URL != updated.URL || events[0].Webhook.DisabledBecause != licensing.DisabledGone) {
		t.Errorf("the event has %+v", events[0].Webhook)
	}
	yes := true
	updated, err = n.UpdateWebhook(nodetest.Context(t), owner, licensing.UpdateEndpoint{ID: endpoint.ID, Enabled: &yes})
	nodetest.WantError(t, err, nil)
	disable.ResetAt, disable.Because = updated.ResetAt, licensing.DisabledFailing
	nodetest.WantError(t, n.DisableWebhook(nodetest.Context(t), owner, disable), nil)
	nodetest.WantHistory(t, store, ref, "1 webhook.disabled system", "2 webhook.disabled system")
	if feed := nodetest.FeedOf(t, store, owner); !slices.Equal(nodetest.Lines(feed),
		[]string{"1 webhook.disabled system", "2 webhook.disabled system"}) {
		t.Errorf("the feed is %v", nodetest.Lines(feed))
	}
	disable.ID = "we_none"
	nodetest.WantError(t, n.DisableWebhook(nodetest.Context(t), owner, disable), licensing.ErrWebhookNotFound)
}
