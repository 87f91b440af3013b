package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"licet/client"
	"licet/loadtest/rig"
)

const (
	fairWorkers = 32 // connections of the account that only activates
	fairRivals  = 4  // clients of the account that does its worst
	rivalAtOnce = 25 // calls of one of these clients at the same time, in some attacks
	// fairEventBytes is the retention of events. An attacker reaches this limit within seconds.
	fairEventBytes = "33554432"
	// refusedPause is how long a client of that account waits after a refusal. The limits of the account refill
	// meanwhile, so the pause takes nothing from an attack but refused requests.
	refusedPause = 10 * time.Millisecond
	// throughWithin is how long after a load an attack may take to get through for the first time. A small load is
	// shorter than a turn of some attacks, and the attack before may have used up the rate of the account.
	throughWithin = 10 * time.Second
)

// turnFunc is one turn of one of the rival's clients.
type turnFunc = func(ctx context.Context, client, turn int) error

// rival is the account that attacks, with one API key and the default limits.
type rival struct {
	bench       *bench
	key         string
	api         *client.Client // of a node of its own: what is shared is the store
	here        *client.Client // of the measured node: the node is shared too
	raw         *http.Client   // of the measured node; see send
	patient     *client.Client // of the other node; it repeats refused requests, to undo a preparation
	license     []byte
	large       *rig.Keys // a license for many devices
	foreign     []byte    // a license of the other account, with rivalDevices devices
	external    *rig.Keys // the external keys of the other account
	connections int       // that the rival may open
	cold        int       // how many licenses the rival grants, to activate each of them once
	sink        *sink
	undo        func(context.Context) error // takes back what an attack has prepared; nil: nothing
}

// defaultLimits returns the flags of nodes with the service's own limits, which the nodes of a
// load don't have.
func defaultLimits() []string {
	return append(webhookFlags(), "--rate-limit-account", "500/s", "--rate-limit-new-devices", "1000/1m40s",
		"--rate-limit-license-kib", "10240/10s", "--rate-limit-account-kib", "8192/1s")
}

// fair measures one account's new devices on distinct licenses while another account
// attacks in one way, at the measured node or at another one. Each attack meets a store of its own, so that it
// does not answer for what other attacks have left. Only a small load has one store for all.
func (l *lab) fair(ctx context.Context, _ *bench) {
	wanted := slices.DeleteFunc(measured(), func(a attack) bool { return !l.cfg.wantsAttack(a) })
	together := 1
	if l.cfg.quick {
		together = len(wanted)
	}
	for some := range slices.Chunk(wanted, together) {
		l.fairAgainst(ctx, some)
	}
}

// fairAgainst measures attacks one after the other, in one store.
func (l *lab) fairAgainst(ctx context.Context, attacks []attack) {
	l.progress.Step("starting etcd and two nodes")
	b := l.bench(ctx, 1, append(defaultLimits(), "--event-retention-bytes", fairEventBytes)...)
	defer b.stop()
	r := l.newRival(ctx, b)
	defer r.sink.stop()
	list := b.grant(ctx, l.cfg.Licenses, unlimited)
	n := list.Count()
	b.activate(ctx, shape{workers: fairWorkers}, list, spread(n, 0), closed(ctx, n, 0))
	next := uint64(0)
	measure := func(what string) *sample {
		next++
		s := b.activate(ctx, shape{workers: fairWorkers}, list, spread(n, 100*next), closed(ctx, 0, l.cfg.Span))
		l.checkSample("fair", what, s)
		return s
	}
	for number := range l.cfg.Rounds {
		undisturbed := measure("undisturbed")
		for _, a := range attacks {
			l.progress.Step("round %d of %d: one account %s", number+1, l.cfg.Rounds, a.name)
			var rough *sample
			var through int64
			named("another account "+a.name, func() {
				rough, through = r.meanwhile(ctx, a,
					func() *sample { return measure("while another account " + a.name) })
			})
			before := undisturbed
			undisturbed = measure("undisturbed")
			l.informFair(number, a, before, rough, undisturbed, through)
		}
	}
}

// informFair reports a load that an attack has disturbed, against the undisturbed loads before and after the attack. A
// load is no sample if the service refused the whole attack. A small load is a sample: see throughWithin.
func (l *lab) informFair(number int, a attack, before, rough, after *sample, through int64) {
	if through == 0 && !l.cfg.quick {
		l.report.note("fair", fmt.Sprintf("round %d: no sample, since nothing of what the other account does got "+
			"through: it %s", number+1, a.name))
		return
	}
	undisturbed := (before.rate() + after.rate()) / 2
	if a.control {
		l.report.inform("fair: new devices ÷ undisturbed while it "+a.name, "", rough.rate()/undisturbed)
	} else {
		l.report.add("fair", a.name, rough.rate()/undisturbed)
	}
	l.report.inform("fair: undisturbed", "/s", undisturbed)
	// The rival's clients run on the cores that are measured, so their processor time is part of the loss.
	l.report.inform("fair: CPU of both accounts' clients while it "+a.name, "%",
		100*rough.own.Seconds()/rough.elapsed.Seconds())
	l.report.inform("fair: it "+a.name, "/s", float64(through)/rough.elapsed.Seconds())
}

func (l *lab) newRival(ctx context.Context, b *bench) *rival {
	key := must(b.Licet.CreateKey(ctx, b.Etcd, "rival"))
	r := &rival{bench: b, key: key, connections: l.cfg.Connections, cold: l.cfg.Licenses,
		raw: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: fairRivals * rivalAtOnce}}}
	// A client that repeats refused requests would be more polite than an attacker.
	for api, n := range map[**client.Client]*rig.Node{&r.api: b.seeder, &r.here: b.node} {
		*api = must(client.New("http://"+n.Address, key, client.RetryFor(0)))
	}
	r.patient = must(client.New("http://"+b.seeder.Address, key))
	licenses := must(grant(ctx, b.seeder, key, 1, fairRivals))
	r.large = must(grant(ctx, b.seeder, key, 1, unlimited))
	foreign := b.grant(ctx, 1, unlimited)
	must(bind(ctx, b.seeder, fairWorkers, foreign, rivalDevices, onto(0)))
	_, r.external = b.grantExternal(ctx, 1, 0)
	r.license, r.foreign = slices.Clone(licenses.At(0)), foreign.At(0)
	r.sink = newSink()
	return r
}

// meanwhile measures while the rival's clients attack. It returns how often they got through while it measured. It
// fails if they get through neither then nor soon after.
func (r *rival) meanwhile(
	ctx context.Context, a attack, measure func() *sample,
) (s *sample, through int64) {
	r.undo = nil
	turn := a.open(r, ctx)
	attacking, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	var count atomic.Int64
	first := make(chan struct{})
	for c := range fairRivals {
		clients.Go(func() {
			for n := 0; attacking.Err() == nil; n++ {
				err := turn(attacking, c, n)
				if a.gotThrough(err) && count.Add(1) == 1 {
					close(first)
				}
				// The attack expects refusals. The rival runs on the cores that are measured: without a pause, its own
				// work would disturb more than the node's.
				if err != nil {
					rig.Rest(attacking, refusedPause)
				}
			}
		})
	}
	err := attempt(func() { s = measure() })
	if through = count.Load(); through == 0 && err == nil {
		select {
		case <-first:
		case <-time.After(throughWithin):
			err = errors.New("nothing of the attack got through, so the load proves nothing")
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	stop()
	clients.Wait()
	if r.undo != nil {
		err = errors.Join(err, r.undo(ctx))
	}
	stopIf(err)
	return s, through
}

// together makes a client make many calls at the same time, with numbers from 0. The client pauses for each refused
// call, as other attacks do for each refused request.
func together(call func(ctx context.Context, client, number int) error) turnFunc {
	return func(ctx context.Context, c, _ int) error {
		var calls sync.WaitGroup
		failures := make([]error, rivalAtOnce)
		for i := range failures {
			calls.Go(func() { failures[i] = call(ctx, c, i) })
		}
		calls.Wait()
		failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
		if len(failures) < rivalAtOnce { // the client got through
			rig.Rest(ctx, time.Duration(len(failures))*refusedPause)
			return nil
		}
		rig.Rest(ctx, (rivalAtOnce-1)*refusedPause) // one pause follows
		return failures[0]
	}
}

// flipTypes makes the account subscribe to activations and unsubscribe again.
func (r *rival) flipTypes(ctx context.Context) turnFunc {
	made := must(r.api.Webhooks.Create(ctx, client.NewWebhook{URL: r.sink.url}))
	r.undo = func(ctx context.Context) error { return r.patient.Webhooks.Delete(ctx, made.ID) }
	return func(ctx context.Context, _, turn int) error {
		types := [][]string{{"order.paid"}, {client.AllTypes}}[turn%2]
		_, err := r.api.Webhooks.Update(ctx, made.ID, client.WebhookUpdate{Types: types})
		return err
	}
}

func (r *rival) churnEndpoints(context.Context) turnFunc {
	r.undo = r.deleteEndpoints
	return func(ctx context.Context, _, _ int) error {
		made, err := r.api.Webhooks.Create(ctx, client.NewWebhook{URL: r.sink.url})
		if err != nil {
			return err
		}
		return r.api.Webhooks.Delete(ctx, made.ID)
	}
}

// deleteEndpoints deletes what a stopped client has left.
func (r *rival) deleteEndpoints(ctx context.Context) error {
	list, err := r.patient.Webhooks.List(ctx, client.Page{Limit: 100})
	if err != nil {
		return err
	}
	for _, w := range list.Items {
		// The client's own request may have gone through meanwhile.
		if failed := r.patient.Webhooks.Delete(ctx, w.ID); !client.HasReason(failed, "webhook_endpoint_not_found") {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (r *rival) churnKeys(context.Context) turnFunc {
	return func(ctx context.Context, _, _ int) error {
		made, err := r.api.APIKeys.Create(ctx, client.NewKey{Name: "rival", Scopes: []string{"orders:read"}})
		if err != nil {
			return err
		}
		_, err = r.api.APIKeys.Revoke(ctx, made.ID)
		return err
	}
}
