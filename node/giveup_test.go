package node_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestGivingUp: a caller gives up at each stage of its command.
func TestGivingUp(t *testing.T) {
	setup := func(t *testing.T) (key licensing.LicenseKey, n *service.Service, arrived, open chan struct{},
		done *sync.WaitGroup) {
		key = nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
		store, arrived, open, _ := gated(nodetest.OpenStore(t))
		n = nodetest.New(t, store)
		return key, n, arrived, open, &sync.WaitGroup{}
	}
	// givesUp activates a device behind another one. The caller gives up once the command waits.
	givesUp := func(t *testing.T, n *service.Service, key licensing.LicenseKey) {
		t.Helper()
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		answered := make(chan error, 1)
		go func() {
			_, err := nodetest.Activate(ctx, n, key, "impatient")
			answered <- err
		}()
		n.AwaitQueued(licensing.LicenseRef(key), 1)
		cancel()
		nodetest.WantError(t, <-answered, licensing.ErrUnavailable)
	}
	t.Run("while it waits: never run", func(t *testing.T) {
		key, n, arrived, open, group := setup(t)
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "running")
			nodetest.WantError(t, err, nil)
		})
		<-arrived
		givesUp(t, n, key)
		close(open)
		group.Wait()
		if err := n.Drain(nodetest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if _, ids := nodetest.Devices(t, n, key); ids["impatient"] || !ids["running"] {
			t.Errorf("bound: %v", ids)
		}
	})
	t.Run("while it waits with others: never run", func(t *testing.T) {
		key, n, arrived, open, group := setup(t)
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "running")
			nodetest.WantError(t, err, nil)
		})
		<-arrived
		givesUp(t, n, key)
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "patient")
			nodetest.WantError(t, err, nil)
		})
		n.AwaitQueued(licensing.LicenseRef(key), 2)
		close(open)
		group.Wait()
		if _, ids := nodetest.Devices(t, n, key); ids["impatient"] || !ids["patient"] {
			t.Errorf("bound: %v", ids)
		}
	})
	t.Run("in a fold with others: they go on", func(t *testing.T) {
		plain := nodetest.OpenStore(t)
		key := nodetest.Grant(t, nodetest.New(t, plain), 0)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		defer cancel()
		loads, arrived, open := 0, make(chan struct{}), make(chan struct{})
		n := nodetest.New(t, &storetest.Faulty{Store: plain, OnLoad: func([]store.Want) error {
			switch loads++; loads {
			case 1:
				close(arrived)
				<-open
			case 2:
				cancel()
			}
			return nil
		}})
		var group sync.WaitGroup
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "running")
			nodetest.WantError(t, err, nil)
		})
		<-arrived
		group.Go(func() { _, _ = nodetest.Activate(ctx, n, key, "impatient") })
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "patient")
			nodetest.WantError(t, err, nil)
		})
		n.AwaitQueued(licensing.LicenseRef(key), 2)
		close(open)
		group.Wait()
	})
	t.Run("while it is swapped: unknown", func(t *testing.T) {
		key, n, arrived, open, group := setup(t)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		group.Go(func() {
			_, err := nodetest.Activate(ctx, n, key, "impatient")
			nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
		})
		<-arrived
		cancel()
		group.Wait()
		close(open)
		// The swap was under way, and lands now.
		for _, ids := nodetest.Devices(t, n, key); !ids["impatient"]; _, ids = nodetest.Devices(t, n, key) {
			runtime.Gosched()
		}
	})
	t.Run("while its record is loaded: not run", func(t *testing.T) {
		plain := nodetest.OpenStore(t)
		key := nodetest.Grant(t, nodetest.New(t, plain), 0)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		n := nodetest.New(t, &storetest.Faulty{Store: plain, OnLoad: func([]store.Want) error {
			cancel()
			<-ctx.Done()
			return nil
		}})
		_, err := nodetest.Activate(ctx, n, key, "impatient")
		if err == nil {
			t.Error("the command succeeded although its caller gave up")
		}
		if err := n.Drain(nodetest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if _, ids := nodetest.Devices(t, n, key); ids["impatient"] {
			t.Error("the command ran after its caller got the answer that it was not executed")
		}
	})
	// The command runs in the goroutine of the mailbox, with a command whose caller waits.
	activateThree := func(ctx context.Context, t *testing.T, n *service.Service, key licensing.LicenseKey,
		arrived, open, answered chan struct{}) {
		t.Helper()
		var group sync.WaitGroup
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "running")
			nodetest.WantError(t, err, nil)
		})
		<-arrived
		group.Go(func() {
			_, err := nodetest.Activate(nodetest.Context(t), n, key, "patient")
			nodetest.WantError(t, err, nil)
		})
		group.Go(func() {
			_, err := nodetest.Activate(ctx, n, key, "impatient")
			nodetest.WantError(t, err, licensing.ErrOutcomeUnknown)
			close(answered)
		})
		n.AwaitQueued(licensing.LicenseRef(key), 2)
		close(open)
		group.Wait()
	}
	// stages holds the first turn back until open, and lets a rival write in the
	// middle of the second, once the impatient caller has its answer.
	stages := func(t *testing.T, rival *service.Service, key licensing.LicenseKey, cancel context.CancelFunc, arrived,
		open, answered chan struct{}) func() {
		var turns atomic.Int32
		return func() {
			switch turns.Add(1) {
			case 1:
				close(arrived)
				<-open
			case 2:
				cancel()
				<-answered
				if _, err := nodetest.Activate(nodetest.Context(t), rival, key, "rival"); err != nil {
					t.Error(err)
				}
			}
		}
	}
	// Once the caller has the answer "outcome unknown", a rival writes. The node must not run the answered command on
	// the record that the rival wrote.
	t.Run("while its record is loaded with others: not folded", func(t *testing.T) {
		plain := nodetest.OpenStore(t)
		rival := nodetest.New(t, plain)
		key := nodetest.Grant(t, rival, 0)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		arrived, open, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stage := stages(t, rival, key, cancel, arrived, open, answered)
		n := nodetest.New(t, &storetest.Faulty{Store: plain, Forgetful: true, OnLoad: func([]store.Want) error {
			stage()
			return nil
		}})
		activateThree(ctx, t, n, key, arrived, open, answered)
		if _, ids := nodetest.Devices(t, rival, key); ids["impatient"] || !ids["rival"] || !ids["patient"] {
			t.Errorf("bound: %v; an answered command must not run on a later record", ids)
		}
	})
	// The store reads the rival's record for another request, so it remembers more than the answered caller can know.
	t.Run("while its record is recalled with others: not folded", func(t *testing.T) {
		plain := nodetest.OpenStore(t)
		rival := nodetest.New(t, nodetest.OpenStore(t))
		key := nodetest.Grant(t, rival, 0)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		arrived, open, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stage := stages(t, rival, key, cancel, arrived, open, answered)
		n := nodetest.New(t, &storetest.Faulty{Store: plain, OnRecall: func(want store.Want) {
			stage()
			if _, err := plain.Load(nodetest.Context(t), want); err != nil {
				t.Error(err)
			}
		}})
		activateThree(ctx, t, n, key, arrived, open, answered)
		if _, ids := nodetest.Devices(t, rival, key); ids["impatient"] || !ids["rival"] || !ids["patient"] {
			t.Errorf("bound: %v; an answered command must not run on a later record", ids)
		}
	})
	t.Run("and its swap is lost: not folded again", func(t *testing.T) {
		plain, other := nodetest.OpenStore(t), nodetest.OpenStore(t)
		rival := nodetest.New(t, other)
		key := nodetest.Grant(t, rival, 0)
		ctx, cancel := context.WithCancel(nodetest.Context(t))
		arrived, open, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stage := stages(t, rival, key, cancel, arrived, open, answered)
		n := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			stage()
			return storetest.Fault{}
		}})
		activateThree(ctx, t, n, key, arrived, open, answered)
		if _, ids := nodetest.Devices(t, rival, key); ids["impatient"] || !ids["rival"] || !ids["patient"] {
			t.Errorf("bound: %v; an answered command must not run again", ids)
		}
	})
}

// TestLostSwap: the node folds again on the rival's value, and gives up after some lost swaps, without a change.
func TestLostSwap(t *testing.T) {
	plain := nodetest.OpenStore(t)
	rival := nodetest.New(t, plain)
	key := nodetest.Grant(t, rival, 0)
	beaten := 0
	db := &storetest.Faulty{Store: plain}
	db.OnCommit = func(store.Change) storetest.Fault {
		if beaten++; beaten <= 3 {
			if _, err := nodetest.Activate(nodetest.Context(t), rival, key, fmt.Sprint("rival-", beaten)); err != nil {
				t.Error(err)
			}
		}
		return storetest.Fault{}
	}
	n := nodetest.New(t, db)
	result, err := nodetest.Activate(nodetest.Context(t), n, key, "patient")
	if err != nil || result.License.CurrentDevices != 4 {
		t.Fatalf("got %d devices, %v; want 4", result.License.CurrentDevices, err)
	}

	db.OnCommit = func(store.Change) storetest.Fault {
		beaten++
		if _, err := nodetest.Activate(nodetest.Context(t), rival, key, fmt.Sprint("rival-", beaten)); err != nil {
			t.Error(err)
		}
		return storetest.Fault{}
	}
	_, err = nodetest.Activate(nodetest.Context(t), n, key, "hopeless")
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	if _, ids := nodetest.Devices(t, n, key); ids["hopeless"] {
		t.Error("the answer said that nothing was changed, but the device is bound")
	}
}

// TestStoreFailures: every command of a fold gets the error of the store.
func TestStoreFailures(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	for _, c := range []struct {
		name  string
		fault storetest.Fault
		bound bool
	}{
		{"unknown, applied", storetest.Fault{Say: licensing.ErrOutcomeUnknown}, true},
		{"unknown, not applied", storetest.Fault{Skip: true, Say: licensing.ErrOutcomeUnknown}, false},
		{"unavailable", storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}, false},
	} {
		n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t),
			OnCommit: func(store.Change) storetest.Fault { return c.fault }})
		_, err := nodetest.Activate(nodetest.Context(t), n, key, c.name)
		nodetest.WantError(t, err, c.fault.Say)
		if _, ids := nodetest.Devices(t, n, key); ids[c.name] != c.bound {
			t.Errorf("%s: bound is %v", c.name, ids[c.name])
		}
	}
	n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t),
		OnLoad: func([]store.Want) error { return licensing.ErrUnavailable }})
	_, err := nodetest.Activate(nodetest.Context(t), n, key, "unreadable")
	nodetest.WantError(t, err, licensing.ErrUnavailable)
}

// TestPanic makes one command of a fold panic, by withholding the entry of its device. Only that command fails, and the
// record stays correct.
func TestPanic(t *testing.T) {
	plain := nodetest.OpenStore(t)
	key := nodetest.Grant(t, nodetest.New(t, plain), 0)
	db, arrived, open, _ := gated(plain)
	withhold := func(s *store.Snapshot) { delete(s.Record.Devices, "poison") }
	db.AfterLoad = func(snapshots []store.Snapshot) { withhold(&snapshots[0]) }
	db.AfterRecall = withhold
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	var group sync.WaitGroup
	group.Go(func() { _, err := nodetest.Activate(ctx, n, key, "first"); nodetest.WantError(t, err, nil) })
	<-arrived
	group.Go(func() {
		_, err := nodetest.Activate(ctx, n, key, "poison")
		nodetest.WantError(t, err, licensing.ErrInternal)
	})
	for i := range 5 {
		group.Go(func() {
			_, err := nodetest.Activate(ctx, n, key, fmt.Sprint("fine-", i))
			nodetest.WantError(t, err, nil)
		})
	}
	n.AwaitQueued(licensing.LicenseRef(key), 6)
	close(open)
	group.Wait()
	if count, ids := nodetest.Devices(t, n, key); count != 6 || len(ids) != 6 || ids["poison"] {
		t.Errorf("current_devices %d, bound: %v", count, ids)
	}
}

func TestDrain(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	store, arrived, open, _ := gated(nodetest.OpenStore(t))
	var m *metrics.Metrics
	n := nodetest.New(t, store, func(cfg *service.Config) { m = cfg.Metrics })
	following, stop := context.WithCancel(nodetest.Context(t))
	defer stop()
	go n.FollowKeys(following)
	for m.Ready.Value() != 1 { // until the store has answered
		if following.Err() != nil {
			t.Fatal("licet_ready is 0 while the node is ready")
		}
		time.Sleep(time.Millisecond)
	}
	var group sync.WaitGroup
	group.Go(func() {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "accepted")
		nodetest.WantError(t, err, nil)
	})
	<-arrived
	n.StopIntake()
	if m.Ready.Value() != 0 {
		t.Error("licet_ready is 1 while the node drains")
	}
	nodetest.WantError(t, n.Ready(nodetest.Context(t)), licensing.ErrUnavailable)
	_, err := nodetest.Activate(nodetest.Context(t), n, key, "late")
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	_, _, err = n.CreateOrder(nodetest.Context(t), nodetest.Owner, service.NewOrder{ProductID: "pro", Currency: "USD"})
	nodetest.WantError(t, err, licensing.ErrUnavailable)

	impatient, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	nodetest.WantError(t, n.Drain(impatient), context.DeadlineExceeded)
	close(open)
	nodetest.WantError(t, n.Drain(nodetest.Context(t)), nil)
	group.Wait()
	if _, ids := nodetest.Devices(t, n, key); !ids["accepted"] || ids["late"] {
		t.Errorf("bound: %v", ids)
	}
}
