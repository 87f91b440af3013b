package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	tryers    = 3 // devices that want a trial for the same addresses
	addresses = 6
	upgraders = 2 // orders that name the trial of an address
	// sweptAddresses are further addresses, which try a product whose trials end sooner.
	sweptAddresses = 4
	// closedAddresses are further addresses, whose trials the shop revokes or suspends.
	closedAddresses = 4
)

// triedBy returns the product that an address tries. Far nodes sweep the trials of the second product, and the memory
// of both once they are upgraded.
func triedBy(address int) string {
	if swept := address - addresses; swept >= 0 && swept < sweptAddresses {
		return "tried.swept"
	}
	return "tried"
}

// trialDays are the days of trials. Those of the second product are to be deleted at about the time of far nodes.
var trialDays = map[string]int{"tried": 30, "tried.swept": 14}

// offerTrials makes the products that may be tried, once for an address.
func (r *run) offerTrials() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	for id, days := range trialDays {
		put := licensing.PutProduct{ID: id, Owner: r.owner, Terms: licensing.DefaultTerms(),
			Trial: licensing.TrialTerms{Validity: licensing.Period{Days: days}, MaxDevices: 1, PerEmail: true}}
		if err := patiently(ctx, func() error {
			_, _, err := r.maker.node.PutProduct(ctx, put)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// sweepTrials records the ends of trials, and deletes the trials that ended long ago, again and again. The clocks of
// far nodes are ahead by about as much as is needed.
func (p *process) sweepTrials() { p.again(10, 40, p.node.RecordLicenseEnds, p.node.SweepTrials) }

// noteTrial notes a license that a commit issues for a trial: the run's own trials are swept. ended notes that the
// commit has ended. tooSoon: the commit deletes a license while the commit that issues it is under way. In practice
// that would take a request of 90 days, and the request that is sent again would issue the license once more.
func (r *run) noteTrial(change store.Change) (ended func(), tooSoon bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var issued []licensing.Ref
	for _, w := range change.Writes {
		if w.Ref.Kind == licensing.KindTrial && len(w.Record.Issued) > 0 {
			ref := licensing.LicenseRef(w.Record.Issued[0].Key)
			issued, r.tried[ref] = append(issued, ref), true
			r.starting[ref]++
		}
		tooSoon = tooSoon || w.Record.Removed && r.starting[w.Ref] > 0
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, ref := range issued {
			r.starting[ref]--
		}
	}, tooSoon
}

// tryOut has several devices start a trial for each of some addresses at the same time. Then orders that name the trial
// are paid, also at the same time.
func (r *run) tryOut(from, to int) {
	for address := from; address < to; address++ {
		var group sync.WaitGroup
		for tryer := range tryers {
			group.Go(func() { r.try(address, fmt.Sprint("tryer ", tryer)) })
		}
		group.Wait()
		tried := r.triedKey(address)
		for upgrader := range upgraders {
			group.Go(func() { r.upgrade(tried, address, upgrader) })
		}
		if closed := address - addresses - sweptAddresses; closed >= 0 {
			group.Go(func() { r.closeTrial(tried, closed) })
		}
		group.Go(func() { r.try(address, "tryer 0") })
		group.Wait()
	}
}

// try asks for a trial until the answer is success or refusal, a few times at most.
func (r *run) try(address int, device string) {
	random := r.random("try", uint64(address), uint64(device[len(device)-1]))
	for range 5 {
		p := r.anyProcess(random)
		d := deed{What: "try", External: address, Device: device, Before: r.etcd.revision(),
			Call: time.Since(r.started)}
		type answer struct {
			result licensing.Result
			err    error
		}
		a, answered := reach(r, p, patience, func(ctx context.Context) (a answer) {
			a.result, a.err = p.node.StartTrial(ctx, r.owner, service.NewTrial{ProductID: triedBy(address),
				Device: device, BuyerEmail: fmt.Sprintf("Try%d@example.com", address), By: "key_1"})
			return a
		})
		d.Return, d.After = time.Since(r.started), r.etcd.revision()
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
	if address >= addresses { // so that sweeps come before it, at the same time, and after it
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
	}
	in := service.NewOrder{ProductID: triedBy(address), Amount: 100, Currency: "USD", UpgradeOf: tried,
		Description: fmt.Sprint("upgrade ", address, " by ", upgrader), BuyerEmail: "upgrader@example.com",
		Once: once("upgrade", address*upgraders+upgrader)}
	order, made := r.order(random, in)
	if !made {
		return // the other order was paid before
	}
	r.bank.take(order)
	for payer := range 1 + random.IntN(2) {
		payment := fmt.Sprint("payment ", payer)
		r.transact(random, deed{What: "pay", Order: order.OrderNo, Payment: payment},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				return r.desk(p).Confirm(ctx, order, nodetest.SandboxPayment(payment))
			})
	}
}

// closeTrial suspends every second trial, and revokes the others, before, after or while orders upgrade them.
func (r *run) closeTrial(tried licensing.LicenseKey, closed int) {
	if tried.IsZero() {
		return
	}
	random := r.random("close", uint64(closed), 0)
	target := licensing.Target{Key: tried, Caller: r.owner}
	var change licensing.Command = licensing.RevokeLicense{Target: target}
	if closed%2 == 0 {
		change = licensing.SuspendLicense{Target: target}
	}
	for range 5 {
		p := r.anyProcess(random)
		err, answered := reach(r, p, patience, func(ctx context.Context) error {
			_, _, err := p.node.ChangeLicense(ctx, r.owner, service.LicenseChange{Key: tried, Command: change})
			return err
		})
		if answered && (err == nil || errors.Is(err, licensing.ErrLicenseNotFound)) {
			return
		}
	}
}

// trialAt is a write of a trial.
type trialAt struct {
	revision int64
	license  licensing.LicenseID // of a deleted trial: the license that it had
	created  bool
	deleted  bool
}

// lives reports whether a license's trial was stored at some revision of a span: since the write with a number.
func lives(writes []trialAt, n int, from, to int64) bool {
	return !writes[n].deleted && writes[n].revision <= to && (n+1 == len(writes) || writes[n+1].revision > from)
}

// trial: the license of a trial is made along with what remembers the trial, for one device. An order may upgrade it:
// then it names the order, which has it in the same revision. A sweep deletes a license that was not upgraded along
// with the trial, once that is due by the clock of a far node; of another license, only the trial goes.
func (i *inspection) trial(t *timeline, key licensing.LicenseKey, states []*licenseAt) {
	first := states[0]
	wrote := func(deleted bool, revision int64) bool {
		return slices.ContainsFunc(t.trials[first.trial], func(w trialAt) bool {
			return w.deleted == deleted && w.license == key.ID() && w.revision == revision
		})
	}
	if !wrote(false, first.revision) {
		i.add("trials", "%s: the trial that it names was written at %+v: %s", key, t.trials[first.trial], first)
	}
	if first.order != "" || first.upgraded != 0 || first.max != 1 || len(first.devices) != 1 || first.expires == 0 {
		i.add("trials", "%s: the license of a trial began as %s", key, first)
	}
	for n, s := range states[1:] {
		before := states[n]
		if forgotten := before.trial != "" && (s.trial == "" || s.gone); forgotten != wrote(true, s.revision) {
			i.add("trials", "%s: it and its trial were not forgotten together: %s", key, s)
		}
		switch {
		case before.gone:
			i.add("trials", "%s: is there after it was deleted: %s", key, s)
		case s.gone:
			due := before.expires + licensing.TrialMemory.Milliseconds()
			if before.revoked != 0 {
				due = min(due, before.revoked+licensing.RevokedTrialMemory.Milliseconds())
			}
			if before.order != "" || before.suspended != 0 && before.revoked == 0 || i.run.latestFar() < due {
				i.add("trials", "%s: was deleted, which is due at %d: %s", key, due, before)
			}
			continue
		case s.trial != before.trial:
			if s.trial != "" || before.upgraded == 0 || s.upgraded != before.upgraded || s.order != before.order {
				i.add("trials", "%s: its trial was forgotten: %s", key, s)
			}
		case before.upgraded != 0 && (s.order != before.order || s.upgraded != before.upgraded):
			i.add("trials", "%s: was upgraded for the order %q at %d, and then: %q at %d: %s", key, before.order,
				before.upgraded, s.order, s.upgraded, s)
		case (s.order == "") != (s.upgraded == 0):
			i.add("trials", "%s: half upgraded: %s", key, s)
		}
		if s.order != "" && (s.expires != 0 || s.max != 3) {
			i.add("trials", "%s: half upgraded: %s", key, s)
		}
		if before.order != s.order && !slices.ContainsFunc(t.orders[s.order],
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

// latestFar returns the latest time that clocks of far nodes have shown.
func (r *run) latestFar() (latest int64) {
	for _, s := range r.far {
		latest = max(latest, s.clock.span(0, time.Since(r.started)).to)
	}
	return latest
}

// trials: a trial is written once along with its license, and again only after it was deleted; an answer names the
// license of a trial, to the device that has started the trial; another device is refused only while a trial is stored;
// and an order that names a trial has its license exactly if the order has upgraded it.
func (i *inspection) trials(t *timeline) {
	for name, writes := range t.trials {
		for n, w := range writes {
			states := t.licenses[w.license]
			switch {
			case w.deleted == (n%2 == 0), !w.deleted && !w.created:
				i.add("trials", "the trial %x was written at %+v", name, writes)
			case len(states) == 0 || !w.deleted && (states[0].revision != w.revision || states[0].trial != name):
				i.add("trials", "the trial %x was not made along with its license %s", name, w.license)
			case w.deleted && !slices.ContainsFunc(states, func(s *licenseAt) bool { return s.revision == w.revision }):
				i.add("trials", "the trial %x was deleted, and its license %s not changed", name, w.license)
			}
		}
	}
	terms := licensing.TrialTerms{PerEmail: true}
	for _, d := range i.run.deeds {
		if d.What != "try" {
			continue
		}
		name := testKeys.TrialOf(i.run.owner, triedBy(d.External), terms, d.Device,
			fmt.Sprintf("try%d@example.com", d.External))
		writes := t.trials[string(name[:])]
		stored := func(is func(trialAt) bool) bool {
			for n, w := range writes {
				if lives(writes, n, d.Before, d.After) && is(w) {
					return true
				}
			}
			return false
		}
		switch d.Out.Verdict {
		case accepted:
			if !stored(func(w trialAt) bool {
				states := t.licenses[w.license]
				return w.license == d.Keys[0].ID() && len(states) > 0 && states[0].devices[d.Device] != 0
			}) {
				i.add("trials", "address %d was answered with %v for %s, and stored are %+v", d.External, d.Keys,
					d.Device, writes)
			}
		case refused:
			if d.Out.Reason != licensing.ReasonTrialUsed || !stored(func(trialAt) bool { return true }) {
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
		if end := trial[len(trial)-1]; (end.order == number) != (last.key == last.upgradeOf) ||
			end.order == "" && !end.gone && end.suspended == 0 && end.revoked == 0 {
			i.add("trials", "%s names the trial %s, has the license %s, and the trial is %s", number, last.upgradeOf,
				last.key, end)
		}
	}
}

// keptTrial deletes the license of a trial that has ended, and not the trial.
type keptTrial struct{ store.Store }

func (k keptTrial) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if len(change.Writes) == 2 && change.Writes[0].Record.Removed {
		change.Writes = change.Writes[:1]
	}
	return k.Store.Commit(ctx, change)
}

// paidTrial shows upgraded licenses as trials that have ended.
func paidTrial(s *store.Snapshot) {
	l := s.Record.License
	if !l.Trial.IsZero() && !l.UpgradedAt.IsZero() {
		l.OrderNo, l.UpgradedAt, l.ExpiresAt = "", time.Time{}, l.CreatedAt
	}
}

// earlyTrial shows trials as if they ended months earlier.
func earlyTrial(s *store.Snapshot) {
	l := s.Record.License
	if l.IsTrial() {
		l.ExpiresAt = l.ExpiresAt.AddDate(0, -3, 0)
	}
}

// uncomparedDeletes deletes licenses whether or not they have changed, and waits a while for a change.
func uncomparedDeletes(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	deletes := func(op *pb.RequestOp) bool { return isOf("l/", op.GetRequestDeleteRange().GetKey()) }
	if slices.ContainsFunc(txn.Success, deletes) {
		for began := time.Now(); time.Since(began) < time.Second && holds(ctx, txn.Compare, handler); {
			time.Sleep(5 * time.Millisecond)
		}
		txn = proto.CloneOf(txn)
		txn.Compare = slices.DeleteFunc(txn.Compare, func(c *pb.Compare) bool { return isOf("l/", c.Key) })
	}
	return handler(ctx, txn)
}

// holds reports whether compares hold now.
func holds(ctx context.Context, compares []*pb.Compare, handler grpc.UnaryHandler) bool {
	answer, err := handler(ctx, &pb.TxnRequest{Compare: compares})
	response, is := answer.(*pb.TxnResponse)
	return err == nil && is && response.Succeeded
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

// dropCompareOf drops the compares of a family of keys.
func dropCompareOf(family string, txn *pb.TxnRequest) {
	txn.Compare = slices.DeleteFunc(txn.Compare, func(c *pb.Compare) bool { return isOf(family, c.Key) })
	for _, op := range txn.Success {
		if nested := op.GetRequestTxn(); nested != nil {
			dropCompareOf(family, nested)
		}
	}
}

// halfUpgrade stores the payment of an order that names a trial, and leaves the trial as it is.
type halfUpgrade struct{ store.Store }

func (h halfUpgrade) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if o := change.Writes[0].Record.Order; o != nil {
		change.Writes = slices.DeleteFunc(slices.Clone(change.Writes), func(w store.Write) bool {
			l := w.Record.License
			return l != nil && !l.UpgradedAt.IsZero() && l.UpgradedAt.Equal(o.PaidAt)
		})
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
