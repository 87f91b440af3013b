package history

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"licet/internal/depth"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// run is one history: some nodes before one etcd, licenses and orders, and
// clients that work on them for a moment.
type run struct {
	seed    uint64
	number  int // of this run in the test binary
	etcd    *etcdServer
	bug     bug
	weather weather
	way     way
	// patience of most callers
	patience time.Duration
	warned   bool // the account has a budget, see startUsage
	owner    licensing.Owner
	started  time.Time
	slots    []*slot
	far      []*slot  // see startFar
	doubtful *slot    // see startDoubtful; nil: no client works on licenses
	maker    *process // creates the licenses, and nothing else

	lives, clients, keys atomic.Int64
	hops                 atomic.Int64   // commands that came by a hop
	background           sync.WaitGroup // calls into nodes, and their way into etcd
	late                 lateWrites     // writes that are made late
	trace                trace
	keeping              context.Context // passes that store growth run until it ends
	stopKeeping          context.CancelFunc
	kept                 sync.WaitGroup // these passes

	mu         sync.Mutex
	nodes      []store.Registration
	processes  []*process // those of the past too; added to by one goroutine
	licenses   []*license
	operations []operation
	deeds      []deed
	bySale     map[string]*license // by order
	doubts     map[string]bool     // the incarnations of the doubtful node
	many       map[string]bool     // the orders for many licenses
	played     []licensing.Order   // in the sandbox
	// askedReturns are the requests to refund invoices
	askedReturns []askedReturn
	bank         *bank
	till         *till
	recordings   map[recordedEnd]recording
	rolls        map[rolled]recording
	timeline     *timeline              // what etcd has had
	tried        map[licensing.Ref]bool // the licenses that trials have issued
	starting     map[licensing.Ref]int  // how many commits that issue them are under way
	wrong        []violation            // found while it was played

	listening listening
	// activations have events after this revision; 0: never, or always if the run listens
	listensAfter int64
	followed     []store.RecordedEvent            // as they were read meanwhile, page by page
	feed         []store.RecordedEvent            // as it is read in the end
	histories    map[string][]store.RecordedEvent // the same events, by record
}

func newRun(seed uint64, b bug) *run {
	r := &run{seed: seed, number: int(runs.Add(1)), bug: b, started: time.Now(), bySale: map[string]*license{},
		many: map[string]bool{}, doubts: map[string]bool{},
		recordings: map[recordedEnd]recording{}, tried: map[licensing.Ref]bool{},
		starting: map[licensing.Ref]int{}, rolls: map[rolled]recording{}}
	r.bank, r.till = newBank(r), newTill(r)
	r.keeping, r.stopKeeping = context.WithCancel(context.Background())
	r.owner = licensing.Owner{AccountID: fmt.Sprint("acct_history_", r.number), Mode: licensing.Test}
	r.warned = b.name == "" || b.warned
	list := weathers()
	r.weather = list[seed%uint64(len(list))]
	r.way = ways()[seed/uint64(len(list))%uint64(len(ways()))]
	r.patience = patience
	if r.listening = b.listening; r.listening == listensNever {
		r.listening = listening(r.random("listening").IntN(int(listeningKinds)))
	}
	switch {
	case b.lostHop != nil:
		r.way = way{on: true, lost: 300}
	case b.overlong:
		r.way = way{on: true, late: 300}
	}
	if r.way.on {
		r.patience = hopPatience
	}
	return r
}

// random returns numbers of its own to each part of a run.
func (r *run) random(part string, numbers ...uint64) *mathrand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, part, numbers)
	return mathrand.New(mathrand.NewPCG(r.seed, h.Sum64()))
}

func (r *run) note(op operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, op)
}

// has reports whether a license belongs to the run.
func (r *run) has(ref licensing.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.licenses, func(l *license) bool { return licensing.LicenseRef(l.key) == ref })
}

// hasTried reports whether the license of a trial belongs to the run.
func (r *run) hasTried(ref licensing.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried[ref]
}

// done counts the operations that have ended.
func (r *run) done() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.operations)
}

func (r *run) noteDeed(d deed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deeds = append(r.deeds, d)
}

// play makes the history.
func (r *run) play() error {
	random := r.random("play")
	for range 2 + random.IntN(2) {
		s := &slot{clock: &clock{epoch: r.started}}
		s.step(random)
		p, err := r.start(s)
		if err != nil {
			return errors.Join(err, r.end())
		}
		r.keepBusy(p) // but not the maker, see create
		s.process = p
		r.slots = append(r.slots, s)
		r.processes = append(r.processes, p)
	}
	var err error
	if r.maker, err = r.start(r.slots[0]); err != nil {
		return errors.Join(err, r.end())
	}
	r.processes = append(r.processes, r.maker)
	if err := r.startFar(random); err != nil {
		return errors.Join(err, r.end())
	}
	if r.plays(users) {
		if err := r.startDoubtful(); err != nil {
			return errors.Join(err, r.end())
		}
	}
	if err := r.startUsage(); err != nil {
		return errors.Join(err, r.end())
	}
	if err := r.matchCompact(); err != nil {
		return errors.Join(err, r.end())
	}
	if err := errors.Join(r.offerTrials(), r.offerBilling()); err != nil {
		return errors.Join(err, r.end())
	}
	for i, p := range r.plans(random) {
		// At the usual depth each seed has about half of the licenses: all at once are too much for two cores that run
		// other tests as well, and most requests would get no answer.
		if !r.plays(users) || r.bug.name == "" && !depth.Full() && r.random("plans", uint64(i)).IntN(2) == 0 {
			continue
		}
		l := newLicense(p, mint(r.owner))
		l.reissued = mintReissued(r.owner)
		r.mu.Lock()
		r.licenses = append(r.licenses, l)
		r.mu.Unlock()
	}
	ctx, stopFaults := context.WithCancel(context.Background())
	defer stopFaults()
	disturbed := make(chan error, 2)
	go func() { disturbed <- r.disturb(ctx) }()
	go func() { disturbed <- r.beginEpochs(ctx) }()
	f := &follower{run: r, random: r.random("follower")}
	following := make(chan struct{})
	go func() { defer close(following); f.follow(ctx) }()
	var group sync.WaitGroup
	for _, l := range r.licenses {
		for client := range l.clients {
			group.Go(func() { r.work(l, client) })
		}
	}
	start := func(c clients, parts ...func()) {
		for _, part := range parts {
			if r.plays(c) {
				group.Go(part)
			}
		}
	}
	shopCount := 3
	if r.bug.name != "" {
		shopCount = 8 // no other clients take time
	}
	for number := range shopCount {
		start(shops, func() { r.shop(number) })
	}
	start(outsiders, r.payOutside)
	start(payers, r.checkOut)
	start(subscribers, r.subscribe)
	start(changers, r.changeSubscriptions)
	start(disputants, r.dispute)
	start(returners, r.returnInvoices)
	start(bulkBuyers, r.buyMany)
	start(players, r.playInSandbox)
	start(granters, r.grant, r.price)
	start(rollers|leaseRollers, r.rollOut)
	for importer := range importerCount {
		start(importers, func() { r.importKeys(importer) })
	}
	start(triers, func() { r.tryOut(0, addresses) }, func() { r.tryOut(addresses, addresses+sweptAddresses) },
		func() { r.tryOut(addresses+sweptAddresses, addresses+sweptAddresses+closedAddresses) })
	group.Wait()
	stopFaults()
	<-following
	err = errors.Join(<-disturbed, <-disturbed, r.endFaults())
	r.till.stopFaults()
	r.balance()
	r.balanceCheckouts()
	r.balanceChanges()
	r.balanceSubscriptions()
	r.balanceReturns()
	r.balanceDisputes()
	r.issueAll(r.endTime())
	r.payPlayed(r.endTime())
	return errors.Join(err, r.rest(), r.finish(f), r.end())
}

// plansOfBug is how many licenses of a plan the histories of a bug have that shows in few plans: no other licenses take
// time.
const plansOfBug = 3

// plans returns the plans of the run's licenses.
func (r *run) plans(random *mathrand.Rand) []plan {
	list := plans(random, r.started)
	if r.bug.of == nil {
		return list
	}
	var several []plan
	for _, p := range list {
		for n := range plansOfBug {
			if number := p; r.bug.of(p) {
				number.name = fmt.Sprint(p.name, ", number ", n)
				several = append(several, number)
			}
		}
	}
	return several
}

// matchCompact has the account's external keys compared without blanks and dashes.
func (r *run) matchCompact() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	err := patiently(ctx, func() error {
		_, err := r.maker.node.ChangeSettings(ctx,
			licensing.ChangeSettings{Owner: r.owner, ExternalKeys: licensing.MatchCompact,
				ExpiringDays: new(expiringDays)})
		return err
	})
	if err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	return nil
}

// endFaults ends all faults, and waits until no write is on its way any more.
func (r *run) endFaults() error {
	for _, p := range r.processes {
		p.faults.on.Store(false)
	}
	r.late.Wait()
	return nil
}

// rest waits until nothing is under way any more, and has every node look
// at every license once more.
func (r *run) rest() error {
	for orderNo, l := range r.bySale {
		r.operations = append(r.operations, r.revokes(l, orderNo)...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	for _, p := range r.processes {
		if err := p.node.Drain(ctx); err != nil {
			return fmt.Errorf("drain node %d: %w", p.number, err)
		}
	}
	r.stopKeeping()
	r.kept.Wait()
	r.late.Wait()
	for _, l := range r.licenses {
		for _, s := range r.slotsFor(l) {
			op := r.put(s.current(), l, input{Key: l.key, Action: get}, 10*time.Second)
			for op.Out.Verdict == nothing {
				if ctx.Err() != nil {
					return fmt.Errorf("node %d can't look at %s in the end", op.Process, l.key)
				}
				op = r.put(s.current(), l, input{Key: l.key, Action: get}, 10*time.Second)
			}
			op.Client = r.newClient()
			r.note(op)
		}
	}
	return nil
}

// end stops all that the run has started.
func (r *run) end() error {
	for _, p := range r.processes {
		if !p.isDead() {
			p.kill()
		}
	}
	return nil
}

func mint(owner licensing.Owner) licensing.LicenseKey {
	var entropy [keyring.LicenseKeyEntropy]byte
	_, _ = rand.Read(entropy[:])
	return testKeys.Mint("LIC", owner, entropy)
}

// busyTime bounds what must succeed, on a machine that runs other tests as well.
const busyTime = 5 * time.Minute

// A search for an order of a license's operations is bounded. A search that does
// not end counts as a failure of the test.
const (
	searchTime  = busyTime         // a search takes seconds of the processor
	bugTime     = 3 * time.Second  // where a bug is put in: that there is no order can take for ever to find out
	drawingTime = 10 * time.Second // for what is only looked at
)

// result is what came of a run.
type result struct {
	run        *run
	timeline   *timeline
	violations []violation
}

// check plays a run and checks its history.
func check(seed uint64, b bug) (*result, error) {
	r := newRun(seed, b)
	var err error
	if r.etcd, err = startEtcd(); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	defer lingering.Go(func() {
		r.background.Wait()
		r.late.Wait()
		r.etcd.close()
	})
	if err := r.play(); err != nil {
		return nil, err
	}
	events, err := r.readHistory()
	if err != nil {
		return nil, fmt.Errorf("read etcd's history: %w", err)
	}
	res := &result{run: r}
	if res.timeline, err = newTimeline(r.owner.AccountID, events); err != nil {
		return nil, fmt.Errorf("read what is stored: %w", err)
	}
	r.timeline = res.timeline
	r.operations = append(r.operations, r.rolled(res.timeline)...)
	r.operations = append(r.operations, r.revokesOfUnused(res.timeline)...)
	r.operations = append(r.operations, r.renewals(res.timeline)...)
	res.violations = append(r.inspect(res.timeline), r.wrong...)
	r.operations = append(r.operations, r.ends(res.timeline)...)
	for _, l := range r.licenses {
		if asked, unknowns := l.asked.Load(), l.unknowns.Load(); l.clients > maxClients || asked > maxOperations ||
			unknowns > maxUnknowns {
			return nil, fmt.Errorf("%s has grown beyond what can be checked: %d clients, %d operations, %d unknown",
				l.name, l.clients, asked, unknowns)
		}
	}
	limit := searchTime
	if b.name != "" {
		limit = bugTime
	}
	switch porcupine.CheckOperationsTimeout(model(), r.history(), limit) {
	case porcupine.Illegal:
		res.violations = append(res.violations,
			violation{"linearizable", "no order of the operations explains what was answered"})
	case porcupine.Unknown:
		res.violations = append(res.violations,
			violation{"undecided", fmt.Sprintf("no order was found in %s, nor that there is none", limit)})
	}
	return res, nil
}

// explaining leaves out the operations that explain nothing: operations that were not executed, and operations with an
// unknown outcome on a license that no client has seen.
//
// The model may place an operation with an unknown outcome anywhere, see state.step. If such an operation had no
// effect, the model can place it last, provided that a client has seen the license, which then exists for good.
func explaining(operations []operation) []operation {
	seen := map[licensing.LicenseKey]bool{}
	for _, op := range operations {
		switch {
		case op.Out.Verdict == accepted,
			op.Out.Verdict == refused && op.Out.Reason != licensing.ReasonLicenseNotFound &&
				op.Out.Reason != licensing.ReasonInvalidField:
			seen[op.In.Key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(operations), func(op operation) bool {
		return op.Out.Verdict == nothing || op.Out.Verdict == unknown && !seen[op.In.Key]
	})
}

// history returns the operations to the checker. An operation of unknown outcome may happen at any later time, unless
// etcd has had no change that can be its effect: without such operations, the search is much shorter.
func (r *run) history() []porcupine.Operation {
	var end time.Duration
	byKey := map[licensing.LicenseKey][]operation{}
	for _, op := range r.operations {
		end = max(end, op.Return+1)
		byKey[op.In.Key] = append(byKey[op.In.Key], op)
	}
	var list []porcupine.Operation
	licenses := r.modeled()
	for _, op := range explaining(r.operations) {
		l := licenses[op.In.Key]
		if l == nil || op.Out.Verdict == unknown && !r.mayHaveHappened(op, l, byKey[op.In.Key]) {
			continue
		}
		o := porcupine.Operation{
			ClientId: op.Client, Input: op.In, Output: op.Out,
			Call: int64(op.Call), Return: int64(op.Return),
			Metadata: fmt.Sprintf("process %d, revisions %d to %d", op.Process, op.Before, op.After),
		}
		if op.Out.Verdict == unknown {
			o.Return = int64(end)
		}
		list = append(list, o)
	}
	return list
}

// unexplained names the licenses whose answers no order explains, each with
// the operations that could not be put behind the longest order found.
func (r *run) unexplained() []violation {
	var list []violation
	m := model()
	for _, part := range m.Partition(r.history()) {
		verdict, search := porcupine.CheckOperationsVerbose(m, part, drawingTime)
		if verdict == porcupine.Ok {
			continue
		}
		var longest []porcupine.Operation
		for _, order := range search.PartialLinearizationsOperations()[0] {
			if len(order) > len(longest) {
				longest = order
			}
		}
		state := m.Init()
		placed := map[porcupine.Operation]bool{}
		for _, op := range longest {
			_, state = m.Step(state, op.Input, op.Output)
			placed[op] = true
		}
		text := fmt.Sprintf("%s: %s; %d of %d operations lead to %s, and then", part[0].Input.(input).Key, verdict,
			len(longest), len(part), m.DescribeState(state))
		for n, op := range slices.DeleteFunc(part, func(op porcupine.Operation) bool { return placed[op] }) {
			if n == 8 {
				break
			}
			text += fmt.Sprintf("\n\t%s (%d to %d µs, %s)", m.DescribeOperation(op.Input, op.Output), op.Call/1000,
				op.Return/1000, op.Metadata)
		}
		list = append(list, violation{"linearizable", text})
	}
	return list
}

// keep writes what a failed run has left into a directory and names it.
func (res *result) keep() (string, error) {
	base := os.Getenv("LICET_HISTORY_DIR")
	if base == "" {
		var err error
		if base, err = os.MkdirTemp("", "licet-history-"); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(base, fmt.Sprintf("seed-%d-run-%d", res.run.seed, res.run.number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, v := range res.violations {
		fmt.Fprintf(&text, "%s: %s\n", v.check, v.text)
	}
	for _, l := range res.run.licenses {
		fmt.Fprintf(&text, "\n%s %s\n", l.name, l.key)
		for _, s := range res.timeline.licenses[l.key.ID()] {
			fmt.Fprintf(&text, "  %s\n", s)
		}
	}
	for number, states := range res.timeline.orders {
		fmt.Fprintf(&text, "\n%s\n", number)
		for _, s := range states {
			fmt.Fprintf(&text, "  %+v\n", *s)
		}
	}
	m := model()
	_, search := porcupine.CheckOperationsVerbose(m, res.run.history(), drawingTime)
	operations, err := json.MarshalIndent(struct {
		Seed       uint64
		Operations []operation
		Deeds      []deed
	}{res.run.seed, res.run.operations, res.run.deeds}, "", " ")
	return dir, errors.Join(err,
		os.WriteFile(filepath.Join(dir, "violations-and-revisions.txt"), []byte(text.String()), 0o600),
		os.WriteFile(filepath.Join(dir, "history.json"), operations, 0o600),
		os.WriteFile(filepath.Join(dir, "commits-and-hops.txt"), []byte(res.run.trace.String()), 0o600),
		porcupine.VisualizePath(m, search, filepath.Join(dir, "history.html")))
}
