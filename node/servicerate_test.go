package node_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
)

// world is a simulated store with a clock of its own. It serves up to 512 commands in a round, and each round takes the
// time round. A queue and the admission of a node stand before the store.
type world struct {
	owners  int // how many owners send commands, by turns
	came    int // how many commands
	clock   still
	gate    *node.Admission
	round   time.Duration // how long a round takes
	ready   time.Duration // when the current round ends
	inHand  []waiter      // the commands of the current round
	queue   []waiter
	served  int
	refused int
	longest time.Duration // longest wait of a served command in the queue
	credit  float64       // of arrivals
}

// waiter is a command that was let in.
type waiter struct {
	owner licensing.Owner
	came  time.Duration
}

func newWorld(round time.Duration, owners int) *world {
	w := &world{round: round, owners: owners}
	w.gate = node.NewAdmission(w.clock.now, metrics.New(prometheus.NewRegistry(), "test", "", ""))
	return w
}

const tick = time.Millisecond

// patient is a context whose deadline is always four seconds ahead, however slowly a test runs.
type patient struct{ context.Context }

func (patient) Deadline() (time.Time, bool) { return time.Now().Add(4 * time.Second), true }

// run lets commands come at a rate for a span.
func (w *world) run(t *testing.T, rate float64, span time.Duration) {
	t.Helper()
	for ; span > 0; span -= tick {
		w.clock.move(tick)
		now := time.Duration(w.clock.nanos.Load())
		for w.credit += rate * tick.Seconds(); w.credit >= 1; w.credit-- {
			w.came++
			owner := licensing.Owner{AccountID: strconv.Itoa(w.came % w.owners)}
			switch err := w.gate.Enter(patient{context.Background()}, owner); {
			case err == nil:
				w.queue = append(w.queue, waiter{owner, now})
			case errors.Is(err, licensing.ErrOverloaded):
				w.refused++
			default:
				t.Fatal(err)
			}
		}
		if now < w.ready {
			continue
		}
		for _, c := range w.inHand {
			w.gate.Leave(c.owner, nil)
		}
		w.served += len(w.inHand)
		hand := min(len(w.queue), 512)
		for _, c := range w.queue[:hand] {
			w.longest = max(w.longest, now-c.came)
		}
		w.inHand, w.queue = w.queue[:hand], w.queue[hand:]
		w.ready = now + w.round
	}
}

// count resets the counts.
func (w *world) count() { w.served, w.refused, w.longest = 0, 0, 0 }

// TestOverloadControl runs the admission against stores of all speeds, with a simulated clock. The admission must cost
// no throughput, keep the queue as short as configured, and follow a store that slows down or recovers.
func TestOverloadControl(t *testing.T) {
	const alone, many = 1, 1000
	for _, c := range []struct {
		round  time.Duration // 20,000 to 1,000 a second
		owners int
		delay  time.Duration // that is allowed, twice: an owner alone gets half of the limit
	}{
		{25, alone, 200}, {100, alone, 200}, {500, alone, 200},
		{25, many, 400}, {100, many, 400}, {500, many, 400},
	} {
		round, delay := c.round*time.Millisecond, c.delay*time.Millisecond
		t.Run(fmt.Sprintf("%v, %d owners", round, c.owners), func(t *testing.T) {
			w := newWorld(round, c.owners)
			capacity := 512 / round.Seconds()

			// Below its capacity nothing is refused.
			w.run(t, 0.9*capacity, 5*time.Second)
			if w.refused > 0 {
				t.Errorf("%d were refused at nine tenths of the capacity", w.refused)
			}
			w.run(t, 3*capacity, 3*time.Second)
			w.count()
			w.run(t, 3*capacity, 5*time.Second)
			if got := float64(w.served) / 5; got < 0.95*capacity {
				t.Errorf("%.0f a second are served at three times too much, of %.0f", got, capacity)
			}
			// The rate is not exact: commands are served in rounds.
			if most := delay + delay/(100*time.Millisecond)*round; w.longest > most {
				t.Errorf("one command has waited %v, want at most %v", w.longest, most)
			}
			w.count()
			w.run(t, 0.5*capacity, time.Second) // what had piled up is served
			w.count()
			w.run(t, 0.5*capacity, 5*time.Second)
			if w.refused > 0 {
				t.Errorf("%d were refused after the overload", w.refused)
			}
		})
	}
}

// TestStoreSlowsDown: each sync of the disk takes half a second more from some moment on.
func TestStoreSlowsDown(t *testing.T) {
	w := newWorld(25*time.Millisecond, 1)
	w.run(t, 18_000, 5*time.Second)
	w.round = 500 * time.Millisecond
	w.run(t, 18_000, 3*time.Second)
	w.count()
	w.run(t, 18_000, 10*time.Second)
	if w.served < 9*1024 {
		t.Errorf("a store that serves 1024 a second has served %d in 10 s", w.served)
	}
	if w.longest > 1200*time.Millisecond {
		t.Errorf("one command has waited %v", w.longest)
	}
	w.round = 25 * time.Millisecond
	w.run(t, 18_000, time.Second)
	w.count()
	w.run(t, 18_000, 5*time.Second)
	if w.refused > 0 {
		t.Errorf("%d of %d were refused after the disk had recovered", w.refused, w.refused+w.served)
	}
}

// TestDeadStore lets in only the least number of commands, since the store returns nothing but errors.
func TestDeadStore(t *testing.T) {
	w := newWorld(time.Hour, 1)
	w.ready = time.Hour
	w.run(t, 10_000, 2*time.Second)
	for range 512 {
		w.gate.Leave(licensing.Owner{AccountID: "0"}, licensing.ErrOutcomeUnknown)
	}
	if got := w.gate.Limit(); got != 2048 {
		t.Errorf("the node lets in %d commands, want 2048", got)
	}
}

// TestRateOfLittle: an idle node and a clock that is set back do not change the limit, and the node forgets an old
// overload.
func TestRateOfLittle(t *testing.T) {
	w := newWorld(100*time.Millisecond, 1)
	fresh := w.gate.Limit()
	w.run(t, 10, 20*time.Second)
	if got := w.gate.Limit(); got != fresh {
		t.Errorf("the limit of an idle node is %d, of a new one %d", got, fresh)
	}
	w.run(t, 20_000, 3*time.Second)
	low := w.gate.Limit()
	if low > fresh/2 {
		t.Errorf("the limit under overload is %d, of a new node %d", low, fresh)
	}
	w.clock.move(-time.Minute)
	w.ready = -time.Hour
	w.run(t, 10, 10*time.Second)
	if got := w.gate.Limit(); math.Abs(float64(got-fresh)) > 1 {
		t.Errorf("the limit is %d long after an overload, of a new node %d", got, fresh)
	}
}

// BenchmarkAdmission measures the cost of admitting a command, and of refusing a command.
func BenchmarkAdmission(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	newGate := func() *node.Admission {
		return node.NewAdmission(time.Now, metrics.New(prometheus.NewRegistry(), "test", "", ""))
	}
	b.Run("let in", func(b *testing.B) {
		gate := newGate()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := gate.Enter(ctx, nodetest.Owner); err == nil {
					gate.Leave(nodetest.Owner, nil)
				}
			}
		})
	})
	b.Run("refused", func(b *testing.B) {
		gate := newGate()
		for gate.Enter(ctx, nodetest.Owner) == nil {
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if gate.Enter(ctx, nodetest.Owner) == nil {
					b.Error("the command was let in")
				}
			}
		})
	})
}
