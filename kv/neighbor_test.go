package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/deliveries"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	labHook      = "we_0egood" // the endpoint of the lab's owner
	neighborHook = "we_53neighbor"
)

// neighbor is an owner beside the lab's owner, one of whose values is damaged.
type neighbor struct {
	*lab
	specimens
	owner      licensing.Owner
	license    licensing.LicenseKey
	deliveries *deliveries.Store
	worker     store.DeliveryWorker
	now        time.Time // of retention and recounts
	round      int
	damaged    string             // the kind of the damaged value, as verify calls it
	behind     store.FeedPosition // up to where the neighbor has read its feed
	keys       []licensing.APIKey
}

func newNeighbor(l *lab, s specimens) *neighbor {
	l.t.Helper()
	n := &neighbor{lab: l, specimens: s, owner: licensing.Owner{AccountID: "acct_neighbor", Mode: licensing.Test},
		deliveries: deliveries.New(l.store), now: kvtest.Time}
	kvtest.Must(l.store.Commit(l.ctx(), store.Change{Writes: []store.Write{{
		Ref: licensing.ProductRef(n.owner, "pro"),
		Record: licensing.Record{Product: &licensing.Product{ID: "pro", Owner: n.owner,
			Terms: licensing.DefaultTerms(), CreatedAt: kvtest.Time}},
	}}}))(l.t)
	granted, _, err := l.node.Grant(l.ctx(), n.owner,
		service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: new(int)})
	if err != nil {
		l.t.Fatal(err)
	}
	n.license = granted[0].License.Key
	l.hook(n.owner, licensing.CreateEndpoint{Owner: n.owner, Endpoint: labEndpoint(neighborHook)})
	return n
}

// goesOn does everything that the neighbor and the work in the background rely on.
func (n *neighbor) goesOn(what string) {
	n.t.Helper()
	n.round++
	ctx := n.ctx()
	wrong := func(part string, err error, args ...any) {
		n.t.Helper()
		n.t.Errorf("%s: %s: %v %+v", what, part, err, args)
	}
	n.changesAndReads(ctx, wrong)
	n.lists(ctx, wrong)
	n.delivers(ctx, wrong)
	n.sweeps(ctx, wrong)
}

// listensAnew has another owner begin to listen and cease to.
func (n *neighbor) listensAnew() {
	n.t.Helper()
	fickle := licensing.Owner{AccountID: "acct_fickle", Mode: licensing.Live}
	id := licensing.NewEndpointID(fickle, fmt.Sprint("fickle", n.round))
	n.hook(fickle, licensing.CreateEndpoint{Owner: fickle, Endpoint: labEndpoint(id)})
	n.hook(fickle, licensing.DeleteEndpoint{ID: id})
}

type complain func(part string, err error, args ...any)

// changesAndReads activates a device and makes an order, and finds both in the feed.
func (n *neighbor) changesAndReads(ctx context.Context, wrong complain) {
	n.t.Helper()
	device := fmt.Sprintf("device-%d", n.round)
	if _, err := n.node.Activate(ctx,
		licensing.Activate{Target: licensing.Target{Key: n.license}, Device: device}); err != nil {
		wrong("activate", err)
	}
	order, _, err := n.node.CreateOrder(ctx, n.owner,
		service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD", BuyerEmail: labBuyer, Once: n.once(1)})
	if err != nil {
		wrong("order", err)
	}
	kvtest.Must(n.client.Put(ctx, keyspace.EpochKey, ""))(n.t) // closes the epoch
	bound, ordered := false, false
	for more := true; more; {
		page, err := n.store.ReadEvents(ctx, n.owner, store.FeedPage{After: n.behind, Limit: 100})
		if err != nil {
			wrong("feed", err)
			break
		}
		for _, e := range page.Events {
			bound = bound || e.Device != nil && e.Device.ID == device
			ordered = ordered || e.Order != nil && e.Order.OrderNo == order.OrderNo
		}
		n.behind, more = page.Next, page.More
	}
	if !bound || !ordered {
		wrong("feed", nil, bound, ordered)
	}
	if _, err := n.store.ReadEvents(ctx, labOwner, store.FeedPage{Limit: 100}); err != nil {
		wrong("the damaged owner's feed", err)
	}
	if _, err := n.store.Nodes(ctx); err != nil {
		wrong("nodes", err)
	}
}

// lists makes an API key, and reads the lists of both owners.
func (n *neighbor) lists(ctx context.Context, wrong complain) {
	n.t.Helper()
	key := newAPIKeyOf(n.owner)
	if err := n.store.CreateAPIKey(ctx, key); err != nil {
		wrong("create an API key", err)
	}
	n.keys = append(n.keys, key)
	uses := []store.KeyUse{{Hash: [32]byte(n.value(keyspace.APIKeyIndexKey(n.owner, key.ID))), At: n.now}}
	if hash := n.value(keyspace.APIKeyIndexKey(labOwner, "key_0elab")); len(hash) == 32 {
		uses = append(uses, store.KeyUse{Hash: [32]byte(hash), At: kvtest.Time})
	}
	if err := n.store.NoteKeysUsed(ctx, uses); err != nil {
		wrong("note the use of API keys", err)
	}
	if found, err := n.store.FindAPIKey(ctx, n.owner, key.ID); err != nil || found == nil ||
		!found.LastUsedAt.Equal(n.now) {
		wrong("find an API key", err, found)
	}
	page := store.Page{Limit: 200, Scan: 200}
	for _, owner := range []licensing.Owner{n.owner, labOwner} {
		licenses, err := n.store.ListLicenses(ctx, owner, licensing.Customer{}, page, nil)
		if err != nil || owner == n.owner && len(licenses.Items) != 1 {
			wrong("licenses", err, owner, len(licenses.Items))
		}
		orders, err := n.store.ListOrders(ctx, owner, "", page, nil)
		if err != nil || owner == n.owner && len(orders.Items) != n.round {
			wrong("orders", err, owner, len(orders.Items))
		}
		orders, err = n.store.ListOrders(ctx, owner, labBuyer, page, nil)
		if err != nil || owner == n.owner && len(orders.Items) != n.round {
			wrong("orders of a buyer", err, owner, len(orders.Items))
		}
		products, err := n.store.ListProducts(ctx, owner, page)
		if err != nil || owner == n.owner && len(products.Items) != 1 {
			wrong("products", err, owner, len(products.Items))
		}
		keys, err := n.store.ListAPIKeys(ctx, owner, page)
		if err != nil || owner == n.owner && len(keys.Items) != len(n.keys) {
			wrong("API keys", err, owner, len(keys.Items))
		}
	}
	if found, err := n.store.MasterUses(ctx, n.now); err != nil || len(found.Uses) < 2 {
		wrong("master keys", err, found)
	}
}

// delivers resumes and stores deliveries to the endpoints of both owners, as a node does.
func (n *neighbor) delivers(ctx context.Context, wrong complain) {
	n.t.Helper()
	found := false
	for webhooks, err := range n.deliveries.AllWebhooks(ctx) {
		found = found || err == nil && webhooks.Owner == n.owner && len(webhooks.Endpoints) == 1
	}
	if !found {
		wrong("endpoints", nil)
	}
	if _, err := n.worker.Leases(ctx); err != nil {
		wrong("leases", err)
	}
	place := store.FeedPosition(fmt.Sprintf("pos_%d", n.round))
	for endpoint, owner := range map[string]licensing.Owner{neighborHook: n.owner, labHook: labOwner} {
		err := n.deliversTo(ctx, owner, endpoint, place)
		endpointLost := n.damaged == "webhooks" && owner == labOwner && errors.Is(err, licensing.ErrInternal)
		if err != nil && !endpointLost {
			wrong("deliveries to "+endpoint, err)
		}
	}
	progress, err := n.deliveries.Progresses(ctx, labHook, neighborHook)
	if err != nil || progress[neighborHook].Place != place {
		wrong("progress", err, progress)
	}
	for _, endpoint := range []string{labHook, neighborHook} {
		if list, err := n.deliveries.Deliveries(ctx, endpoint, store.DeliveryPage{Limit: 100}); err != nil {
			wrong("deliveries of "+endpoint, err, list)
		}
	}
}

// deliversTo resumes the deliveries to an endpoint, and stores a checkpoint.
func (n *neighbor) deliversTo(
	ctx context.Context, owner licensing.Owner, endpoint string, place store.FeedPosition,
) error {
	hold, ok, err := n.worker.Acquire(ctx, owner, endpoint)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is not free", endpoint)
	}
	state, err := hold.Resume(ctx)
	if err == nil {
		_, _, err = hold.Jobs(ctx)
	}
	if err == nil {
		_, err = hold.Dead(ctx, "", 10)
	}
	if err == nil {
		state.Progress.Place = place
		message := func(event string) []store.Delivery { return []store.Delivery{{EventID: event}} }
		err = hold.Checkpoint(ctx, store.Checkpoint{Progress: state.Progress, Pending: message("evt_1"),
			Dead: message("evt_2"), Delivered: message(fmt.Sprintf("evt_3%d", n.round))})
	}
	return errors.Join(err, hold.Release(ctx))
}

// sweeps removes old claims and events, reads what is due, and counts usage.
func (n *neighbor) sweeps(ctx context.Context, wrong complain) {
	n.t.Helper()
	hash := fmt.Sprintf("claim %010d", n.round)
	kvtest.Must(n.store.Commit(ctx, store.Change{Writes: []store.Write{{Ref: licensing.ClaimRef(n.owner, hash),
		Record: licensing.Record{Claim: &licensing.Claim{CreatedAt: kvtest.Time.Add(time.Minute),
			Refusal: licensing.ErrPaymentNotConfigured}}}}}))(n.t)
	for swept := 1; swept > 0; {
		var err error
		swept, err = n.store.SweepClaims(ctx, kvtest.Time.Add(time.Hour))
		if reported := n.damaged == "claim" && errors.Is(err, licensing.ErrInternal); err != nil && !reported {
			wrong("the sweep of claims", err)
		}
	}
	if n.count(keyspace.ClaimKey(n.owner, hash)) > 0 {
		wrong("the sweep of claims", nil)
	}
	for x := range keyspace.DueIndexes() {
		slots, err := n.store.DueSlots(ctx, x.Kind, store.DueSpan{Until: labEnd})
		if err != nil {
			wrong("the slots with due work", err, x.Kind)
		}
		for _, slot := range slots {
			if _, err := n.store.Due(ctx, x.Kind, slot, store.DueSpan{Until: labEnd}, "", 100); err != nil {
				wrong("what is due", err, x.Kind)
			}
		}
	}
	wanted := store.RevocationsWanted{Most: 100}
	if list, err := n.store.ReadRevocations(ctx, labOwner, wanted); err != nil || list.Epoch == 0 {
		wrong("the list of revocations", err, list)
	}
	if _, err := n.store.SweepRevocations(ctx, 1); err != nil {
		wrong("the sweep of revocations", err)
	}
	revision, begun, err := n.store.BeginRecount(ctx, n.now)
	if err != nil || !begun {
		wrong("begin a recount", err, begun)
	}
	sizes, err := verify.Sizes(ctx, n.store, revision, 0)
	if err != nil || sizes[n.owner].Keys == 0 {
		wrong("usage", err, sizes)
	}
	// A node reads the usage of many owners together, and a recount corrects it for one owner after the other.
	owners := []licensing.Owner{labOwner, n.owner}
	usages, err := n.store.Load(ctx, store.Want{Ref: licensing.UsageRef(owners[0])},
		store.Want{Ref: licensing.UsageRef(owners[1])})
	if err != nil {
		wrong("read usage", err)
	}
	for i, usage := range usages {
		kvtest.Must(licensing.Apply(&usage.Record,
			licensing.SetUsage{Owner: owners[i], Counted: sizes[owners[i]], RecountAt: revision}, kvtest.Time))(n.t)
		outcome, err := n.store.Commit(ctx, store.Change{Writes: []store.Write{
			{Ref: licensing.UsageRef(owners[i]), Token: usage.Token, Record: usage.Record}}})
		if err != nil || !outcome.Landed {
			wrong("correct usage", err, owners[i], outcome)
		}
	}
	if err := n.store.EndRecount(ctx, revision, n.now); err != nil {
		wrong("end a recount", err)
	}
	for swept := 1; swept > 0; {
		if swept, err = n.deliveries.SweepWebhooks(ctx); err != nil {
			wrong("the sweep of endpoints", err)
		}
	}
	// The first sweep makes a mark. By the second, all events up to the mark are too old.
	keep := store.EventRetention{Age: time.Hour, Bytes: 1 << 40}
	n.now = n.now.Add(24 * time.Hour)
	for _, at := range []time.Time{n.now, n.now.Add(time.Hour + time.Millisecond)} {
		for swept := 1; swept > 0; {
			if swept, err = n.store.SweepEvents(ctx, at, keep); err != nil {
				wrong("retention", err)
			}
		}
	}
	if left := n.count(keyspace.EventsOf(n.owner)); left > 0 {
		wrong("retention leaves the neighbor's events", nil, left)
	}
	n.now = n.now.Add(24 * time.Hour)
}

// count counts the keys with a prefix.
func (l *lab) count(prefix string) int64 {
	l.t.Helper()
	return kvtest.Must(l.client.Get(l.ctx(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()))(l.t).Count
}
