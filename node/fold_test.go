package node_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet"
	"licet/node"
	"licet/node/storetest"
)

// answers collects how many calls ended which way.
type answers struct {
	mu sync.Mutex
	by map[licet.Reason]int
	ok map[string]licet.Result
}

func (a *answers) add(device string, result licet.Result, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.ok[device] = result
		return
	}
	var refusal *licet.Error
	if !errors.As(err, &refusal) {
		refusal = licet.ErrInternal
	}
	a.by[refusal.Reason]++
}

// storm activates many devices at once, over any number of nodes.
func storm(ctx context.Context, nodes []*node.Node, key licet.LicenseKey, count int) *answers {
	a := &answers{by: map[licet.Reason]int{}, ok: map[string]licet.Result{}}
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() {
			device := fmt.Sprintf("device-%d", i)
			result, err := activate(ctx, nodes[i%len(nodes)], key, device)
			a.add(device, result, err)
		})
	}
	group.Wait()
	return a
}

func TestNeverOverBound(t *testing.T) {
	for _, c := range []struct{ nodes, slots, calls int }{{1, 3, 400}, {2, 3, 400}, {3, 40, 300}} {
		t.Run(fmt.Sprintf("%d nodes, %d slots", c.nodes, c.slots), func(t *testing.T) {
			var nodes []*node.Node
			for range c.nodes {
				nodes = append(nodes, newNode(t, openStore(t)))
			}
			key := grant(t, nodes[0], c.slots)
			a := storm(testContext(t), nodes, key, c.calls)
			if len(a.ok) != c.slots || a.by[licet.ReasonDeviceLimitReached] != c.calls-c.slots {
				t.Errorf("%d bound, refusals %v; want %d bound and the rest refused", len(a.ok), a.by, c.slots)
			}
			count, ids := devices(t, nodes[0], key)
			if count != c.slots {
				t.Errorf("current_devices is %d, want %d", count, c.slots)
			}
			counts := map[int]bool{}
			for device, result := range a.ok {
				if !ids[device] {
					t.Errorf("%s was acknowledged and is not bound", device)
				}
				counts[result.License.CurrentDevices] = true
			}
			if len(counts) != c.slots {
				t.Errorf("the answers carry the counts %v, want each of 1 to %d once", counts, c.slots)
			}
		})
	}
}

func TestSameDeviceManyTimes(t *testing.T) {
	nodes := []*node.Node{newNode(t, openStore(t)), newNode(t, openStore(t))}
	key := grant(t, nodes[0], 1)
	var group sync.WaitGroup
	var first sync.Map
	for i := range 200 {
		group.Go(func() {
			result, err := activate(testContext(t), nodes[i%2], key, "one")
			if err != nil {
				t.Errorf("activate: %v", err)
				return
			}
			first.Store(result.License.ActivatedAt, true)
		})
	}
	group.Wait()
	distinct := 0
	first.Range(func(any, any) bool { distinct++; return true })
	if distinct != 1 {
		t.Errorf("%d different activated_at, want 1", distinct)
	}
}

// gated holds commits back until it is opened, and counts them.
func gated(store node.Store) (*storetest.Faulty, chan struct{}, chan struct{}, *atomic.Int32) {
	arrived, open, count := make(chan struct{}, 1000), make(chan struct{}), &atomic.Int32{}
	return &storetest.Faulty{Store: store, OnCommit: func(node.Change) storetest.Fault {
		count.Add(1)
		arrived <- struct{}{}
		<-open
		return storetest.Fault{}
	}}, arrived, open, count
}

// TestWaitingCommandsFold lets commands pile up behind one swap: they all go
// with the next one.
func TestWaitingCommandsFold(t *testing.T) {
	key := grant(t, newNode(t, openStore(t)), 0)
	store, arrived, open, commits := gated(openStore(t))
	n := newNode(t, store)
	ctx := testContext(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := activate(ctx, n, key, "first"); wantError(t, err, nil) })
	<-arrived
	const waiting = node.MaxTouchedDevices
	for i := range waiting {
		group.Go(func() { _, err := activate(ctx, n, key, fmt.Sprint("waiting-", i)); wantError(t, err, nil) })
	}
	n.AwaitQueued(licet.LicenseRef(key), waiting)
	close(open)
	group.Wait()
	if got := commits.Load(); got != 2 {
		t.Errorf("%d swaps, want 2", got)
	}
	if count, _ := devices(t, n, key); count != waiting+1 {
		t.Errorf("current_devices is %d, want %d", count, waiting+1)
	}
}

// TestLargeFold lets more commands pile up behind one swap than a transaction
// touches devices as a rule. Where the store knows all devices of the license
// they all go with the next one; and if another node writes then, they go in
// parts, and each is bound once.
func TestLargeFold(t *testing.T) {
	for _, rival := range []bool{false, true} {
		t.Run(fmt.Sprint("rival ", rival), func(t *testing.T) {
			var gate atomic.Pointer[chan struct{}]
			var commits atomic.Int32
			arrived := make(chan struct{}, 1000)
			n := newNode(t, &storetest.Faulty{Store: openStore(t), OnCommit: func(node.Change) storetest.Fault {
				commits.Add(1)
				if hold := gate.Load(); hold != nil {
					arrived <- struct{}{}
					<-*hold
				}
				return storetest.Fault{}
			}})
			key := grant(t, n, 0)
			binds(names(20)...)(t, n, key)
			want := 20

			first, second := make(chan struct{}), make(chan struct{})
			gate.Store(&first)
			commits.Store(0)
			var group sync.WaitGroup
			start := func(device string) {
				want++
				group.Go(func() { mustActivate(t, n, key, device) })
			}
			start("in front")
			<-arrived
			const waiting = 2*node.MaxTouchedDevices + 10
			for i := range waiting {
				start(fmt.Sprint("waiting-", i))
			}
			n.AwaitQueued(licet.LicenseRef(key), waiting)
			gate.Store(&second)
			close(first)
			<-arrived // with all that waited
			if rival {
				binds("rival", "waiting-7")(t, newNode(t, openStore(t)), key)
				want++
			}
			gate.Store(nil)
			close(second)
			group.Wait()
			if got := commits.Load(); got != 2 && !rival {
				t.Errorf("%d swaps, want 2", got)
			}
			if count, ids := devices(t, n, key); count != want || len(ids) != want {
				t.Errorf("current_devices is %d, %d bound, want %d", count, len(ids), want)
			}
		})
	}
}

// TestFullMailbox refuses the command that finds no place, and runs the rest.
func TestFullMailbox(t *testing.T) {
	key := grant(t, newNode(t, openStore(t)), 0)
	store, arrived, open, _ := gated(openStore(t))
	n := newNode(t, store, func(c *node.Config) { c.QueueLimit = 2 })
	ctx := testContext(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := activate(ctx, n, key, "running"); wantError(t, err, nil) })
	<-arrived
	for i := range 2 {
		group.Go(func() { _, err := activate(ctx, n, key, fmt.Sprint("waiting-", i)); wantError(t, err, nil) })
	}
	n.AwaitQueued(licet.LicenseRef(key), 2)
	_, err := activate(ctx, n, key, "too many")
	wantError(t, err, licet.ErrOverloaded)
	close(open)
	group.Wait()
	if _, ids := devices(t, n, key); ids["too many"] || len(ids) != 3 {
		t.Errorf("bound: %v", ids)
	}
}

// TestGivingUp ends a caller's patience at each stage of its command.
func TestGivingUp(t *testing.T) {
	setup := func(t *testing.T) (key licet.LicenseKey, n *node.Node, arrived, open chan struct{}, done *sync.WaitGroup) {
		key = grant(t, newNode(t, openStore(t)), 0)
		store, arrived, open, _ := gated(openStore(t))
		n = newNode(t, store)
		return key, n, arrived, open, &sync.WaitGroup{}
	}
	t.Run("while it waits: never run", func(t *testing.T) {
		key, n, arrived, open, group := setup(t)
		group.Go(func() { _, err := activate(testContext(t), n, key, "running"); wantError(t, err, nil) })
		<-arrived
		ctx, cancel := context.WithTimeout(testContext(t), 10*time.Millisecond)
		defer cancel()
		_, err := activate(ctx, n, key, "impatient")
		wantError(t, err, licet.ErrUnavailable)
		close(open)
		group.Wait()
		if err := n.Drain(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if _, ids := devices(t, n, key); ids["impatient"] || !ids["running"] {
			t.Errorf("bound: %v", ids)
		}
	})
	t.Run("while it waits with others: never run", func(t *testing.T) {
		key, n, arrived, open, group := setup(t)
		group.Go(func() { _, err := activate(testContext(t), n, key, "running"); wantError(t, err, nil) })
		<-arrived
		ctx, cancel := context.WithTimeout(testContext(t), 10*time.Millisecond)
		defer cancel()
		_, err := activate(ctx, n, key, "impatient")
		wantError(t, err, licet.ErrUnavailable)
		group.Go(func() { _, err := activate(testContext(t), n, key, "patient"); wantError(t, err, nil) })
		n.AwaitQueued(licet.LicenseRef(key), 2)
		close(open)
		group.Wait()
		if _, ids := devices(t, n, key); ids["impatient"] || !ids["patient"] {
			t.Errorf("bound: %v", ids)
		}
	})
	t.Run("in a fold with others: they go on", func(t *testing.T) {
		plain := openStore(t)
		key := grant(t, newNode(t, plain), 0)
		ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
		defer cancel()
		loads, arrived, open := 0, make(chan struct{}), make(chan struct{})
		n := newNode(t, &storetest.Faulty{Store: plain, OnLoad: func([]node.Want) error {
			switch loads++; loads {
			case 1:
				close(arrived)
				<-open
			case 2:
				<-ctx.Done()
			}
			return nil
		}})
		var group sync.WaitGroup
		group.Go(func() { _, err := activate(testContext(t), n, key, "running"); wantError(t, err, nil) })
		<-arrived
		group.Go(func() { _, _ = activate(ctx, n, key, "impatient") })
		group.Go(func() { _, err := activate(testContext(t), n, key, "patient"); wantError(t, err, nil) })
		n.AwaitQueued(licet.LicenseRef(key), 2)
		close(open)
		group.Wait()
	})
	t.Run("while it is swapped: unknown", func(t *testing.T) {
		key, n, arrived, open, group := setup(t)
		ctx, cancel := context.WithCancel(testContext(t))
		group.Go(func() {
			_, err := activate(ctx, n, key, "impatient")
			wantError(t, err, licet.ErrOutcomeUnknown)
		})
		<-arrived
		cancel()
		group.Wait()
		close(open)
		// The swap was under way, and lands now.
		for _, ids := devices(t, n, key); !ids["impatient"]; _, ids = devices(t, n, key) {
			runtime.Gosched()
		}
	})
	t.Run("while its record is loaded: not run", func(t *testing.T) {
		plain := openStore(t)
		key := grant(t, newNode(t, plain), 0)
		ctx, cancel := context.WithCancel(testContext(t))
		n := newNode(t, &storetest.Faulty{Store: plain, OnLoad: func([]node.Want) error {
			cancel()
			<-ctx.Done()
			return nil
		}})
		_, err := activate(ctx, n, key, "impatient")
		if err == nil {
			t.Error("it was answered as if its caller had waited")
		}
		if err := n.Drain(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if _, ids := devices(t, n, key); ids["impatient"] {
			t.Error("it was run after its caller had been told that it was not")
		}
	})
	// In the mailbox's own goroutine, with another that is patient.
	crowd := func(ctx context.Context, t *testing.T, n *node.Node, key licet.LicenseKey, arrived, open, told chan struct{}) {
		t.Helper()
		var group sync.WaitGroup
		group.Go(func() { _, err := activate(testContext(t), n, key, "running"); wantError(t, err, nil) })
		<-arrived
		group.Go(func() { _, err := activate(testContext(t), n, key, "patient"); wantError(t, err, nil) })
		group.Go(func() {
			_, err := activate(ctx, n, key, "impatient")
			wantError(t, err, licet.ErrOutcomeUnknown)
			close(told)
		})
		n.AwaitQueued(licet.LicenseRef(key), 2)
		close(open)
		group.Wait()
	}
	// stages holds the first turn back until open, and lets a rival write in the
	// middle of the second, once the impatient caller has been told.
	stages := func(t *testing.T, rival *node.Node, key licet.LicenseKey, cancel context.CancelFunc, arrived, open, told chan struct{}) func() {
		var turns atomic.Int32
		return func() {
			switch turns.Add(1) {
			case 1:
				close(arrived)
				<-open
			case 2:
				cancel()
				<-told
				if _, err := activate(testContext(t), rival, key, "rival"); err != nil {
					t.Error(err)
				}
			}
		}
	}
	// Once it has been told that its outcome is unknown, a rival writes; what a
	// rival has written must not be built on by a command that was answered.
	t.Run("while its record is loaded with others: not folded", func(t *testing.T) {
		plain := openStore(t)
		rival := newNode(t, plain)
		key := grant(t, rival, 0)
		ctx, cancel := context.WithCancel(testContext(t))
		arrived, open, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stage := stages(t, rival, key, cancel, arrived, open, told)
		n := newNode(t, &storetest.Faulty{Store: plain, Forgetful: true, OnLoad: func([]node.Want) error {
			stage()
			return nil
		}})
		crowd(ctx, t, n, key, arrived, open, told)
		if _, ids := devices(t, rival, key); ids["impatient"] || !ids["rival"] || !ids["patient"] {
			t.Errorf("bound: %v; a command that was answered must not be run on what came after", ids)
		}
	})
	t.Run("and its swap is lost: not folded again", func(t *testing.T) {
		plain, other := openStore(t), openStore(t)
		rival := newNode(t, other)
		key := grant(t, rival, 0)
		ctx, cancel := context.WithCancel(testContext(t))
		arrived, open, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stage := stages(t, rival, key, cancel, arrived, open, told)
		n := newNode(t, &storetest.Faulty{Store: plain, OnCommit: func(node.Change) storetest.Fault {
			stage()
			return storetest.Fault{}
		}})
		crowd(ctx, t, n, key, arrived, open, told)
		if _, ids := devices(t, rival, key); ids["impatient"] || !ids["rival"] || !ids["patient"] {
			t.Errorf("bound: %v; a command that was answered must not be run again", ids)
		}
	})
}

// TestLostSwap refolds on the rival's value, and gives up after some tries
// with nothing done.
func TestLostSwap(t *testing.T) {
	plain := openStore(t)
	rival := newNode(t, plain)
	key := grant(t, rival, 0)
	beaten := 0
	store := &storetest.Faulty{Store: plain}
	store.OnCommit = func(node.Change) storetest.Fault {
		if beaten++; beaten <= 3 {
			if _, err := activate(testContext(t), rival, key, fmt.Sprint("rival-", beaten)); err != nil {
				t.Error(err)
			}
		}
		return storetest.Fault{}
	}
	n := newNode(t, store)
	result, err := activate(testContext(t), n, key, "patient")
	if err != nil || result.License.CurrentDevices != 4 {
		t.Fatalf("got %d devices, %v; want 4", result.License.CurrentDevices, err)
	}

	store.OnCommit = func(node.Change) storetest.Fault {
		beaten++
		if _, err := activate(testContext(t), rival, key, fmt.Sprint("rival-", beaten)); err != nil {
			t.Error(err)
		}
		return storetest.Fault{}
	}
	_, err = activate(testContext(t), n, key, "hopeless")
	wantError(t, err, licet.ErrUnavailable)
	if _, ids := devices(t, n, key); ids["hopeless"] {
		t.Error("it was said that nothing happened, but it is bound")
	}
}

// TestStoreFailures passes on what the store says, for every command of a
// fold.
func TestStoreFailures(t *testing.T) {
	key := grant(t, newNode(t, openStore(t)), 0)
	for _, c := range []struct {
		name  string
		fault storetest.Fault
		bound bool
	}{
		{"unknown, applied", storetest.Fault{Say: licet.ErrOutcomeUnknown}, true},
		{"unknown, not applied", storetest.Fault{Skip: true, Say: licet.ErrOutcomeUnknown}, false},
		{"unavailable", storetest.Fault{Skip: true, Say: licet.ErrUnavailable}, false},
	} {
		n := newNode(t, &storetest.Faulty{Store: openStore(t), OnCommit: func(node.Change) storetest.Fault { return c.fault }})
		_, err := activate(testContext(t), n, key, c.name)
		wantError(t, err, c.fault.Say)
		if _, ids := devices(t, n, key); ids[c.name] != c.bound {
			t.Errorf("%s: bound is %v", c.name, ids[c.name])
		}
	}
	n := newNode(t, &storetest.Faulty{Store: openStore(t), OnLoad: func([]node.Want) error { return licet.ErrUnavailable }})
	_, err := activate(testContext(t), n, key, "unreadable")
	wantError(t, err, licet.ErrUnavailable)
}

// TestPanic makes one command of a fold panic, by withholding the entry of its
// device: it alone fails, and the record takes no harm.
func TestPanic(t *testing.T) {
	plain := openStore(t)
	key := grant(t, newNode(t, plain), 0)
	store, arrived, open, _ := gated(plain)
	withhold := func(s *node.Snapshot) { delete(s.Record.Devices, "poison") }
	store.AfterLoad = func(snapshots []node.Snapshot) { withhold(&snapshots[0]) }
	store.AfterRecall = withhold
	n := newNode(t, store)
	ctx := testContext(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := activate(ctx, n, key, "first"); wantError(t, err, nil) })
	<-arrived
	group.Go(func() { _, err := activate(ctx, n, key, "poison"); wantError(t, err, licet.ErrInternal) })
	for i := range 5 {
		group.Go(func() { _, err := activate(ctx, n, key, fmt.Sprint("fine-", i)); wantError(t, err, nil) })
	}
	n.AwaitQueued(licet.LicenseRef(key), 6)
	close(open)
	group.Wait()
	if count, ids := devices(t, n, key); count != 6 || len(ids) != 6 || ids["poison"] {
		t.Errorf("current_devices %d, bound: %v", count, ids)
	}
}

func TestDrain(t *testing.T) {
	key := grant(t, newNode(t, openStore(t)), 0)
	store, arrived, open, _ := gated(openStore(t))
	n := newNode(t, store)
	var group sync.WaitGroup
	group.Go(func() { _, err := activate(testContext(t), n, key, "accepted"); wantError(t, err, nil) })
	<-arrived
	n.StopIntake()
	wantError(t, n.Ready(testContext(t)), licet.ErrUnavailable)
	_, err := activate(testContext(t), n, key, "late")
	wantError(t, err, licet.ErrUnavailable)
	_, _, err = n.CreateOrder(testContext(t), testOwner, node.NewOrder{ProductID: "pro", Currency: "USD"})
	wantError(t, err, licet.ErrUnavailable)

	impatient, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	wantError(t, n.Drain(impatient), context.DeadlineExceeded)
	close(open)
	wantError(t, n.Drain(testContext(t)), nil)
	group.Wait()
	if _, ids := devices(t, n, key); !ids["accepted"] || ids["late"] {
		t.Errorf("bound: %v", ids)
	}
}
