package history

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"licet/internal/depth"
	"licet/kv"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/peer"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// lingering are the calls in nodes that have been killed: they come to an end
// by their timeouts, which no run needs to wait for.
var lingering sync.WaitGroup

func TestMain(m *testing.M) {
	depth.CollectLess()
	depth.Parallel(6) // without the race detector, runs wait half of their time
	code := m.Run()
	lingering.Wait()
	var err error
	if code == 0 {
		// fasthttp's own end some seconds after their server, or never.
		fasthttps := []goleak.Option{
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		}
		err = goleak.Find(fasthttps...)
		// A request of a node that was killed ends by kv's timeout.
		for until := time.Now().Add(time.Minute); err != nil && time.Now().Before(until); {
			err = goleak.Find(fasthttps...)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Nodes store often when devices were seen, so that these writes meet all other changes, but not for every activation.
const (
	seenStep  = 4 * time.Millisecond
	seenEvery = 3 * time.Millisecond
)

// testKeys makes all license keys here.
var testKeys = storetest.Keys()

// process is one life of a node: its connection to etcd, its store and itself.
// It can be killed, but not brought back: its slot gets a new one.
type process struct {
	number int // over all lives of a run
	far    bool
	doubt  bool
	clock  *clock
	faults *faults
	rpc    *grpc.Server
	opened *kv.Store
	store  *storetest.Faulty // what the node sees
	node   *service.Service
	calls  *peer.Client    // the other nodes; nil where they know nothing of each other
	called *severable      // calls of the other nodes; nil in the same case
	life   context.Context // ends when the process is killed
	die    context.CancelFunc
}

// testRing is the ring that all nodes share.
func testRing() (keyring.MasterRing, error) {
	master, err := keyring.NewMasterKey("m1", [keyring.MasterKeySize]byte{1, 2, 3})
	if err != nil {
		return keyring.MasterRing{}, err
	}
	return keyring.ParseMasterRing(master.Line())
}

// start opens a store on a way into etcd of its own, which its faults lie in
// wait on, and makes a node on it.
func (r *run) start(s *slot) (*process, error) {
	p := &process{number: int(r.lives.Add(1)), clock: s.clock, far: s.far, doubt: s.doubt}
	p.life, p.die = context.WithCancel(context.Background())
	p.faults = newFaults(r, p.number)
	socket := r.etcd.socket(fmt.Sprint(p.number))
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	p.rpc = v3rpc.Server(r.etcd.etcd.Server, nil, p.faults.intercept, grpc.WaitForHandlers(true))
	r.background.Go(func() { _ = p.rpc.Serve(listener) })
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	instruments := newInstruments()
	for p.opened == nil {
		p.opened, err = kv.Open(ctx, kv.Config{
			Endpoints:         []string{"unix://" + socket},
			RecordActivations: r.listening == listensAlways,
			Metrics:           instruments,
			Log:               zerolog.Nop(),
		})
		if err != nil && ctx.Err() != nil { // on a busy machine it may need a second try
			p.rpc.Stop()
			return nil, err
		}
	}
	if err := patiently(ctx, func() error { return p.opened.OpenEpoch(ctx) }); err != nil {
		return nil, err
	}
	ring, err := testRing()
	if err != nil {
		return nil, err
	}
	var store store.Store = p.opened
	if r.bug.store != nil {
		store = r.bug.store(r, store)
	}
	p.store = &storetest.Faulty{Store: killable{store, p.life, r, p}, OnLoad: p.faults.load,
		OnConfirm: p.faults.confirm,
		OnCommit:  p.faults.commit}
	p.store.OnOverlap = func(ref licensing.Ref) {
		r.complain("one commit", "node %d has record %v in two Commits at a time", p.number, ref)
	}
	cfg := service.Config{
		Config: node.Config{
			Records:     p.store,
			Queries:     p.store,
			LicenseKeys: testKeys,
			Clock:       s.clock.now,
			Metrics:     instruments,
			Log:         zerolog.Nop(),
			SeenEvery:   seenEvery,
		},
		Keys:         p.store,
		Sweeps:       p.store,
		Events:       p.store,
		Ring:         ring,
		Entropy:      cryptorand.Reader,
		SeenStep:     seenStep,
		SweepEvery:   sweepEvery,
		ExpiryMargin: time.Millisecond,
	}
	if r.warned {
		cfg.Usages, cfg.UsageEvery = swaying{p.opened, r}, usageEvery
		cfg.Budget = licensing.Budget{Bytes: budgetBytes}
	}
	if r.way.on && !p.doubt {
		if err := p.connectPeers(r); err != nil {
			return nil, err
		}
		cfg.Peers, cfg.Self, cfg.YieldAfter, cfg.HopMargin = troubled{p}, p.opened.Incarnation(), 1, hopMargin
	}
	if p.doubt {
		r.noteDoubt(p.opened.Incarnation())
		if !r.bug.unconfirmed {
			cfg.Clocks = p.comparison()
		}
	}
	p.node = service.New(cfg)
	if r.way.on && !p.doubt {
		if err := p.beCalled(r, instruments); err != nil {
			return nil, err
		}
	}
	r.background.Go(func() { p.node.KeepSeen(p.life) })
	p.faults.on.Store(true)
	return p, nil
}

// kill cuts the process off from etcd and from its callers, as SIGKILL would.
// What still goes on inside comes to an end without being able to do anything.
func (p *process) kill() {
	p.rpc.Stop()
	p.die()
	if p.called != nil {
		p.called.sever()
		p.calls.Close()
	}
	_ = p.opened.Close()
}

func (p *process) isDead() bool { return p.life.Err() != nil }

// killable is a store whose calls fail once its process was killed.
type killable struct {
	store.Store
	life context.Context
	run  *run
	by   *process
}

// Due leaves out the licenses that no client works on, and the leases that are not swept. Far nodes sweep only trials.
// The doubtful node, which must sweep nothing, finds all.
func (m killable) Due(
	ctx context.Context, kind licensing.DueKind, slot licensing.Slot, span store.DueSpan, from string, limit int,
) (store.DuePage, error) {
	page, err := m.Store.Due(ctx, kind, slot, span, from, limit)
	page.Records = slices.DeleteFunc(page.Records,
		func(ref licensing.Ref) bool {
			if m.by.doubt {
				return !m.run.has(ref) && !m.run.hasTried(ref)
			}
			if m.by.far {
				return !m.run.hasTried(ref)
			}
			if kind == licensing.DueRollout || kind == licensing.DueIssue {
				return false
			}
			return !m.run.has(ref) || kind == licensing.DueLeases && !m.run.sweeps(ref)
		})
	return page, err
}

func (m killable) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)()
	return m.Store.Load(ctx, wants...)
}

func (m killable) Confirm(ctx context.Context, ref licensing.Ref, token store.Token) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)()
	return m.Store.Confirm(ctx, ref, token)
}

func (m killable) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)()
	ended, tooSoon := m.run.noteTrial(change)
	defer ended()
	if tooSoon {
		return store.Outcome{}, licensing.ErrUnavailable
	}
	began := time.Since(m.run.started)
	outcome, err := m.Store.Commit(ctx, change)
	m.run.noteCommit(m.by, change, began, outcome, err)
	m.run.noteEnds(change, began, err == nil && outcome.Landed)
	m.run.noteRolls(change, began, err == nil && outcome.Landed)
	return outcome, err
}

// slot is a place for a node: what a load balancer has an address of.
type slot struct {
	mu      sync.Mutex
	process *process
	clock   *clock
	far     bool // see startFar
	doubt   bool // see startDoubtful
}

// step sets the clock of the slot's nodes.
func (s *slot) step(random *rand.Rand) {
	offset := skew(random.IntN(skews))
	switch {
	case s.doubt:
		return // a node refuses all requests for some seconds after its clock was set
	case s.far:
		offset = farAhead + time.Duration(random.IntN(skews)-skews/2)*farStep
	}
	s.clock.step(offset)
}

func (s *slot) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// restart kills the process in a slot and starts a new one.
func (r *run) restart(s *slot) error {
	s.current().kill()
	next, err := r.start(s)
	if err != nil {
		return err
	}
	r.keepBusy(next)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = next
	r.processes = append(r.processes, next)
	return nil
}

// keepBusy has a process do the work that no client asks for. Far nodes only sweep trials.
func (r *run) keepBusy(p *process) {
	if p.doubt {
		r.background.Go(p.sweepInDoubt)
		return
	}
	if p.far {
		r.background.Go(p.sweepTrials)
		return
	}
	r.background.Go(p.recordEnds)
	r.kept.Go(func() { p.keepUsage(r) })
}

// clock is the clock of a slot. It is wrong by an offset, which may change.
type clock struct {
	epoch time.Time // has a monotonic reading, so that only steps made here count

	mu    sync.Mutex
	steps []clockStep
}

type clockStep struct {
	at     time.Duration // since epoch
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch.Add(time.Since(c.epoch) + c.steps[len(c.steps)-1].offset)
}

// step sets the clock's offset.
func (c *clock) step(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, clockStep{time.Since(c.epoch), offset})
}

// span returns the times that the clock can have shown between two moments.
func (c *clock) span(from, to time.Duration) span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var offsets []time.Duration
	for i, s := range c.steps {
		last := i == len(c.steps)-1
		if s.at <= to && (last || c.steps[i+1].at >= from) {
			offsets = append(offsets, s.offset)
		}
	}
	milli := func(d time.Duration) int64 { return c.epoch.Add(d).UnixMilli() }
	return span{milli(from + slices.Min(offsets)), milli(to + slices.Max(offsets))}
}

// disturb kills nodes, pauses them and moves their clocks, until ctx ends. It
// goes by what the clients have done, so that a slow machine has no more of it.
func (r *run) disturb(ctx context.Context) error {
	random := r.random("disturb")
	slots := slices.Concat(r.slots, r.far)
	if r.doubtful != nil {
		slots = append(slots, r.doubtful)
	}
	for next := 0; ; {
		next += 50 + random.IntN(100)
		for r.done() < next {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Millisecond):
			}
		}
		s := slots[random.IntN(len(slots))]
		switch random.IntN(5) {
		case 0, 1:
			if err := r.restart(s); err != nil {
				return fmt.Errorf("start a node again: %w", err)
			}
		case 2, 3:
			s.current().faults.pause(time.Duration(10+random.IntN(150)) * time.Millisecond)
		case 4:
			s.step(random)
		}
	}
}

// skews counts the offsets that a clock can have: from ten minutes behind to
// ten minutes ahead.
const skews = 5

func skew(i int) time.Duration { return time.Duration(i-skews/2) * 5 * time.Minute }

// runs counts the runs of this test binary.
var runs = new(atomic.Int64)
