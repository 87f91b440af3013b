package history

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"licet/internal/depth"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
	"licet/payment"
)

// bug is a mistake that is put in on purpose, from outside: on the way to
// etcd, around a node's store, or around a node.
type bug struct {
	name string
	// txn stands in for etcd's handler of a write.
	txn func(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error)
	// lost replaces an error that leaves the outcome open.
	lost error
	// store wraps the store of a node.
	store func(*run, store.Store) store.Store
	// unknown is called after a caller got "outcome unknown".
	unknown func(*run, *process, *license, input)
	// lostHop replaces the error of a hop whose answer is lost.
	lostHop error
	// bank wraps the provider of payments.
	bank func(payment.Provider) payment.Provider
	// till wraps the provider of payments that has checkouts.
	till func(payment.Provider) payment.Provider
	// failing: refunds fail more often.
	failing bool
	// overlong: a hop is run some time after it is over.
	overlong bool
	// unconfirmed: the doubtful node trusts its clock.
	unconfirmed bool
	// keyUnchecked: a device names the license by its id, so that its key is not checked.
	keyUnchecked func(*license, input) bool
	// listening says whether the owner listens to activations; listensNever: the run decides.
	listening listening
	// warned: the account has a budget. Without this field the account of a bug has none, which saves time.
	warned bool
	// among are the clients among which the bug shows; zero: users. The others have no part in its histories.
	among clients
	// of reports whether the bug can show in a license of a plan; nil: in any license. Its histories have only such
	// licenses, and several of each plan.
	of func(plan) bool
}

// clients are kinds of clients that a history can have.
type clients int

const (
	users        clients = 1 << iota // of the planned licenses
	shops                            // orders that are paid, canceled, refunded and redacted, and their licenses
	outsiders                        // payments outside
	payers                           // checkouts
	subscribers                      // subscriptions
	changers                         // subscriptions that the shop changes
	disputants                       // disputes
	returners                        // invoices that go back
	bulkBuyers                       // orders for many licenses
	players                          // the sandbox
	granters                         // a grant for many licenses, while the terms of its product change
	rollers                          // rollouts
	leaseRollers                     // rollouts to licenses with leases
	importers                        // external keys
	triers                           // trials and their upgrades
)

// plays reports whether the run has such clients. At the usual depth a run without a bug has no rollouts: all at once
// are too much for two cores that run other tests as well, and most requests would get no answer.
func (r *run) plays(c clients) bool {
	switch {
	case r.bug.name == "":
		return depth.Full() || c&(rollers|leaseRollers) == 0
	case r.bug.among == 0:
		return c == users
	}
	return r.bug.among&c != 0
}

// bugs lists mistakes of the kind that the design is there to prevent.
func bugs() []bug {
	var told sync.Map
	return []bug{
		{name: "compares are dropped", txn: dropCompares},
		{name: "compares are dropped, now and then", txn: sometimes(20, dropCompares)},
		{name: "acknowledged before it is stored",
			store: func(r *run, s store.Store) store.Store { return &earlyAck{Store: s, run: r} }},
		{name: "no-ops are answered from a remembered record", store: func(_ *run, s store.Store) store.Store {
			return &forgetful{Store: s, memory: map[string]store.Snapshot{}}
		}},
		{name: "retried after unknown without a look at the writers", txn: hideWriter},
		{name: "run again after it was answered", unknown: runAgain},
		{name: "unknown is taken for not executed", lost: rpctypes.ErrGRPCRequestTooManyRequests},
		{name: "a hop in doubt is run here too", of: plan.contends, lostHop: node.ErrNotTaken},
		{name: "a hop is run when it is over", of: plan.contends, overlong: true},
		{name: "devices are deleted unguarded", of: plan.spills, txn: deleteUnguarded},
		{name: "devices are put unguarded", of: plan.spills, txn: putUnguarded},
		{name: "a refund leaves its license alone", among: shops,
			store: func(_ *run, s store.Store) store.Store { return halfRefund{s} }},
		{name: "what is done under a key is not remembered",
			store: func(_ *run, s store.Store) store.Store { return keyless{s} }},
		{name: "a key is remembered before what it does is done",
			store: func(_ *run, s store.Store) store.Store { return rash{s} }},
		{name: "a license's metadata is left out, now and then", of: plan.isUpdated,
			store: func(_ *run, s store.Store) store.Store { return noteless{s} }},
		{name: "a license's own entitlements are left out, now and then", of: plan.isUpdated,
			store: func(_ *run, s store.Store) store.Store { return forgetting{s, 10, forgetEntitlements} }},
		{name: "a license's reference is left out, now and then", of: plan.isUpdated,
			store: func(_ *run, s store.Store) store.Store { return forgetting{s, 3, forgetReference} }},
		{name: "the listings of customers are left alone, now and then", of: plan.isUpdated, txn: unlisted},
		{name: "an alias is left out, now and then", among: importers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, aliasless} }},
		{name: "an alias is written without a compare", among: importers, txn: uncompared("n/"),
			store: func(_ *run, s store.Store) store.Store { return blind{s, licensing.KindAlias} }},
		{name: "replaced keys are taken", keyUnchecked: func(l *license, _ input) bool { return l.lease == 0 }},
		{name: "a replaced key gives back any lease",
			keyUnchecked: func(l *license, in input) bool { return l.lease != 0 && in.Action == remove }},
		{name: "a trial is not remembered", among: triers,
			store: func(_ *run, s store.Store) store.Store { return untried{s} }},
		{name: "a trial is written without a compare", among: triers, txn: uncompared("tr/"),
			store: func(_ *run, s store.Store) store.Store { return trialBlind{s} }},
		{name: "a payment is written without a compare", among: outsiders, txn: uncompared("pa/"),
			store: func(_ *run, s store.Store) store.Store { return blind{s, licensing.KindPayment} }},
		{name: "the sandbox is written without a compare", among: players, txn: uncompared("sb/"),
			store: func(_ *run, s store.Store) store.Store { return blind{s, licensing.KindSandbox} }},
		{name: "a payment leaves no record, now and then", among: shops | outsiders,
			store: func(_ *run, s store.Store) store.Store { return recordless{s} }},
		{name: "an attempt to pay begins while the checkout of another is open", among: payers,
			store: func(_ *run, s store.Store) store.Store { return overlooking{s} }},
		{name: "paid checkouts count as expired", among: payers,
			till: func(p payment.Provider) payment.Provider { return unbelieved{p} }},
		{name: "a fee that the provider tells later is not counted", among: payers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, uncountedFee} }},
		{name: "a fee that the provider tells later is not stored", among: payers,
			till: func(p payment.Provider) payment.Provider { return feeless{p} }},
		{name: "a second payment goes back under a new number each time", among: payers,
			till: func(p payment.Provider) payment.Provider { return renumberingSeconds{p} }},
		{name: "a second payment is kept", among: payers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, keptSeconds} }},
		{name: "an invoice is counted twice", among: subscribers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, countTwice} }},
		{name: "an invoice leaves the license alone", among: subscribers,
			store: func(_ *run, s store.Store) store.Store { return unextended{s} }},
		{name: "a proration extends the license", among: subscribers,
			till: func(p payment.Provider) payment.Provider { return generous{p} }},
		{name: "an older answer about a subscription replaces a newer answer", among: subscribers,
			till: func(p payment.Provider) payment.Provider { return delayed{p, &told, payment.ObjectSubscription} }},
		{name: "a change of a subscription is made twice", among: changers,
			till: func(p payment.Provider) payment.Provider { return otherNumber{p} }},
		{name: "the end of a subscription does not reach the provider", among: changers,
			till: func(p payment.Provider) payment.Provider {
				return unheard{p, func(c payment.Change) bool { return c.End == payment.EndOfPeriod }}
			}},
		{name: "the resumption of a subscription does not reach the provider", among: changers,
			till: func(p payment.Provider) payment.Provider {
				return unheard{p, func(c payment.Change) bool { return c.Resume }}
			}},
		{name: "a planned change of a subscription takes effect at once", among: changers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, early} }},
		{name: "a planned change of a subscription is forgotten", among: changers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, unplanned} }},
		{name: "a change of a subscription leaves the license alone", among: changers,
			store: func(_ *run, s store.Store) store.Store { return samePlan{s} }},
		{name: "an older answer about a dispute replaces a newer answer", among: disputants,
			till: func(p payment.Provider) payment.Provider { return delayed{p, &told, payment.ObjectDispute} }},
		{name: "a won dispute leaves its license suspended", among: disputants,
			store: func(_ *run, s store.Store) store.Store { return unlifted{s} }},
		{name: "the end of a dispute ends a suspension by the shop", among: disputants,
			store: func(_ *run, s store.Store) store.Store { return edited{s, anyReason} }},
		{name: "a dispute leaves all licenses but the first alone", among: disputants,
			store: func(_ *run, s store.Store) store.Store { return surviving{s, false} }},
		{name: "the refund of a second payment stays due after a lost dispute", among: payers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, stillDue} }},
		{name: "a lost dispute of an invoice takes back nothing", among: returners,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, nothingLost} }},
		{name: "a lost dispute of an invoice takes back its period twice", among: returners,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, takenTwice} }},
		{name: "a refund of an invoice leaves the license alone", among: returners,
			store: func(_ *run, s store.Store) store.Store { return unshortened{s} }},
		{name: "a refund of an invoice is asked for under a new number each time", among: returners,
			till: func(p payment.Provider) payment.Provider { return renumbering{p} }},
		{name: "an order gets a license more than it counts", among: bulkBuyers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, oneMore} }},
		{name: "an order gets a license less than it counts", among: bulkBuyers,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, oneLess} }},
		{name: "the issue of an order's licenses continues with other keys", among: bulkBuyers,
			store: func(_ *run, s store.Store) store.Store { return reseeded{s} }},
		{name: "a refund leaves all licenses but the first alone", among: bulkBuyers,
			store: func(_ *run, s store.Store) store.Store { return surviving{s, true} }},
		{name: "a refund is asked for under a new number each time", among: shops,
			bank: func(p payment.Provider) payment.Provider { return renumbering{p} }},
		{name: "a refund that has failed counts as refused", among: shops, failing: true,
			bank: func(p payment.Provider) payment.Provider { return unnamed{p} }},
		{name: "a refund at the bank is another one each time", among: shops,
			bank: func(p payment.Provider) payment.Provider { return renaming{p} }},
		{name: "a refund that has failed still counts", among: shops,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, countFailed} }},
		{name: "an order forgets what was refunded", among: shops,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, forgetRefunded} }},
		{name: "a refund that is made goes back to pending", among: shops,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, pendingAgain} }},
		{name: "a part of the money revokes the license", among: shops,
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, wholeEachTime} }},
		{name: "an upgrade leaves the trial alone", among: triers,
			store: func(_ *run, s store.Store) store.Store { return halfUpgrade{s} }},
		{name: "a trial is upgraded again", among: triers,
			store: func(_ *run, s store.Store) store.Store { return regraded{s} }},
		{name: "a sweep deletes a license and not its trial", among: triers,
			store: func(_ *run, s store.Store) store.Store { return keptTrial{s} }},
		{name: "a sweep takes paid licenses for trials that have ended", among: triers,
			store: func(_ *run, s store.Store) store.Store { return edited{s, paidTrial} }},
		{name: "trials are deleted months early", among: triers,
			store: func(_ *run, s store.Store) store.Store { return edited{s, earlyTrial} }},
		{name: "a sweep deletes licenses without a compare", among: triers, txn: uncomparedDeletes},
		{name: "an end is recorded by moving it", of: plan.ends,
			store: func(_ *run, s store.Store) store.Store { return endless{s} }},
		{name: "a recorded end does not hold", of: plan.ends,
			store: func(_ *run, s store.Store) store.Store { return edited{s, undead} }},
		{name: "an unbound device is let in during the grace", of: plan.hasGrace, store: open},
		{name: "a bound device is refused during the grace", of: plan.hasGrace, store: newGraceless},
		{name: "lapsed leases are renewed without counting", of: plan.leases,
			store: func(_ *run, s store.Store) store.Store { return edited{s, uncounted} }},
		{name: "leases are taken by a fast clock", of: plan.leases,
			store: func(_ *run, s store.Store) store.Store { return edited{s, hasty} }},
		{name: "a fast clock leaves no trace", of: plan.leases,
			store: func(_ *run, s store.Store) store.Store { return sameLeaseClock{s} }},
		{name: "a node acts by a clock that no other clock has confirmed", unconfirmed: true},
		{name: "devices that were seen recently are inactive", of: plan.losesDevices,
			store: func(_ *run, s store.Store) store.Store { return edited{s, unseen} }},
		{name: "any device is the one unseen for longest", of: plan.losesDevices,
			store: func(_ *run, s store.Store) store.Store { return edited{s, anyUnseen} }},
		{name: "it is not stored when a device is seen", of: plan.losesDevices,
			store: func(_ *run, s store.Store) store.Store { return unkept{s} }},
		{name: "a changed device takes another slot, now and then", of: plan.matchesDevices,
			store: func(_ *run, s store.Store) store.Store { return edited{s, unmatched} }},
		{name: "one of two devices that can be meant is taken", of: plan.matchesDevices,
			store: func(_ *run, s store.Store) store.Store { return edited{s, guessing} }},
		{name: "a rollout overwrites newer changes", among: users | rollers,
			store: func(_ *run, s store.Store) store.Store {
				return &overwriting{Store: s, listed: map[licensing.LicenseID]licensing.License{}}
			}},
		{name: "a rollout removes devices", among: users | rollers,
			store: func(_ *run, s store.Store) store.Store { return depriving{s} }},
		{name: "a rollout skips a page", among: users | rollers,
			store: func(_ *run, s store.Store) store.Store { return skipping{s} }},
		{name: "a rollout leaves the lengths of leases alone", among: leaseRollers,
			store: func(_ *run, s store.Store) store.Store { return unlengthened{s} }},
		{name: "a rollout shortens the leases that devices have", among: leaseRollers,
			store: func(_ *run, s store.Store) store.Store { return shortening{s} }},
		{name: "any failure of the provider is taken for a refusal", among: shops,
			bank: func(p payment.Provider) payment.Provider { return timid{p} }},
		{name: "a refund is recorded before the provider was asked", among: shops,
			bank: func(p payment.Provider) payment.Provider { return bold{p} }},
		{name: "a redaction leaves its license alone", among: shops,
			store: func(_ *run, s store.Store) store.Store { return halfRedaction{s} }},
		{name: "a receipt is not revoked, now and then",
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, unlistedReceipts} }},
		{name: "a receipt does not raise the day until which receipts may be valid",
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, undatedReceipts} }},
		{name: "a revocation voids the next receipts too",
			store: func(_ *run, s store.Store) store.Store { return rewriting{s, greedyReceipts} }},
		{name: "reads are stale", store: func(_ *run, s store.Store) store.Store {
			return &stale{Store: s, views: map[licensing.LicenseKey]*store.LicenseView{}}
		}},
	}
}

// bugSeeds is how many histories may pass before a bug must have been caught. Most are
// caught in the first; on a busy machine less is done in each.
const bugSeeds = 24

// TestSeededBugs puts each mistake in and demands that it is found: a checker
// that finds nothing proves nothing. At the usual depth it takes each sixteenth mistake.
func TestSeededBugs(t *testing.T) {
	depth.NotRaced(t)
	for i, b := range append(bugs(), eventBugs()...) {
		if i%depth.Of(16, 1) != 0 {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(bugSeeds) {
				seed := 3*i + 2 // these have the worst weather
				res, err := check(seed, b)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				res.violations = slices.DeleteFunc(res.violations,
					func(v violation) bool { return v.check == "undecided" })
				if len(res.violations) > 0 {
					found := map[string]int{}
					for _, v := range res.violations {
						found[v.check]++
					}
					t.Logf("caught with seed %d: %v, first: %s", seed, found, res.violations[0].text)
					return
				}
			}
			t.Errorf("not caught in %d histories", bugSeeds)
		})
	}
}

// halfRefund stores of an order and its license only the order.
type halfRefund struct{ store.Store }

func (s halfRefund) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	last := len(change.Writes) - 1 // between them may be the record of the refund
	if w := &change.Writes[last]; last > 0 && change.Writes[0].Ref.Kind == licensing.KindOrder &&
		w.Ref.Kind == licensing.KindLicense && w.Record.Metadata == nil {
		change.Writes = change.Writes[:last]
	}
	return s.Store.Commit(ctx, change)
}

// halfRedaction does the same with redactions: besides upgrades of trials, they alone know the license's metadata.
type halfRedaction struct{ store.Store }

func (s halfRedaction) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if isOfBoth(change) && change.Writes[1].Record.Metadata != nil &&
		change.Writes[1].Record.License.UpgradedAt.IsZero() {
		change.Writes = change.Writes[:1]
	}
	return s.Store.Commit(ctx, change)
}

// isOfBoth reports whether a change writes an order and its license.
func isOfBoth(change store.Change) bool {
	return len(change.Writes) == 2 && change.Writes[0].Ref.Kind == licensing.KindOrder &&
		change.Writes[1].Ref.Kind == licensing.KindLicense
}

// keyless stores no claims of changes of licenses.
type keyless struct{ store.Store }

func (s keyless) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if len(change.Writes) == 2 && change.Writes[0].Ref.Kind == licensing.KindLicense &&
		change.Writes[1].Ref.Kind == licensing.KindClaim {
		change.Writes = change.Writes[:1]
	}
	return s.Store.Commit(ctx, change)
}

// rewriting is a store that stores other writes than the node asks for.
type rewriting struct {
	store.Store
	edit func([]store.Write)
}

func (s rewriting) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	change.Writes = slices.Clone(change.Writes)
	s.edit(change.Writes)
	return s.Store.Commit(ctx, change)
}

// aliasless leaves out some of the aliases of new licenses.
func aliasless(writes []store.Write) {
	if rand.IntN(4) == 0 {
		for i := range writes {
			writes[i].Record.NewAliases = nil
		}
	}
}

// blind finds no record of a kind.
type blind struct {
	store.Store
	kind licensing.Kind
}

func (s blind) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := s.Store.Load(ctx, wants...)
	for i := range snapshots {
		if wants[i].Ref.Kind == s.kind {
			snapshots[i] = store.Snapshot{}
		}
	}
	return snapshots, err
}

// uncompared leaves the keys of a family out of what is compared.
func uncompared(family string) func(context.Context, *pb.TxnRequest, grpc.UnaryHandler) (any, error) {
	return func(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
		txn = proto.CloneOf(txn)
		dropCompareOf(family, txn)
		return handler(ctx, txn)
	}
}

// rash stores the claim of a change in a transaction before that of the change.
type rash struct{ store.Store }

func (s rash) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if len(change.Writes) == 2 && change.Writes[0].Ref.Kind == licensing.KindLicense &&
		change.Writes[1].Ref.Kind == licensing.KindClaim {
		if outcome, err := s.Store.Commit(ctx, store.Change{Writes: change.Writes[1:]}); err != nil || !outcome.Landed {
			return outcome, err
		}
		change.Writes = change.Writes[:1]
	}
	return s.Store.Commit(ctx, change)
}

// noteless forgets one in ten changes of metadata.
type noteless struct{ store.Store }

func (s noteless) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if r := &change.Writes[0].Record; r.Metadata != nil && rand.IntN(10) == 0 {
		r.Metadata = nil
	}
	return s.Store.Commit(ctx, change)
}

// forgetting forgets a part of one in so many changes of metadata.
type forgetting struct {
	store.Store
	oneIn  int
	forget func(*licensing.Metadata)
}

func (s forgetting) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if r := &change.Writes[0].Record; r.Metadata != nil && rand.IntN(s.oneIn) == 0 {
		changed := *r.Metadata
		s.forget(&changed)
		r.Metadata = &changed
	}
	return s.Store.Commit(ctx, change)
}

func forgetEntitlements(m *licensing.Metadata) { m.Entitlements = "" }

func forgetReference(m *licensing.Metadata) { m.Reference = "" }

// endless moves an end that it is to record.
type endless struct{ store.Store }

func (s endless) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if l := change.Writes[0].Record.License; l != nil && !l.EndRecorded.IsZero() && l.EndRecorded.Equal(l.ExpiresAt) {
		l.ExpiresAt, l.EndRecorded = l.ExpiresAt.Add(time.Hour), l.ExpiresAt.Add(time.Hour)
	}
	return s.Store.Commit(ctx, change)
}

// edited is a store whose node sees licenses with other facts than the stored ones.
type edited struct {
	store.Store
	edit func(*store.Snapshot)
}

func (e edited) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := e.Store.Load(ctx, wants...)
	for i := range snapshots {
		if snapshots[i].Record.License != nil {
			e.edit(&snapshots[i])
		}
	}
	return snapshots, err
}

func (e edited) Recall(want store.Want) (store.Snapshot, []string, bool) {
	snapshot, unsure, ok := e.Store.Recall(want)
	if snapshot.Record.License != nil {
		e.edit(&snapshot)
	}
	return snapshot, unsure, ok
}

// undead shows licenses without their recorded ends, so that a clock that is behind brings them back.
func undead(snapshot *store.Snapshot) { snapshot.Record.License.EndRecorded = time.Time{} }

// timid takes every failure for a refusal.
type timid struct{ payment.Provider }

func (p timid) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	state, err := p.Provider.Refund(ctx, o, refund)
	if err != nil {
		err = payment.ErrRefused
	}
	return state, err
}

// bold takes every failure for success.
type bold struct{ payment.Provider }

func (p bold) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	_, _ = p.Provider.Refund(ctx, o, refund)
	return payment.State{Outcome: payment.OutcomeDone}, nil
}

func dropCompares(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	txn = proto.CloneOf(txn)
	txn.Compare = nil
	return handler(ctx, txn)
}

// sometimes makes a mistake in so many of a thousand writes.
func sometimes(
	chance int, mistake func(context.Context, *pb.TxnRequest, grpc.UnaryHandler) (any, error),
) func(context.Context, *pb.TxnRequest, grpc.UnaryHandler) (any, error) {
	return func(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
		if rand.IntN(1000) < chance {
			return mistake(ctx, txn, handler)
		}
		return handler(ctx, txn)
	}
}

// hideWriter removes the caller's entry from the record that a lost swap returns, so that the caller takes its own
// write for a rival's.
func hideWriter(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, txn)
	if err != nil || response.(*pb.TxnResponse).Succeeded {
		return response, err
	}
	me := putBy(txn)
	for _, r := range response.(*pb.TxnResponse).Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			if isRecord(kv.Key) {
				kv.Value = withoutWriter(kv.Value, me)
			}
		}
	}
	return response, nil
}

func isRecord(key []byte) bool {
	return isOf("l/", key) || isOf("o/", key)
}

// isOf reports whether a key is of a family. The keys of owners begin with lc2/<slot>/<family>/.
func isOf(family string, key []byte) bool {
	const slot = len("lc2/00/")
	return len(key) > slot && key[slot-1] == '/' && strings.HasPrefix(string(key[slot:]), family)
}

// putBy finds the writer in front of the record that a transaction puts.
func putBy(txn *pb.TxnRequest) []byte {
	for _, op := range txn.Success {
		if put := op.GetRequestPut(); put != nil && isRecord(put.Key) {
			if m, err := parse(put.Value[1:]); err == nil && len(m.bytes[writersField]) > 0 {
				return m.bytes[writersField][0][:8]
			}
		}
	}
	return nil
}

// withoutWriter takes one writer out of a stored record.
func withoutWriter(value, by []byte) []byte {
	out := slices.Clone(value[:1])
	for b := value[1:]; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		size := n + protowire.ConsumeFieldValue(num, typ, b[n:])
		if field := b[:size]; num != writersField || !bytes.Contains(field, by) {
			out = append(out, field...)
		}
		b = b[size:]
	}
	return out
}

// deleteUnguarded deletes devices whether or not the swap lands.
func deleteUnguarded(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	return unguarded(ctx, txn, handler, func(op *pb.RequestOp) bool { return op.GetRequestDeleteRange() != nil })
}

// putUnguarded writes devices whether or not the swap lands.
func putUnguarded(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	return unguarded(ctx, txn, handler, func(op *pb.RequestOp) bool {
		return isOf("d/", op.GetRequestPut().GetKey())
	})
}

// unguarded makes some writes of a transaction before it, without compares.
func unguarded(
	ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler, which func(*pb.RequestOp) bool,
) (any, error) {
	first := &pb.TxnRequest{}
	for _, op := range txn.Success {
		if which(op) {
			first.Success = append(first.Success, op)
		}
	}
	if len(first.Success) > 0 {
		if _, err := handler(ctx, first); err != nil {
			return nil, err
		}
	}
	return handler(ctx, txn)
}

// earlyAck is a store that acknowledges a write before it makes the write.
type earlyAck struct {
	store.Store
	run *run
}

func (h *earlyAck) Commit(_ context.Context, change store.Change) (store.Outcome, error) {
	h.run.late.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
		_, _ = h.Store.Commit(ctx, change)
	})
	return store.Outcome{Landed: true}, nil
}

// forgetful answers a third of its reads of licenses with what it read before.
type forgetful struct {
	store.Store
	mu     sync.Mutex
	memory map[string]store.Snapshot
}

func (f *forgetful) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	if len(wants) != 1 || wants[0].Ref.Kind != licensing.KindLicense {
		return f.Store.Load(ctx, wants...)
	}
	what := wants[0].Ref.ID + strings.Join(wants[0].Devices, "/")
	f.mu.Lock()
	remembered, known := f.memory[what]
	f.mu.Unlock()
	if known && rand.IntN(3) == 0 {
		return []store.Snapshot{{Record: remembered.Record.Clone(), Token: remembered.Token}}, nil
	}
	snapshots, err := f.Store.Load(ctx, wants...)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.memory[what] = store.Snapshot{Record: snapshots[0].Record.Clone(), Token: snapshots[0].Token}
	}
	return snapshots, err
}

// stale answers some lookups with what was looked up before.
type stale struct {
	store.Store
	mu    sync.Mutex
	views map[licensing.LicenseKey]*store.LicenseView
}

func (s *stale) ReadLicense(
	ctx context.Context, key licensing.LicenseKey, page store.DevicePage,
) (*store.LicenseView, error) {
	s.mu.Lock()
	view := s.views[key]
	s.mu.Unlock()
	if view != nil && rand.IntN(4) == 0 {
		return view, nil
	}
	view, err := s.Store.ReadLicense(ctx, key, page)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views[key] = view
	return view, err
}

// runAgain runs a command once more although its caller has been answered.
func runAgain(r *run, p *process, l *license, in input) {
	if in.Action == create || in.Action == get {
		return
	}
	r.late.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
		_, _ = r.command(ctx, p, l, in)
	})
}
