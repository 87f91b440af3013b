package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// nodeGroup is a group of nodes on one store that reach each other without a network, and the faults of their hops.
type nodeGroup struct {
	t     *testing.T
	mu    sync.Mutex
	nodes map[store.Incarnation]*service.Service
	hops  atomic.Int32 // that have arrived

	open func(*testing.T) *kv.Store // opens a node's store

	still   atomic.Pointer[time.Time] // the time by which nodes yield licenses; nil: the real time
	stopped atomic.Bool               // nodes reach no other node
	reached atomic.Int32              // calls of Reach that succeeded

	// send replaces the sending of a hop, if it is set; there sends the hop.
	send func(to store.Incarnation, hop node.Hop, there func() (node.HopAnswer, error)) (node.HopAnswer, error)
}

func newNodeGroup(t *testing.T) *nodeGroup {
	return &nodeGroup{t: t, nodes: make(map[store.Incarnation]*service.Service), open: nodetest.OpenStore}
}

// join adds a node with a connection to the store of its own.
func (c *nodeGroup) join(change ...func(*service.Config)) (*service.Service, *kv.Store) {
	store := c.open(c.t)
	n := nodetest.New(c.t, store, append([]func(*service.Config){func(cfg *service.Config) {
		cfg.Peers, cfg.Self = c, store.Incarnation()
		cfg.HopMargin = 20 * time.Millisecond
	}}, change...)...)
	n.YieldByClock(c.now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[store.Incarnation()] = n
	return n, store
}

// standStill stops the time by which nodes yield licenses, so that a license stays yielded on a slow machine. Only pass
// moves this time then.
func (c *nodeGroup) standStill() { c.still.Store(new(time.Now())) }

// pass moves the time that standStill has stopped, and returns the new time.
func (c *nodeGroup) pass(d time.Duration) time.Time {
	for {
		before := c.still.Load()
		if after := before.Add(d); c.still.CompareAndSwap(before, &after) {
			return after
		}
	}
}

func (c *nodeGroup) now() time.Time {
	if at := c.still.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (c *nodeGroup) Reach(context.Context, store.Incarnation) error {
	if c.stopped.Load() {
		return errors.New("no sign of life")
	}
	c.reached.Add(1)
	return nil
}

func (c *nodeGroup) Send(_ context.Context, to store.Incarnation, hop node.Hop) (node.HopAnswer, error) {
	c.mu.Lock()
	n := c.nodes[to]
	c.mu.Unlock()
	if n == nil {
		return node.HopAnswer{}, fmt.Errorf("%w: there is no such node", node.ErrNotTaken)
	}
	there := func() (node.HopAnswer, error) {
		c.hops.Add(1)
		return n.Execute(hop)
	}
	if c.send != nil {
		return c.send(to, hop, there)
	}
	return there()
}

// yields makes a node yield a license to another one, by losing swaps to it.
func yields(t *testing.T, c *nodeGroup, from, to *service.Service, key licensing.LicenseKey) {
	t.Helper()
	for i := 0; c.hops.Load() == 0; i++ {
		if i == 100 {
			t.Fatal("no command has hopped after 100 swaps that must have been lost")
		}
		// The memory of one node is out of date after the other node has written.
		nodetest.MustActivate(t, to, key, fmt.Sprint("of-owner-", i))
		var group sync.WaitGroup
		for j := range 4 {
			group.Go(func() { nodetest.MustActivate(t, from, key, fmt.Sprint("of-other-", i, "-", j)) })
		}
		group.Wait()
	}
}

// yielding returns two nodes: other sends its commands for the license to owner.
func yielding(t *testing.T) (c *nodeGroup, owner, other *service.Service, key licensing.LicenseKey) {
	c = newNodeGroup(t)
	c.standStill()
	owner, _ = c.join()
	other, _ = c.join(eager)
	key = nodetest.Grant(t, owner, 0)
	yields(t, c, other, owner, key)
	return c, owner, other, key
}

// eager makes a node yield at its first loss.
func eager(cfg *service.Config) { cfg.YieldAfter = 1 }

// TestCommandsHop: a node that keeps losing sends its commands to the node that wins, and the callers get the answers
// of that node.
func TestCommandsHop(t *testing.T) {
	c, _, other, key := yielding(t)

	activate := licensing.Activate{
		Target: licensing.Target{Key: key}, Device: "a device", Name: "a name", Named: true,
	}
	bound, err := other.Activate(nodetest.Context(t), activate)
	nodetest.WantError(t, err, nil)
	if bound.Device.ID != "a device" || bound.Device.BoundAt.IsZero() || bound.License.Key != key {
		t.Errorf("the answer is %+v", bound)
	}
	again, err := other.Activate(nodetest.Context(t), activate)
	nodetest.WantError(t, err, nil)
	if again.Device.Name != "a name" || !again.Device.BoundAt.Equal(bound.Device.BoundAt) ||
		again.License.CurrentDevices != bound.License.CurrentDevices {
		t.Errorf("the answer is %+v, and before %+v", again, bound)
	}
	removed, err := other.RemoveDevice(nodetest.Context(t),
		licensing.RemoveDevice{Target: licensing.Target{Key: key, Caller: nodetest.Owner}, Device: "a device"})
	nodetest.WantError(t, err, nil)
	if !removed.Removed || removed.License.CurrentDevices != bound.License.CurrentDevices-1 {
		t.Errorf("the answer is %+v", removed)
	}
	_, err = other.RemoveDevice(nodetest.Context(t), licensing.RemoveDevice{Target: licensing.Target{Key: key,
		Caller: nodetest.NewOwner(licensing.Test)}, Device: "a device"})
	nodetest.WantError(t, err, licensing.ErrLicenseNotFound)
	if got := c.hops.Load(); got < 4 {
		t.Errorf("%d hops", got)
	}
}

// TestNothingHopsAlone: nodes that write to licenses of their own never hop.
func TestNothingHopsAlone(t *testing.T) {
	c := newNodeGroup(t)
	one, _ := c.join(eager)
	two, _ := c.join(eager)
	var group sync.WaitGroup
	for i, n := range []*service.Service{one, two} {
		for j := range 10 {
			group.Go(func() {
				key := nodetest.Grant(t, n, 0)
				for k := range 10 {
					nodetest.MustActivate(t, n, key, fmt.Sprint(i, j, k))
				}
			})
		}
	}
	group.Wait()
	if got := c.hops.Load(); got != 0 {
		t.Errorf("%d hops", got)
	}
}

// TestHopsNotTaken: the node runs its commands itself if another node does not take them, however the sender learns
// this.
func TestHopsNotTaken(t *testing.T) {
	for _, x := range []struct {
		name string
		send func(store.Incarnation, node.Hop, func() (node.HopAnswer, error)) (node.HopAnswer, error)
		do   func(owner *service.Service)
	}{
		{name: "dead", send: func(store.Incarnation, node.Hop, func() (node.HopAnswer, error)) (node.HopAnswer, error) {
			return node.HopAnswer{}, fmt.Errorf("%w: connection refused", node.ErrNotTaken)
		}},
		{name: "draining", do: (*service.Service).StopIntake},
		{name: "leaving", do: (*service.Service).Leave},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			c, owner, other, key := yielding(t)
			if c.send = x.send; x.do != nil {
				x.do(owner)
			}
			_, err := nodetest.Activate(nodetest.Context(t), other, key, "a device")
			nodetest.WantError(t, err, nil)
			if _, ids := nodetest.Devices(t, other, key); !ids["a device"] {
				t.Error("the device is not bound")
			}
		})
	}
}

// TestFullNodeTakesHops: a full node refuses no hop: the sender would run the commands itself and contend with the
// commands that wait here.
func TestFullNodeTakesHops(t *testing.T) {
	store := nodetest.OpenStore(t)
	key := nodetest.Grant(t, nodetest.New(t, store), 0)
	now := time.Now()
	n := nodetest.New(t, store, func(cfg *service.Config) { cfg.Clock = func() time.Time { return now } })
	n.Admit(1, 0, 1)
	_, err := nodetest.Activate(nodetest.Context(t), n, key, "own")
	nodetest.WantError(t, err, licensing.ErrOverloaded)
	hop := node.Hop{
		License:  key.ID(),
		Commands: []licensing.Command{licensing.Activate{Target: licensing.Target{Key: key}, Device: "by a hop"}},
		Over:     time.Now().Add(10 * time.Second),
	}
	answer, err := n.Execute(hop)
	nodetest.WantError(t, err, nil)
	nodetest.WantError(t, answer.Answers[0].Err, nil)
	if n.UnderWay() != 0 || n.Hopped() != 0 {
		t.Errorf("%d are under way, and %d hops", n.UnderWay(), n.Hopped())
	}
}

// TestHopsInDoubt: if the outcome of hopped commands is open, no node runs them again, and their callers get "outcome
// unknown" at their deadline and not before.
func TestHopsInDoubt(t *testing.T) {
	lie := errors.New("connection reset")
	for _, x := range []struct {
		name string
		send func(there func() (node.HopAnswer, error)) (node.HopAnswer, error)
		run  bool // whether the other node ran the command
	}{
		{"the answer is lost", func(there func() (node.HopAnswer, error)) (node.HopAnswer, error) {
			_, _ = there()
			return node.HopAnswer{}, lie
		}, true},
		{"the request is lost", func(func() (node.HopAnswer, error)) (node.HopAnswer, error) {
			return node.HopAnswer{}, lie
		}, false},
		{"too few answers", func(there func() (node.HopAnswer, error)) (node.HopAnswer, error) {
			_, _ = there()
			return node.HopAnswer{}, nil
		}, true},
		{"too many answers", func(there func() (node.HopAnswer, error)) (node.HopAnswer, error) {
			answer, err := there()
			answer.Answers = append(answer.Answers, node.Answer{})
			return answer, err
		}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			c, owner, other, key := yielding(t)
			sent := make(chan struct{}, 1)
			c.send = func(_ store.Incarnation, _ node.Hop, there func() (node.HopAnswer, error)) (node.HopAnswer,
				error) {
				answer, err := x.send(there)
				select {
				case sent <- struct{}{}:
				default:
				}
				return answer, err
			}
			const patience = 3 * time.Second // enough for a slow machine to send the hop
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := nodetest.Activate(ctx, other, key, "in doubt")
				ended <- err
			}()
			select {
			case <-sent:
			case err := <-ended:
				t.Fatalf("the command did not hop: the license was not yielded any more: %v", err)
			}
			// The mailbox goes on meanwhile, and here.
			nodetest.MustActivate(t, other, key, "another device")
			nodetest.WantError(t, <-ended, licensing.ErrOutcomeUnknown)
			if took := time.Since(began); took < patience {
				t.Errorf("an answer after %v, when the hop may not have been over yet", took)
			}
			if _, ids := nodetest.Devices(t, owner, key); ids["in doubt"] != x.run || !ids["another device"] {
				t.Errorf("bound: in doubt %v, want %v; another device %v", ids["in doubt"], x.run,
					ids["another device"])
			}
		})
	}
}

// TestSlowHop: if a hop takes long and the other node is alive, later commands wait for the hop.
func TestSlowHop(t *testing.T) {
	const later = 10
	c, _, other, key := yielding(t)
	sent := make(chan struct{}, 100)
	takeLong := sync.OnceFunc(func() {
		other.AwaitQueuedOut(licensing.LicenseRef(key), later)
		for c.reached.Load() < 3 {
			time.Sleep(time.Millisecond)
		}
	})
	c.send = func(_ store.Incarnation, _ node.Hop, there func() (node.HopAnswer, error)) (node.HopAnswer, error) {
		sent <- struct{}{}
		takeLong()
		return there()
	}
	before := c.hops.Load()
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, other, key, "first") })
	<-sent
	for i := range later {
		group.Go(func() { nodetest.MustActivate(t, other, key, fmt.Sprint("later-", i)) })
	}
	group.Wait()
	if got := c.hops.Load() - before; got != 2 {
		t.Errorf("%d hops, want one for the first and one for all that came later", got)
	}
}

// TestHopHangs: if a hop hangs because the other node is dead or stopped, later commands do not wait for the hop.
func TestHopHangs(t *testing.T) {
	c, owner, other, key := yielding(t)
	c.stopped.Store(true)
	sent, hang := make(chan struct{}, 100), make(chan struct{})
	c.send = func(store.Incarnation, node.Hop, func() (node.HopAnswer, error)) (node.HopAnswer, error) {
		sent <- struct{}{}
		<-hang
		return node.HopAnswer{}, errors.New("no answer")
	}
	ctx, giveUp := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan error, 1)
	go func() {
		_, err := nodetest.Activate(ctx, other, key, "first")
		ended <- err
	}()
	<-sent
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() { nodetest.MustActivate(t, other, key, fmt.Sprint("later-", i)) })
	}
	group.Wait()
	giveUp()
	nodetest.WantError(t, <-ended, licensing.ErrOutcomeUnknown)
	close(hang)
	if err := other.Drain(nodetest.Context(t)); err != nil {
		t.Error(err)
	}
	if _, ids := nodetest.Devices(t, owner, key); ids["first"] || !ids["later-9"] {
		t.Errorf("bound: %v", ids)
	}
}

// TestHopsEndInTime: a node begins no command of a hop after the moment at which the sender considers the hop over,
// even before a timer fires.
func TestHopsEndInTime(t *testing.T) {
	key := nodetest.Grant(t, nodetest.New(t, nodetest.OpenStore(t)), 0)
	store, arrived, open, _ := gated(nodetest.OpenStore(t))
	n := nodetest.New(t, store)
	var group sync.WaitGroup
	group.Go(func() { nodetest.MustActivate(t, n, key, "in front") })
	<-arrived
	hop := node.Hop{
		License:  key.ID(),
		Commands: []licensing.Command{licensing.Activate{Target: licensing.Target{Key: key}, Device: "late"}},
	}
	answer, err := node.HopAnswer{}, node.ErrNotTaken
	for errors.Is(err, node.ErrNotTaken) { // on a slow machine, the hop may be over before it begins
		hop.Over = time.Now().Add(50 * time.Millisecond)
		answer, err = n.Execute(hop) // behind the one in front
	}
	if err != nil {
		t.Fatal(err)
	}
	nodetest.WantError(t, answer.Answers[0].Err, licensing.ErrUnavailable)
	close(open)
	group.Wait()
	if _, ids := nodetest.Devices(t, n, key); ids["late"] || !ids["in front"] {
		t.Errorf("bound: %v", ids)
	}
	if _, err := n.Execute(hop); !errors.Is(err, node.ErrNotTaken) {
		t.Errorf("a hop that is over: %v", err)
	}
	hop.Over = time.Now().Add(time.Minute)
	for len(hop.Commands) <= node.MaxHop {
		hop.Commands = append(hop.Commands, hop.Commands[0])
	}
	if _, err := n.Execute(hop); !errors.Is(err, node.ErrNotTaken) {
		t.Errorf("a hop of too many commands: %v", err)
	}
}

// TestPrefixesOverAHop: commands with the license's own prefix and with another prefix hop together, and each gets its
// own answer.
func TestPrefixesOverAHop(t *testing.T) {
	c, owner, other, key := yielding(t)
	before := c.hops.Load()
	answer, err := owner.Execute(node.Hop{
		License: key.ID(),
		Commands: []licensing.Command{
			licensing.Activate{Target: licensing.Target{Key: key}, Device: "a"},
			licensing.Activate{Target: licensing.Target{Key: key.ID().Key("OTHER")}, Device: "b"},
			licensing.Activate{Target: licensing.Target{Key: key}, Device: "c"},
		},
		Over: time.Now().Add(10 * time.Second),
	})
	nodetest.WantError(t, err, nil)
	for i, want := range []error{nil, licensing.ErrLicenseNotFound, nil} {
		nodetest.WantError(t, answer.Answers[i].Err, want)
	}
	_, err = nodetest.Activate(nodetest.Context(t), other, key.ID().Key("OTHER"), "d")
	nodetest.WantError(t, err, licensing.ErrLicenseNotFound)
	if c.hops.Load() == before {
		t.Error("the command did not hop")
	}
	_, ids := nodetest.Devices(t, owner, key)
	if !ids["a"] || !ids["c"] || ids["b"] || ids["d"] {
		t.Errorf("bound are %v", ids)
	}
}

// TestHopsGoNoFurther: a node that yields a license runs what others send it.
func TestHopsGoNoFurther(t *testing.T) {
	c, _, other, key := yielding(t)
	before := c.hops.Load()
	answer, err := other.Execute(node.Hop{
		License:  key.ID(),
		Commands: []licensing.Command{licensing.Activate{Target: licensing.Target{Key: key}, Device: "by a hop"}},
		Over:     time.Now().Add(10 * time.Second),
	})
	nodetest.WantError(t, err, nil)
	nodetest.WantError(t, answer.Answers[0].Err, nil)
	if got := c.hops.Load(); got != before {
		t.Errorf("%d more hops", got-before)
	}
}

// TestHopsUnderLoad: nodes contend for a license under full load. They bind no device beyond the limit and lose none,
// and in the end one node does nearly all the writing.
func TestHopsUnderLoad(t *testing.T) {
	const nodes, callers, each, limit = 3, 8, 30, 500
	c := newNodeGroup(t)
	var list []*service.Service
	for range nodes {
		n, _ := c.join()
		list = append(list, n)
	}
	key := nodetest.Grant(t, list[0], limit)
	var mu sync.Mutex
	bound := map[string]bool{}
	var refused atomic.Int32
	var group sync.WaitGroup
	for i, n := range list {
		for j := range callers {
			group.Go(func() {
				for k := range each {
					device := fmt.Sprint(i, "-", j, "-", k)
				again:
					switch _, err := nodetest.Activate(nodetest.Context(t), n, key, device); {
					case err == nil:
						mu.Lock()
						bound[device] = true
						mu.Unlock()
					case errors.Is(err, &licensing.Error{Reason: licensing.ReasonDeviceLimitReached}):
						refused.Add(1)
					case errors.Is(err, licensing.ErrUnavailable): // it lost twelve times
						goto again
					default:
						t.Errorf("%s: %v", device, err)
					}
				}
			})
		}
	}
	group.Wait()
	count, ids := nodetest.Devices(t, list[0], key)
	if count != limit || len(ids) != limit || len(bound) != limit || int(refused.Load()) != nodes*callers*each-limit {
		t.Errorf("%d by the license, %d by its devices, %d by those answers, %d refused", count, len(ids), len(bound),
			refused.Load())
	}
	for id := range bound {
		if !ids[id] {
			t.Errorf("the answer for %s was success", id)
		}
	}
	if c.hops.Load() == 0 {
		t.Error("no command has hopped")
	}
}
