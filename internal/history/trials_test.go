package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	tryers    = 3 // devices that want a trial for the same addresses
	addresses = 6
	upgraders = 2 // orders that name the trial of an address
)

// offerTrials makes the product that may be tried, once for an address.
func (r *run) offerTrials() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	put := licensing.PutProduct{ID: "tried", Owner: r.owner, Terms: licensing.DefaultTerms(),
		Trial: licensing.TrialTerms{Validity: licensing.Period{Days: 14}, MaxDevices: 1, PerEmail: true}}
	return patiently(ctx, func() error {
		_, _, err := r.maker.node.PutProduct(ctx, put)
		return err
	})
}

// tryOut has several devices start a trial for each address at the same time. Then orders that name the trial are paid,
// also at the same time.
func (r *run) tryOut() {
	for address := range addresses {
		var group sync.WaitGroup
		for tryer := range tryers {
			group.Go(func() { r.try(address, fmt.Sprint("tryer ", tryer)) })
		}
		group.Wait()
		tried := r.triedKey(address)
		for upgrader := range upgraders {
			group.Go(func() { r.upgrade(tried, address, upgrader) })
		}
		group.Go(func() { r.try(address, "tryer 0") })
		group.Wait()
	}
}

// try asks for a trial until the answer is success or refusal, a few times at most.
func (r *run) try(address int, device string) {
	random := r.random("try", uint64(address), uint64(device[len(device)-1]))
	for range 5 {
		p := r.anyone(random)
		d := deed{What: "try", External: address, Device: device, Before: revision(), Call: time.Since(r.started)}
		type answer struct {
			result licensing.Result
			err    error
		}
		a, answered := reach(r, p, patience, func(ctx context.Context) (a answer) {
			a.result, a.err = p.node.StartTrial(ctx, r.owner, service.NewTrial{ProductID: "tried", Device: device,
				BuyerEmail: fmt.Sprintf("Try%d@example.com", address), By: "key_1"})
			return a
		})
		d.Return, d.After = time.Since(r.started), revision()
		if d.Out = outputOf(a.err); !answered {
			d.Out = output{Verdict: unknown}
		}
		if d.Out.Verdict == accepted {
			d.Keys = []licensing.LicenseKey{a.result.License.Key}
		}
		r.noteDeed(d)
		if d.Out.Verdict == accepted || d.Out.Verdict == refused {
			return
		}
	}
}

// triedKey returns the license in an answer to a device that has started a trial for an address; zero if there is none.
func (r *run) triedKey(address int) licensing.LicenseKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.deeds {
		if d.What == "try" && d.External == address && len(d.Keys) > 0 {
			return d.Keys[0]
		}
	}
	return licensing.LicenseKey{}
}

// upgrade makes an order that names a trial, and pays it, perhaps twice.
func (r *run) upgrade(tried licensing.LicenseKey, address, upgrader int) {
	if tried.IsZero() {
		return
	}
	random := r.random("upgrade", uint64(address), uint64(upgrader))
	in := service.NewOrder{ProductID: "tried", Amount: 100, Currency: "USD", UpgradeOf: tried,
		Description: fmt.Sprint("upgrade ", address, " by ", upgrader), BuyerEmail: "upgrader@example.com",
		Once: once("upgrade", address*upgraders+upgrader)}
	order, made := r.transact(random, deed{What: "create"},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			order, _, err := p.node.CreateOrder(ctx, r.owner, in)
			return order, err
		})
	if !made {
		return // the other order was paid before
	}
	r.bank.take(order)
	for payer := range 1 + random.IntN(2) {
		payment := fmt.Sprint("payment ", payer)
		r.transact(random, deed{What: "pay", Order: order.OrderNo, Payment: payment},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				return r.desk(p).Confirm(ctx, order, payment)
			})
	}
}

// trialAt is a write of a trial.
type trialAt struct {
	revision int64
	license  licensing.LicenseID
	created  bool
}

// trial: the license of a trial is made along with what remembers the trial, for one device. It changes once, when an
// order upgrades it: then it names the order, which has it in the same revision.
func (i *inspection) trial(t *timeline, key licensing.LicenseKey, states []*licenseAt) {
	first := states[0]
	writes := t.trials[first.trial]
	if len(writes) != 1 || writes[0].license != key.ID() || writes[0].revision != first.revision {
		i.add("trials", "%s: the trial that it names was written at %+v: %s", key, writes, first)
	}
	if first.order != "" || first.upgraded != 0 || first.max != 1 || len(first.devices) != 1 || first.expires == 0 {
		i.add("trials", "%s: the license of a trial began as %s", key, first)
	}
	for n, s := range states[1:] {
		before := states[n]
		again := before.upgraded != 0 && (s.order != before.order || s.upgraded != before.upgraded)
		if s.trial != before.trial || again {
			i.add("trials", "%s: was upgraded for the order %q at %d, and then: %q at %d: %s", key, before.order,
				before.upgraded, s.order, s.upgraded, s)
		}
		if (s.order == "") != (s.upgraded == 0) || s.upgraded != 0 && (s.expires != 0 || s.max != 3) {
			i.add("trials", "%s: half upgraded: %s", key, s)
		}
		orders := t.orders[s.order]
		if before.order != s.order && !slices.ContainsFunc(orders,
			func(o *orderAt) bool { return o.revision == s.revision && o.key == key && o.paid != 0 }) {
			i.add("trials", "%s: was upgraded for %s, which was not paid in that revision: %s", key, s.order, s)
		}
		for id, at := range before.devices {
			if s.devices[id] != at {
				i.add("trials", "%s: the device %s was lost: %s", key, id, s)
			}
		}
	}
}

// trials: a trial is written once, along with its license; an answer names that license, to the device that has started
// the trial; another device is refused only once the trial is stored; and an order that names a trial has its license
// exactly if the order has upgraded it.
func (i *inspection) trials(t *timeline) {
	for name, writes := range t.trials {
		states := t.licenses[writes[0].license]
		if len(writes) != 1 || !writes[0].created {
			i.add("trials", "the trial %x was written at %+v", name, writes)
		} else if len(states) == 0 || states[0].revision != writes[0].revision || states[0].trial != name {
			i.add("trials", "the trial %x was not made along with its license %s", name, writes[0].license)
		}
	}
	terms := licensing.TrialTerms{PerEmail: true}
	for _, d := range i.run.deeds {
		if d.What != "try" {
			continue
		}
		name := testKeys.TrialOf(i.run.owner, "tried", terms, d.Device, fmt.Sprintf("try%d@example.com", d.External))
		writes := t.trials[string(name[:])]
		stored := len(writes) > 0 && writes[0].revision <= d.After
		switch d.Out.Verdict {
		case accepted:
			if !stored || d.Keys[0].ID() != writes[0].license || t.licenses[writes[0].license] == nil ||
				t.licenses[writes[0].license][0].devices[d.Device] == 0 {
				i.add("trials", "address %d was answered with %v for %s, and stored are %+v", d.External, d.Keys,
					d.Device, writes)
			}
		case refused:
			if d.Out.Reason != licensing.ReasonTrialUsed || !stored {
				i.add("trials", "address %d was refused at revision %d: %s, and stored are %+v", d.External, d.After,
					d.Out, writes)
			}
		}
	}
	for number, states := range t.orders {
		last := states[len(states)-1]
		if last.upgradeOf.IsZero() || last.paid == 0 {
			continue
		}
		trial := t.licenses[last.upgradeOf.ID()]
		if upgraded := trial[len(trial)-1].order == number; upgraded != (last.key == last.upgradeOf) ||
			trial[len(trial)-1].order == "" {
			i.add("trials", "%s names the trial %s, has the license %s, and the trial is %s", number, last.upgradeOf,
				last.key, trial[len(trial)-1])
		}
	}
}

// untried does not store trials, now and then, but their licenses.
type untried struct{ store.Store }

func (u untried) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := u.Store.Load(ctx, wants...)
	for i := range snapshots {
		if wants[i].Ref.Kind == licensing.KindTrial && rand.IntN(2) == 0 {
			snapshots[i].Record.Trial = nil
		}
	}
	return snapshots, err
}

// trialBlind sees no trials, and so starts each again.
type trialBlind struct{ store.Store }

func (b trialBlind) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	if len(wants) != 1 || wants[0].Ref.Kind != licensing.KindTrial {
		return b.Store.Load(ctx, wants...)
	}
	return make([]store.Snapshot, 1), nil
}

// uncomparedTrials drops the compares of trials.
func uncomparedTrials(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	dropTrials(txn)
	return handler(ctx, txn)
}

func dropTrials(txn *pb.TxnRequest) {
	txn.Compare = slices.DeleteFunc(txn.Compare, func(c *pb.Compare) bool { return isOf("tr/", c.Key) })
	for _, op := range txn.Success {
		if nested := op.GetRequestTxn(); nested != nil {
			dropTrials(nested)
		}
	}
}

// halfUpgrade stores the payment of an order that names a trial, and leaves the trial as it is.
type halfUpgrade struct{ store.Store }

func (h halfUpgrade) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if w := change.Writes; len(w) == 2 && w[0].Record.Order != nil && w[1].Record.License != nil &&
		w[1].Record.License.UpgradedAt.Equal(w[0].Record.Order.PaidAt) {
		change.Writes = w[:1]
	}
	return h.Store.Commit(ctx, change)
}

// regraded shows upgraded licenses as trials again.
type regraded struct{ store.Store }

func (g regraded) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := g.Store.Load(ctx, wants...)
	for i := range snapshots {
		if l := snapshots[i].Record.License; l != nil && !l.UpgradedAt.IsZero() {
			l.OrderNo, l.UpgradedAt = "", time.Time{}
		}
	}
	return snapshots, err
}
