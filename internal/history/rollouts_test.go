package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
	"licet/node/store"
)

const (
	rollouts = 2
	// rolledOut is how many licenses a rollout is for: more than one page.
	rolledOut = 72
	// rolledUsed is how many of them clients use meanwhile.
	rolledUsed = 4
	// rollTime bounds how long a rollout is waited for; then it is canceled.
	rollTime = 3 * time.Second
	// rollActor is the author of the rollout with a number.
	rollActor = "key_roll_"
	// sweepEvery is after which time another node may continue a rollout.
	sweepEvery = 50 * time.Millisecond
)

// shortestRolled is the shortest lease that a rollout gives, unless devices ask for a shorter lease.
const shortestRolled = 2 * time.Minute

// rollsLeases reports whether the rollouts are for licenses with leases: in half of the runs without a bug.
func (r *run) rollsLeases() bool {
	return r.bug.among&leaseRollers != 0 || r.bug.name == "" && r.random("rolled leases", 0).IntN(2) == 0
}

// rolledTerms are the terms of the rollout with a number. Activations of bound devices may remove inactive devices,
// which there are none of: so each command on a license knows all its devices. Rollouts with an odd number give longer
// leases than those before, and others shorter leases. Each gives another grace: the licenses have no end.
func (r *run) rolledTerms(number int) (licensing.Terms, licensing.Entitlements) {
	terms, random := licensing.DefaultTerms(), r.random("rolled", uint64(number))
	if number > 0 {
		terms.MaxDevices = random.IntN(5)
	}
	if r.rollsLeases() {
		length := shortestRolled << (number % 2 * (1 + random.IntN(3)))
		terms.MaxDevices = max(terms.MaxDevices, 1)
		terms.Lease = licensing.LeaseTerms{Length: length, Longest: length * time.Duration(1+random.IntN(2))}
	} else {
		terms.InactiveAfter = licensing.Period{Years: 1}
	}
	terms.Grace = licensing.Period{Clock: time.Duration(number) * time.Hour}
	if number == 0 { // as the model has it
		terms.Lease.Longest = 2 * terms.Lease.Length
	}
	return terms, licensing.Entitlements(fmt.Sprintf(`{"roll":%d}`, number))
}

// rollOut grants licenses of a product, and applies other terms to them again and again, while clients use some.
func (r *run) rollOut() {
	random := r.random("rollouts")
	put := func(number int) bool {
		terms, entitlements := r.rolledTerms(number)
		product := licensing.PutProduct{ID: "rolled", Owner: r.owner, Terms: terms, Entitlements: entitlements}
		return untilDone(r, random, func(ctx context.Context, p *process) (licensing.Product, error) {
			put, _, err := p.node.PutProduct(ctx, product)
			return put, err
		}).ID != ""
	}
	if !put(0) {
		return
	}
	d := r.grantAt(r.slowest, "grant rolled", "rolled", rolledOut)
	var group sync.WaitGroup
	defer group.Wait()
	for n := 0; n < rolledUsed && len(d.Keys) == rolledOut; n++ {
		l := r.rolledLicense(d, d.Keys[[rolledUsed]int{0, 1, rolledOut - 2, rolledOut - 1}[n]])
		for client := range l.clients {
			group.Go(func() { r.work(l, client+1) })
		}
	}
	for number := 1; number <= rollouts; number++ {
		if !put(number) { // the rollout would apply other terms than rolledTerms tells
			return
		}
		r.roll(random, number)
	}
}

// slowest returns a node whose clock is behind, so that its licenses are issued before a rollout begins by most clocks.
func (r *run) slowest() *process {
	return slices.MinFunc(r.slots, func(a, b *slot) int { return a.clock.now().Compare(b.clock.now()) }).current()
}

// rolledLicense returns a granted license, for clients to use.
func (r *run) rolledLicense(d deed, key licensing.LicenseKey) *license {
	terms, _ := r.rolledTerms(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, operation{Client: r.newClient(), Out: output{Verdict: accepted},
		In:     input{Key: key, Action: create, Max: terms.MaxDevices, Lease: terms.Lease.Length.Milliseconds()},
		Return: d.Return})
	odds := []odd{{8, activate}, {4, remove}, {2, get}, {1, setMax}, {1, suspend}, {2, reinstate}}
	if terms.Lease.Leased() { // the model has no states of such licenses
		odds = []odd{{8, activate}, {3, validate}, {2, remove}, {2, get}}
	}
	l := newLicense(plan{name: "rolled " + key.String(), max: terms.MaxDevices, pool: 5, clients: 4, each: 20,
		sold: true, lease: terms.Lease.Length, odds: odds}, key)
	r.licenses = append(r.licenses, l)
	return l
}

// untilDone sends a request to any node until it is accepted, a few times at most, and returns the answer.
func untilDone[T any](r *run, random *rand.Rand, do func(context.Context, *process) (T, error)) (done T) {
	type answer struct {
		value T
		err   error
	}
	for range 20 {
		p := r.anyProcess(random)
		given, answered := reach(r, p, patience, func(ctx context.Context) answer {
			value, err := do(ctx, p)
			return answer{value, err}
		})
		if answered && given.err == nil {
			return given.value
		}
	}
	return done
}

// roll begins a rollout at any node, and asks for it again at others until it is done: a node may have been killed, and
// the clocks of the others may be behind.
func (r *run) roll(random *rand.Rand, number int) {
	begin := licensing.BeginRollout{Applies: licensing.RolloutMaxDevices | licensing.RolloutEntitlements |
		licensing.RolloutLease | licensing.RolloutLongestLease | licensing.RolloutGrace,
		By: licensing.Actor(fmt.Sprint(rollActor, number))}
	for began := time.Now(); ; {
		untilDone(r, random, func(ctx context.Context, p *process) (licensing.Product, error) {
			product, _, err := p.node.BeginRollout(ctx, r.owner, "rolled", begin, nil)
			return product, err
		})
		for range 20 {
			time.Sleep(5 * time.Millisecond)
			product := untilDone(r, random, func(ctx context.Context, p *process) (licensing.Product, error) {
				return p.node.Product(ctx, r.owner, "rolled")
			})
			if o := &product.Rollout; !o.UnderWay() && string(o.By) == string(begin.By) {
				return
			}
		}
		if time.Since(began) > rollTime {
			untilDone(r, random, func(ctx context.Context, p *process) (licensing.Product, error) {
				return p.node.CancelRollout(ctx, r.owner, "rolled")
			})
			return
		}
	}
}

// rolledAt is the product's rollout as one revision left it.
type rolledAt struct {
	revision                   int64
	by                         string
	started, ended             int64
	canceled                   bool
	cursor                     string
	licenses, updated, limited int
	failed                     int
}

func readRollout(event *clientv3.Event) (rolledAt, error) {
	product, err := parse(event.Kv.Value[1:])
	if err != nil {
		return rolledAt{}, err
	}
	m, err := parse([]byte(product.text(6)))
	return rolledAt{revision: event.Kv.ModRevision, by: m.text(4), started: m.milli(5), ended: m.milli(6),
		canceled: m.varints[7] != 0, cursor: m.text(9), licenses: int(m.varints[11]), updated: int(m.varints[12]),
		limited: int(m.varints[13]), failed: int(m.varints[14])}, err
}

// numberOf returns the number of the rollout by an actor; 0: it is none.
func numberOf(actor string) (number int) {
	if name, ok := strings.CutPrefix(actor, rollActor); ok {
		_, _ = fmt.Sscan(name, &number)
	}
	return number
}

// rolled names the change of a license by a rollout.
type rolled struct {
	id     licensing.LicenseID
	number int
}

// noteRolls notes a commit of licenses that rollouts change; see noteEnds.
func (r *run) noteRolls(change store.Change, began time.Duration, landed bool) {
	now := time.Since(r.started)
	for _, w := range change.Writes {
		for _, e := range w.Record.Events {
			if number := numberOf(string(e.Actor)); number > 0 && e.License != nil {
				r.mu.Lock()
				by := rolled{e.License.Key.ID(), number}
				known, found := r.rolls[by]
				if !found {
					known.from = began
				}
				if known.from = min(known.from, began); landed && (known.until == 0 || now < known.until) {
					known.until = now
				}
				r.rolls[by] = known
				r.mu.Unlock()
			}
		}
	}
}

// rollsOf lists the events of the changes of a license by rollouts.
func (t *timeline) rollsOf(id licensing.LicenseID) (list []eventAt) {
	for _, k := range t.keysOf[licenseRecord(id)] {
		for _, e := range k.events {
			if numberOf(e.actor) > 0 {
				list = append(list, e)
			}
		}
	}
	return list
}

// rolled lists the changes by rollouts as operations, as ends does.
func (r *run) rolled(t *timeline) (list []operation) {
	var last time.Duration
	for _, op := range r.operations {
		last = max(last, op.Return+1)
	}
	for id, states := range t.licenses {
		if states[0].product != "rolled" {
			continue
		}
		changes := t.rollsOf(id)
		for _, change := range changes {
			number := numberOf(change.actor)
			when := r.rolls[rolled{id, number}]
			again := func(e eventAt) bool { return e.actor == change.actor && e.revision != change.revision }
			if when.until == 0 || slices.ContainsFunc(changes, again) {
				when.until = last
			}
			terms, _ := r.rolledTerms(number)
			in := input{Key: id.Key("LIC"), Action: roll, Max: terms.MaxDevices}
			if terms.Lease.Leased() { // the model does not know which lapsed leases count, see rolledOut
				in.Max = change.max
				in.Lease, in.Longest = terms.Lease.Length.Milliseconds(), terms.Lease.Longest.Milliseconds()
			}
			list = append(list, operation{Client: r.newClient(), In: in,
				Out:  output{Verdict: accepted, Later: true},
				Call: when.from, Return: when.until, Before: change.revision - 1, After: change.revision})
		}
	}
	return list
}

// endsRollout reports whether a revision of the product ends a rollout that was not canceled.
func (t *timeline) endsRollout(n int) bool {
	s := t.rollouts[n]
	return s.ended != 0 && !s.canceled && (n == 0 || t.rollouts[n-1].ended != s.ended)
}

// endedRollouts counts the rollouts that ended and were not canceled.
func (t *timeline) endedRollouts() (count int) {
	for n := range t.rollouts {
		if t.endsRollout(n) {
			count++
		}
	}
	return count
}

// rolledOut: once a rollout is done, it has counted each license of the product that was issued before once, and each
// has had its terms since it began, unless more devices were bound. One revision may have several changes of a license,
// and shows what the last of them left, so that the limit that the rollout set may be in an event only. A license has
// other terms only from a rollout.
func (i *inspection) rolledOut(t *timeline) {
	members := map[licensing.LicenseID][]*licenseAt{}
	for id, states := range t.licenses {
		if states[0].product == "rolled" {
			members[id] = states
			i.rolledTerms(t, id.Key("LIC"), states)
		}
	}
	began := int64(0)
	for n, s := range t.rollouts {
		if n == 0 || t.rollouts[n-1].started != s.started {
			began = s.revision
		}
		if s.failed > 0 {
			i.add("rollouts", "%d licenses could not be changed: %+v", s.failed, s)
		}
		if !t.endsRollout(n) {
			continue
		}
		terms, entitlements := i.run.rolledTerms(numberOf(s.by))
		count := 0
		for id, states := range members {
			if states[0].created > s.started {
				continue
			}
			count++
			has := func(max, current int) bool {
				return max == terms.MaxDevices || terms.MaxDevices != 0 && current > terms.MaxDevices
			}
			hadBy := func(e eventAt) bool {
				return e.actor == s.by && e.revision > began && e.revision <= s.revision && has(e.max, e.current)
			}
			had := slices.ContainsFunc(t.rollsOf(id), hadBy)
			for at, l := range states {
				if l.revision > s.revision || at+1 < len(states) && states[at+1].revision <= began {
					continue
				}
				had = had || l.terms == entitlements.Version() && has(l.max, l.current)
			}
			if !had {
				i.add("rollouts", "%s has not got the terms of the rollout from revision %d on: %+v", id.Key("LIC"),
					began, s)
			}
		}
		if count != s.licenses {
			i.add("rollouts", "there are %d licenses for the rollout from revision %d on: %+v", count, began, s)
		}
	}
}

// TestRolledOut: a rollout and a later change of the limit may be in one revision, which shows the later limit. If the
// rollout has not set its limit there, the check finds it.
func TestRolledOut(t *testing.T) {
	r := &run{seed: 1}
	key := mint(licensing.Owner{AccountID: "acct_rolled", Mode: licensing.Test})
	terms, entitlements := r.rolledTerms(1)
	later := terms.MaxDevices + 7
	for rolledTo, want := range map[int]int{terms.MaxDevices: 0, terms.MaxDevices + 1: 1} {
		before := &licenseAt{revision: 10, product: "rolled", max: 3}
		after := &licenseAt{revision: 20, product: "rolled", max: later, terms: entitlements.Version(),
			grace: terms.Grace.Clock.Milliseconds()}
		timeline := &timeline{
			licenses: map[licensing.LicenseID][]*licenseAt{key.ID(): {before, after}},
			rollouts: []rolledAt{{revision: 15, by: rollActor + "1", started: 1},
				{revision: 30, by: rollActor + "1", started: 1, ended: 2, licenses: 1}},
			keysOf: map[string][]*eventsOf{licenseRecord(key.ID()): {{revision: 20, events: []eventAt{
				{revision: 20, actor: rollActor + "1", max: rolledTo}, {revision: 20, actor: "key_1", max: later},
			}}}},
		}
		i := &inspection{run: r}
		if i.rolledOut(timeline); len(i.list) != want {
			t.Errorf("the rollout sets the limit %d, wanted %d: found %v", rolledTo, terms.MaxDevices, i.list)
		}
	}
}

// rolledTerms: a rollout gives a license all its terms, and no other change does.
func (i *inspection) rolledTerms(t *timeline, key licensing.LicenseKey, states []*licenseAt) {
	type given struct {
		version               licensing.TermsVersion
		lease, longest, grace int64
	}
	rolls := t.rollsOf(key.ID())
	for n, s := range states[1:] {
		before := given{states[n].terms, states[n].lease, states[n].longest, states[n].grace}
		want := before
		for _, change := range rolls {
			if change.revision == s.revision {
				terms, entitlements := i.run.rolledTerms(numberOf(change.actor))
				l := terms.Lease
				want = given{entitlements.Version(), l.Length.Milliseconds(), l.Longest.Milliseconds(),
					terms.Grace.Clock.Milliseconds()}
			}
		}
		if has := (given{s.terms, s.lease, s.longest, s.grace}); has != want {
			i.add("rollouts", "%s: had the terms %x, was to get %x: has %x: %s", key, before, want, has, s)
		}
	}
}

// rollsOut reports whether a change is by a rollout, on one license.
func rollsOut(change store.Change) bool {
	r := &change.Writes[0].Record
	return len(change.Writes) == 1 && r.License != nil &&
		slices.ContainsFunc(r.Events, func(e licensing.Event) bool { return numberOf(string(e.Actor)) > 0 })
}

// overwriting is a store whose node rolls out terms to licenses as a page has listed them before.
type overwriting struct {
	store.Store
	mu     sync.Mutex
	listed map[licensing.LicenseID]licensing.License
}

func (o *overwriting) ListLicenses(
	ctx context.Context, owner licensing.Owner, of licensing.Customer, page store.Page,
	keep func(*store.LicenseView) bool,
) (store.List[store.LicenseView], error) {
	list, err := o.Store.ListLicenses(ctx, owner, of, page, keep)
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range list.Items {
		o.listed[list.Items[i].License.Key.ID()] = list.Items[i].License
	}
	return list, err
}

func (o *overwriting) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if rollsOut(change) {
		l := change.Writes[0].Record.License
		o.mu.Lock()
		listed, known := o.listed[l.Key.ID()]
		o.mu.Unlock()
		if known {
			listed.MaxDevices, listed.Terms, listed.Grace, listed.Sequence = l.MaxDevices, l.Terms, l.Grace, l.Sequence
			*l = listed
		}
	}
	return o.Store.Commit(ctx, change)
}

// depriving removes a device from each license that a rollout changes.
type depriving struct{ store.Store }

func (d depriving) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if rollsOut(change) {
		r := &change.Writes[0].Record
		for _, entry := range r.Devices {
			if entry.Bound {
				entry.Device, entry.Bound, entry.Changed = licensing.Device{ID: entry.Device.ID}, false, true
				r.License.CurrentDevices--
				break
			}
		}
	}
	return d.Store.Commit(ctx, change)
}

// skipping takes the first page of a rollout for the last.
type skipping struct{ store.Store }

func (s skipping) ListLicenses(
	ctx context.Context, owner licensing.Owner, of licensing.Customer, page store.Page,
	keep func(*store.LicenseView) bool,
) (store.List[store.LicenseView], error) {
	if page.Before != "" && page.Scan == store.MaxListScan {
		return store.List[store.LicenseView]{}, nil
	}
	return s.Store.ListLicenses(ctx, owner, of, page, keep)
}

// unlengthened is a store whose node rolls out no lengths of leases.
type unlengthened struct{ store.Store }

func (u unlengthened) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if rollsOut(change) {
		l := change.Writes[0].Record.License
		l.Lease = licensing.LeaseTerms{Length: shortestRolled, Longest: 2 * shortestRolled}
	}
	return u.Store.Commit(ctx, change)
}

// shortening ends the leases of each license with which a rollout begins earlier.
type shortening struct{ store.Store }

func (s shortening) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if rollsOut(change) {
		for _, entry := range change.Writes[0].Record.Devices {
			if entry.Bound {
				entry.Device.LeaseEnd, entry.Changed = entry.Device.LeaseEnd.Add(-time.Minute), true
			}
		}
	}
	return s.Store.Commit(ctx, change)
}
