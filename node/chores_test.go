package node_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestPassesAreCounted: passes count by their outcome. A pass that the shutdown ends does not count.
func TestPassesAreCounted(t *testing.T) {
	m := metrics.New(prometheus.NewRegistry(), "test", "", "")
	var clock still
	clock.move(time.Hour)
	n := nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) { c.Metrics, c.Clock = m, clock.now })
	count := func(label, outcome string) float64 {
		return testutil.ToFloat64(m.Sweeps.WithLabelValues(label, outcome))
	}
	success := func(label string) float64 {
		return testutil.ToFloat64(m.SweepSuccess.WithLabelValues(label))
	}
	ctx, cancel := context.WithCancel(nodetest.Context(t))
	passes := 0
	n.Sweep(ctx, service.Chore{Label: "poor", Once: func(context.Context) error {
		if passes == 0 && (count("poor", "failed") != 0 || count("good", "ok") != 0 || success("good") != 0) {
			t.Error("passes are counted before the first pass")
		}
		return errors.New("it fails")
	}}, service.Chore{Label: "good", Once: func(context.Context) error {
		clock.move(2 * time.Second)
		return nil
	}}, service.Chore{Label: "last", Once: func(ctx context.Context) error {
		if passes++; passes == 3 {
			cancel()
			return ctx.Err()
		}
		return nil
	}})
	for _, c := range []struct {
		label, outcome string
		want           float64
	}{
		{"poor", "failed", 3}, {"poor", "ok", 0}, {"good", "ok", 3}, {"good", "failed", 0}, {"last", "ok", 2}, {"last",
			"failed", 0}, {"last", "put_off", 0},
	} {
		if got := count(c.label, c.outcome); got != c.want {
			t.Errorf("%s, %s: %v, want %v", c.label, c.outcome, got, c.want)
		}
	}
	if got, want := success("good"), float64(clock.now().UnixMilli())/1000; got != want {
		t.Errorf("the last success was at %v, want %v", got, want)
	}
	if got := success("poor"); got != 0 {
		t.Errorf("a chore that always fails has a success at %v", got)
	}
	var measured dto.Metric
	if err := m.SweepDuration.WithLabelValues("good").(prometheus.Metric).Write(&measured); err != nil {
		t.Fatal(err)
	}
	took := measured.GetHistogram()
	if took.GetSampleCount() != 3 || took.GetSampleSum() != 6 {
		t.Errorf("%d passes took %v seconds", took.GetSampleCount(), took.GetSampleSum())
	}
}

// TestBusyNodePutsOff: a busy node puts off a chore, and counts the pass as put off, not as done.
func TestBusyNodePutsOff(t *testing.T) {
	m := metrics.New(prometheus.NewRegistry(), "test", "", "")
	var clock still
	var holding atomic.Bool
	arrived, open := make(chan struct{}), make(chan struct{})
	n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), OnCommit: func(store.Change) storetest.Fault {
		if holding.Load() {
			arrived <- struct{}{}
			<-open
		}
		return storetest.Fault{}
	}}, func(c *service.Config) {
		c.Metrics, c.TestOrderLifetime, c.Clock = m, time.Minute, clock.now
	})
	_, _, err := n.CreateOrder(nodetest.Context(t), nodetest.NewOwner(licensing.Test), nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	clock.move(time.Hour)
	key := nodetest.Grant(t, n, 0)
	n.Admit(1, 1, 20_000)
	holding.Store(true)
	done := make(chan error)
	go func() {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, "d")
		done <- err
	}()
	<-arrived // all places are taken

	ctx, cancel := context.WithCancel(nodetest.Context(t))
	n.Sweep(ctx, service.Chore{Label: "order_ends", Once: n.RecordOrderEnds},
		service.Chore{Once: func(context.Context) error {
			cancel()
			return nil
		}})
	for outcome, want := range map[string]float64{"put_off": 1, "ok": 0, "failed": 0} {
		if got := testutil.ToFloat64(m.Sweeps.WithLabelValues("order_ends", outcome)); got != want {
			t.Errorf("%s: %v, want %v", outcome, got, want)
		}
	}
	holding.Store(false)
	close(open)
	nodetest.WantError(t, <-done, nil)
}

// TestChoresHaveLabels: each chore has a short label of its own, for metrics.
func TestChoresHaveLabels(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	seen := make(map[string]bool)
	for _, chore := range n.Chores() {
		if chore.Label == "" || seen[chore.Label] {
			t.Errorf("%s has the label %q", chore.Name, chore.Label)
		}
		seen[chore.Label] = true
	}
}

// TestWaitingCommands: one gauge counts the records that have commands, the other the commands that wait for other
// commands.
func TestWaitingCommands(t *testing.T) {
	keys := grants(t, 2)
	h := newHeld(t, everything)
	want := func(boxes, waiting float64) {
		t.Helper()
		if got := h.metrics.Mailboxes.Value(); got != boxes {
			t.Errorf("%v mailboxes, want %v", got, boxes)
		}
		if got := h.metrics.CommandsWaiting.Value(); got != waiting {
			t.Errorf("%v commands wait, want %v", got, waiting)
		}
	}
	want(0, 0)
	for _, key := range keys {
		h.start(t, key, "first")
		<-h.arrived
	}
	want(2, 0)
	for _, device := range []string{"second", "third", "fourth"} {
		h.start(t, keys[0], device)
	}
	h.AwaitQueued(licensing.LicenseRef(keys[0]), 3)
	want(2, 3)
	h.letGo()
	h.group.Wait()
	for h.metrics.Mailboxes.Value() > 0 { // a mailbox ends shortly after its last answer
		runtime.Gosched()
	}
	want(0, 0)
}

// TestChorePanics: a chore that panics counts as failed, other chores still run, and the chore runs again at its next
// time.
func TestChorePanics(t *testing.T) {
	t.Parallel()
	m := metrics.New(prometheus.NewRegistry(), "test", "", "")
	n := nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) { c.Metrics = m })
	ctx, cancel := context.WithCancel(nodetest.Context(t))
	passes, others := 0, 0
	n.Sweep(ctx, service.Chore{Label: "poor", Once: func(context.Context) error {
		if passes++; passes == 1 {
			panic("a bug")
		}
		return nil
	}}, service.Chore{Label: "other", Once: func(ctx context.Context) error {
		if others++; others == 2 {
			cancel()
		}
		return ctx.Err()
	}})
	if passes != 2 || others != 2 {
		t.Errorf("%d passes, and %d of the other chore", passes, others)
	}
	if got := testutil.ToFloat64(m.Panics); got != 1 {
		t.Errorf("%v panics are counted", got)
	}
	if got := testutil.ToFloat64(m.Sweeps.WithLabelValues("poor", "failed")); got != 1 {
		t.Errorf("%v passes have failed", got)
	}
}
