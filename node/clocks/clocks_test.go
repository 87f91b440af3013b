package clocks

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node/store"
)

// bench is some nodes on one store. Its time passes only in rounds and passes.
type bench struct {
	t       *testing.T
	elapsed time.Duration
	nodes   []*benchNode
	full    bool  // the store takes no stamps
	created int64 // registrations
}

type benchNode struct {
	*Comparison
	ahead time.Duration // of the true time
	gone  bool
	// silent: the node has died, and its registration has not ended.
	silent bool
	// unregistered: the node reads the stamps and stores none.
	unregistered bool
	sleeps       time.Duration // after the node's next read, before the comparison
	slept        time.Duration // in all; the monotonic clock stood still
	stamp        store.Stamp   // as it is stored
	metrics      *metrics.Metrics
}

// newBench makes nodes whose clocks are ahead by some times.
func newBench(t *testing.T, ahead ...time.Duration) *bench {
	b := &bench{t: t}
	for _, by := range ahead {
		b.add(by)
	}
	return b
}

func (b *bench) add(ahead time.Duration) *benchNode {
	n := &benchNode{ahead: ahead, metrics: metrics.New(prometheus.NewRegistry(), "", "", "")}
	id := store.Incarnation{byte(len(b.nodes) + 1)}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b.created++
	n.stamp = store.Stamp{Node: id, Created: b.created}
	n.Comparison = New(Config{Self: id, Metrics: n.metrics, Log: zerolog.Nop(),
		Clock: func() (time.Time, time.Duration) { return start.Add(b.elapsed + n.ahead), b.elapsed - n.slept }})
	b.nodes = append(b.nodes, n)
	return n
}

// every is how often nodes store their stamps.
const every = 500 * time.Millisecond

// rounds lets every pass so many times. Each time each node stores its stamp and reads all others.
func (b *bench) rounds(count int) {
	for range count {
		for _, n := range b.nodes {
			b.elapsed += every / time.Duration(len(b.nodes))
			if n.gone || n.silent {
				continue
			}
			at, again := n.Stamp()
			again = again && !b.full
			if again {
				n.Leave()
				b.created++
				n.stamp.Created, n.stamp.Version = b.created, 0
			}
			if !b.full && !n.unregistered && !again {
				n.stamp.At, n.stamp.Version = at, n.stamp.Version+1
			}
			var read []store.Stamp
			for _, other := range b.nodes {
				if !other.gone && !other.unregistered && other.stamp.Version > 0 {
					read = append(read, other.stamp)
				}
			}
			b.elapsed, n.slept, n.sleeps = b.elapsed+n.sleeps, n.slept+n.sleeps, 0
			n.Compare(read)
		}
	}
}

// want demands of each node: s, serves and acts by time; u, serves only; r, refuses.
func (b *bench) want(when, states string) {
	b.t.Helper()
	got := ""
	for _, n := range b.nodes {
		refusal, untrusted := n.Refusal(), n.Untrusted()
		switch {
		case n.gone:
			got += "-"
		case refusal != nil && untrusted != nil:
			got += "r"
			if licensing.ReasonOf(refusal) != licensing.ReasonUnavailable {
				b.t.Errorf("refuses with %v", refusal)
			}
		case untrusted != nil:
			got += "u"
			if !IsUntrusted(untrusted) || licensing.ReasonOf(untrusted) != licensing.ReasonUnavailable {
				b.t.Errorf("untrusted with %v", untrusted)
			}
		case refusal == nil:
			got += "s"
		default:
			got += "?"
		}
	}
	if got != states {
		b.t.Errorf("%s the nodes are %s, want %s", when, got, states)
	}
}

// wantReady demands of each node whether it is ready.
func (b *bench) wantReady(when string, ready ...bool) {
	b.t.Helper()
	for i, n := range b.nodes {
		if got := n.Unready() == nil; got != ready[i] {
			b.t.Errorf("%s node %d is ready: %v", when, i, got)
		}
	}
}

// enough is how many rounds decide.
const enough = 5

func TestMajority(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead []time.Duration
		want  string
	}{
		{"alone", []time.Duration{9 * day}, "s"},
		{"two agree", []time.Duration{0, time.Second}, "ss"},
		{"two differ", []time.Duration{0, 9 * day}, "uu"},
		{"three agree", []time.Duration{0, time.Second, -time.Second}, "sss"},
		{"one of three is days ahead", []time.Duration{0, 9 * day, 0}, "srs"},
		{"one of three is days behind", []time.Duration{-9 * day, 0, 0}, "rss"},
		{"one of three is seconds ahead", []time.Duration{0, 0, 8 * time.Second}, "ssr"},
		{"three differ", []time.Duration{0, day, -day}, "uuu"},
		{"two of five are wrong", []time.Duration{0, day, 0, -day, 0}, "srsrs"},
		{"three of five are wrong", []time.Duration{0, day, 0, -day, 2 * day}, "uuuuu"},
		{"a century behind", []time.Duration{0, 0, -100 * 365 * day}, "ssr"},
	} {
		b := newBench(t, c.ahead...)
		b.rounds(enough + int(trustFor/every)) // the clock of the first node may be wrong
		b.want(c.name, c.want)
	}
}

// TestFirstSeconds: until the clocks are compared, a node serves and does not act by time.
func TestFirstSeconds(t *testing.T) {
	b := newBench(t, 0, 9*day, 0)
	b.want("at first", "uuu")
	b.wantReady("at first", false, false, false)
	b.rounds(1)
	b.want("after a round", "suu") // the first saw no other
	b.wantReady("after a round", true, false, false)
	b.rounds(enough)
	b.want("later", "sru") // the third has seen a wrong clock from the first
	b.rounds(int(trustFor / every))
	b.want("seconds later", "srs")
	b.wantReady("later", true, false, true)
	for i, state := range []string{"agrees", "differs", "agrees"} {
		for _, other := range []string{"agrees", "differs", "undecided"} {
			want := 0.0
			if other == state {
				want = 1
			}
			if got := testutil.ToFloat64(b.nodes[i].metrics.ClockState.WithLabelValues(other)); got != want {
				t.Errorf("node %d: %s is %v", i, other, got)
			}
		}
	}
	for i, want := range []time.Duration{9 * day, -9 * day, 9 * day} {
		got := testutil.ToFloat64(b.nodes[i].metrics.ClockDifference)
		if off := got - want.Seconds(); off < -3 || off > 3 {
			t.Errorf("node %d: a difference of %v s, want about %v s", i, got, want.Seconds())
		}
	}
	b.add(0)
	b.rounds(1)
	b.want("beside a new node", "srsu")
	b.rounds(enough + int(trustFor/every))
	b.want("beside a known node", "srss")
}

// TestReady: a lone node is ready at once, and a node whose clock can't be compared some seconds after its start.
func TestReady(t *testing.T) {
	b := newBench(t, 0)
	b.wantReady("at first", false)
	b.rounds(1)
	b.wantReady("alone", true)
	b = newBench(t, 0, 9*day)
	b.elapsed = startGrace - time.Millisecond
	b.wantReady("not compared", false, false)
	b.elapsed = startGrace
	b.wantReady("not compared for long", true, true)
	b.rounds(enough)
	b.want("two that differ", "uu")
	b.wantReady("two that differ", true, true)
	var none *Comparison
	if none.Unready() != nil {
		t.Error("nil is not ready")
	}
}

// TestStep: a node notices at once that its clock was set, and a cluster decides within seconds.
func TestStep(t *testing.T) {
	b := newBench(t, 0, 0, 0)
	b.rounds(enough)
	b.nodes[0].ahead = 9 * day
	b.want("as soon as it is set", "rss")
	b.rounds(1)
	b.want("a second later", "rss")
	b.rounds(enough)
	b.want("ahead", "rss")
	b.nodes[0].ahead = 0
	b.rounds(1)
	b.want("just set right", "rss")
	b.rounds(enough)
	b.want("right again", "sss")
	for range 20 { // a clock that does not come to rest
		b.nodes[2].ahead += day
		b.want("set again", "ssr")
		b.rounds(2)
		b.want("set again, two seconds ago", "ssr")
	}
	b.nodes[2].ahead = time.Second
	b.rounds(enough + 1)
	b.want("at rest", "sss")
	for _, n := range b.nodes {
		n.ahead += 8 * time.Hour // all machines have slept
	}
	b.rounds(int(trustFor/every) + enough) // all have registered again
	b.want("after a sleep", "sss")
}

// TestSleepOfAllMachines: all machines sleep during a read of one node. Their stamps from before the sleep prove
// nothing after the sleep, although the monotonic clock has not moved.
func TestSleepOfAllMachines(t *testing.T) {
	wall, elapsed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Duration(0)
	c := New(Config{Self: store.Incarnation{9}, Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""),
		Log: zerolog.Nop(), Clock: func() (time.Time, time.Duration) { return wall, elapsed }})
	pass := func(d time.Duration) { wall, elapsed = wall.Add(d), elapsed+d }
	stamps := func(version int64) (list []store.Stamp) {
		for _, node := range []byte{1, 2, 9} {
			list = append(list, store.Stamp{Node: store.Incarnation{node}, At: wall, Created: 1, Version: version})
		}
		return list
	}
	for version := range int64(enough) {
		c.Stamp()
		c.Compare(stamps(version + 1))
		pass(time.Second)
	}
	if err := c.Untrusted(); err != nil {
		t.Fatal(err)
	}
	c.Stamp()
	read := stamps(enough + 1)
	pass(2 * time.Second)
	later := stamps(enough + 3)
	later[2].Created = 2 // the node registers again after the sleep
	wall = wall.Add(8 * time.Hour)
	c.Compare(read)
	c.Stamp()
	c.Compare(later)
	if got := c.state.Load().verdict; got != undecided {
		t.Errorf("after the sleep the verdict is %s", got)
	}
}

// TestShortSleep: a machine that sleeps for less than the tolerance does not lead its node to wrong bounds.
func TestShortSleep(t *testing.T) {
	b := newBench(t, 0, 0, 0)
	b.rounds(enough)
	n := b.nodes[0]
	for range 20 {
		n.sleeps = DefaultTolerance - 100*time.Millisecond
		for range enough {
			b.rounds(1)
			for _, other := range n.evidence.bounds(n.state.Load().zero) {
				if other.near() > 0 {
					t.Fatalf("a clock that is right is proven to differ: %+v", other)
				}
			}
		}
		b.want("after a short sleep", "sss")
	}
}

// TestLone: a lone node can only tell that its clock is behind its own newest stamp.
func TestLone(t *testing.T) {
	b := newBench(t, 0)
	b.rounds(1)
	b.want("alone", "s")
	b.nodes[0].ahead = day
	b.want("as soon as it is set", "r")
	b.rounds(1)
	b.want("set forward", "s")
	b.nodes[0].ahead = day - time.Minute
	b.rounds(1)
	b.want("set back", "u")
	b.rounds(110)
	b.want("not yet where it was", "u")
	b.rounds(20)
	b.want("past its newest stamp", "s")
}

// TestOthersGone: that the others have gone proves no clock right.
func TestOthersGone(t *testing.T) {
	b := newBench(t, 0, 0, 9*day)
	b.rounds(enough)
	b.want("three", "ssr")
	b.nodes[0].gone = true
	b.rounds(enough)
	b.want("two", "-uu")
	b.nodes[1].gone = true
	b.rounds(enough)
	b.want("one, which was wrong", "--u")
	b.nodes[2].sleeps = 3 * time.Second
	b.rounds(enough)
	b.want("after a sleep", "--u")
	b.nodes[2].ahead = 0
	b.rounds(enough)
	b.want("set right", "--u") // its newest stamp is days later
	b.add(0)
	b.rounds(enough)
	b.want("with another", "--ss")

	b = newBench(t, 0, 0)
	b.rounds(enough)
	b.nodes[0].gone = true
	b.rounds(1)
	b.want("one, which was right", "-s")
}

// TestStoreFails: neither a full store nor an unreachable store makes a node refuse requests for its clock alone.
func TestStoreFails(t *testing.T) {
	b := newBench(t, 0, 0, 9*day)
	b.rounds(enough)
	b.full = true
	b.rounds(100)
	b.want("full", "ssr")
	b.nodes[0].ahead = time.Minute
	b.rounds(3)
	b.want("full, and set", "rsr")
	b.rounds(20)
	b.want("full, and set some time ago", "usr")
	b.full = false
	b.rounds(enough)
	b.want("full no longer", "uuu") // three clocks that differ

	b = newBench(t, 0, 0, 0)
	b.rounds(enough)
	b.elapsed += trustFor - time.Second
	b.want("cut off for a while", "sss")
	b.elapsed += 2 * time.Second
	b.want("cut off for long", "uuu")
	b.elapsed += stepGrace
	b.nodes[0].ahead = day
	b.want("cut off and set", "uuu")
	b.rounds(enough)
	b.want("back", "rss")
}

// TestNoComparison: nil trusts the clock.
func TestNoComparison(t *testing.T) {
	var none *Comparison
	if none.Refusal() != nil || none.Untrusted() != nil {
		t.Error("nil does not trust the clock")
	}
	wall, elapsed := System()()
	if time.Since(wall) > time.Minute || elapsed < 0 {
		t.Errorf("the machine's clock is %v, %v after its start", wall, elapsed)
	}
}
