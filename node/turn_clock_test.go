package node_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestStepBeforeTheTurn: commands that wait for their turn while the clock is set are refused. Until the clock is
// compared again, the node writes nothing and answers nothing by the new time.
func TestStepBeforeTheTurn(t *testing.T) {
	var clock nodetest.Clock
	comparison := nodetest.NewComparison(clock.Source)
	db := &hookedCommits{Store: nodetest.OpenStore(t), before: func() {}}
	n := nodetest.New(t, db, nodetest.WithClock(&clock), func(c *service.Config) { c.Clocks = comparison })
	key := nodetest.Grant(t, n, 0)
	ref := licensing.LicenseRef(key)
	nodetest.MustActivate(t, n, key, "bound")

	arrived, open := make(chan struct{}), make(chan struct{})
	var commits atomic.Int32
	db.before = func() {
		if commits.Add(1) == 1 {
			close(arrived)
			<-open
		}
	}
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-arrived
	refused := func(what string, do func() error) {
		group.Go(func() {
			if err := do(); licensing.ReasonOf(err) != licensing.ReasonUnavailable {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	activate := func(device string) func() error {
		return func() error { _, err := nodetest.Activate(nodetest.Context(t), n, key, device); return err }
	}
	suspend := licensing.SuspendLicense{Target: licensing.Target{Key: key, Caller: nodetest.Owner}}
	refused("a new device", activate("new"))
	refused("a bound device", activate("bound"))
	refused("a command with an Idempotency-Key", func() error {
		_, _, err := n.ChangeLicense(nodetest.Context(t), nodetest.Owner, service.LicenseChange{
			Key: key, Once: nodetest.Once("suspend", "r"), Command: suspend,
		})
		return err
	})
	n.AwaitQueued(ref, 3)
	refused("a task", func() error {
		_, err := n.WithRecordLock(nodetest.Context(t), ref, func(ctx context.Context) (licensing.Result, error) {
			return n.SwapTogether(ctx, node.Step{Ref: ref, Cmd: suspend})
		})
		return err
	})
	n.AwaitQueued(ref, 4)
	clock.Advance(9 * 24 * time.Hour)
	close(open)
	group.Wait()
	if made := commits.Load(); made != 1 {
		t.Errorf("%d swaps, want only the swap of the first device", made)
	}

	nodetest.CompareWith(comparison, 0, 0)
	nodetest.MustActivate(t, n, key, "new")
}

// TestStepDuringRead: a node whose clock is set while it reads a license answers nothing by the new time.
func TestStepDuringRead(t *testing.T) {
	other := nodetest.New(t, nodetest.OpenStore(t))
	key := nodetest.Grant(t, other, 0)
	nodetest.MustActivate(t, other, key, "bound")
	var clock nodetest.Clock
	db := &storetest.Faulty{Store: nodetest.OpenStore(t), AfterLoad: func([]store.Snapshot) {
		clock.Advance(9 * 24 * time.Hour)
	}}
	comparison := nodetest.NewComparison(clock.Source)
	n := nodetest.New(t, db, nodetest.WithClock(&clock), func(c *service.Config) { c.Clocks = comparison })
	_, err := nodetest.Activate(nodetest.Context(t), n, key, "bound")
	if licensing.ReasonOf(err) != licensing.ReasonUnavailable {
		t.Errorf("an answer by the new time: %v", err)
	}
}

// TestLateAnswerDatesNoReceipt: another node changes a license while this node waits for the answer to its read, or to
// a swap that it loses. A program takes the receipt's time as the time until which nothing was voided. So the receipt
// of an answer by the read is dated before the change. The receipt of the next swap is not: the swap lands only if
// nothing has changed since the change that the node knows.
func TestLateAnswerDatesNoReceipt(t *testing.T) {
	const late = 3 * time.Second
	other := nodetest.New(t, nodetest.OpenStore(t))
	receipt := licensing.AskReceipt(true, true, 0)
	ask := func(n *service.Service, key licensing.LicenseKey) time.Time {
		t.Helper()
		result, err := n.Activate(nodetest.Context(t),
			licensing.Activate{Target: licensing.Target{Key: key}, Device: "pc", Receipt: receipt})
		nodetest.WantError(t, err, nil)
		return result.Receipt.IssuedAt
	}
	for _, c := range []struct {
		name string
		read bool
	}{{"a read", true}, {"a lost swap", false}} {
		t.Run(c.name, func(t *testing.T) {
			var clock nodetest.Clock
			var key licensing.LicenseKey
			change := sync.OnceFunc(func() {
				suspend := licensing.SuspendLicense{Target: licensing.Target{Key: key, Caller: nodetest.Owner}}
				if c.read {
					_, _, err := other.ChangeLicense(nodetest.Context(t), nodetest.Owner,
						service.LicenseChange{Key: key, Command: suspend})
					nodetest.WantError(t, err, nil)
				} else {
					nodetest.MustActivate(t, other, key, "rival")
				}
				clock.Advance(late)
			})
			db := &storetest.Faulty{Store: nodetest.OpenStore(t)}
			if c.read {
				db.AfterLoad = func([]store.Snapshot) { change() }
			} else {
				db.OnCommit = func(store.Change) storetest.Fault { change(); return storetest.Fault{} }
			}
			key = nodetest.Grant(t, other, 0)
			ask(other, key) // for today, there are receipts: so a read answers
			if !c.read {
				_, err := other.RemoveDevice(nodetest.Context(t), licensing.RemoveDevice{
					Target: licensing.Target{Key: key, Caller: nodetest.Owner}, Device: "pc"})
				nodetest.WantError(t, err, nil)
			}
			n := nodetest.New(t, db, nodetest.WithClock(&clock))
			before := clock.Now()
			want := before
			if !c.read {
				want = before.Add(late)
			}
			if issued := ask(n, key); !issued.Equal(want) {
				t.Errorf("the receipt is dated %v after the read began, want %v", issued.Sub(before), want.Sub(before))
			}
			if clock.Now().Sub(before) != late {
				t.Error("the license did not change in between")
			}
		})
	}
}

// TestReleaseAfterSlowRead: a receipt that binds a device is as new as the binding, although the node has read the
// license some seconds earlier. So a release by this receipt frees the device slot, also after a change that raises the
// revision of the license.
func TestReleaseAfterSlowRead(t *testing.T) {
	var clock nodetest.Clock
	n, ctx := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(&clock)), nodetest.Context(t)
	owner := nodetest.NewOwner(licensing.Test)
	_, _, err := n.PutProduct(ctx, licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.Terms{
		KeyPrefix: "PRO", SelfService: licensing.SelfService{Allowed: true}}})
	nodetest.WantError(t, err, nil)
	licenses, _, err := n.Grant(ctx, owner, service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: new(1)})
	nodetest.WantError(t, err, nil)
	target := licensing.Target{Key: licenses[0].License.Key}

	slow := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), AfterLoad: func([]store.Snapshot) {
		clock.Advance(3 * time.Second)
	}}, nodetest.WithClock(&clock))
	bound, err := slow.Activate(ctx, licensing.Activate{Target: target, Device: "pc",
		Receipt: licensing.AskReceipt(true, true, 0)})
	nodetest.WantError(t, err, nil)
	if issued := bound.Receipt.IssuedAt; !issued.Equal(bound.Device.BoundAt) {
		t.Errorf("the receipt is dated %v, the binding %v", issued, bound.Device.BoundAt)
	}
	changed, _, err := n.ChangeLicense(ctx, owner, service.LicenseChange{Key: target.Key,
		Command: licensing.UpdateLicense{Target: licensing.Target{Key: target.Key, Caller: owner}, MaxDevices: new(2)}})
	nodetest.WantError(t, err, nil)
	if changed.License.Revision <= bound.License.Revision {
		t.Errorf("the change left the revision at %d", changed.License.Revision)
	}
	released, err := n.DeactivateDevice(ctx, licensing.DeactivateDevice{Target: target, Device: "pc",
		ReceiptAt: bound.Receipt.IssuedAt, ReceiptRevision: bound.License.Revision})
	if err != nil || !released.Removed {
		t.Errorf("the release: removed %v, %v", released.Removed, err)
	}
}
