package peer_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/peer"
	"licet/node/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's goroutines end some seconds after their server, or never.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// executor answers commands as a test demands.
type executor func(node.Hop) (node.HopAnswer, error)

func (e executor) Execute(hop node.Hop) (node.HopAnswer, error) { return e(hop) }

// bind answers each activation with its device.
func bind(hop node.Hop) (node.HopAnswer, error) {
	var a node.HopAnswer
	for _, cmd := range hop.Commands {
		a.Answers = append(a.Answers, node.Answer{Result: licensing.Result{
			License: licensing.License{Key: hop.License.Key("LIC")}, Device: licensing.Device{ID: cmd.DeviceID()},
		}})
	}
	return a, nil
}

// registry stands in for the store's list of nodes.
type registry struct {
	mu    sync.Mutex
	nodes []store.Registration
	lists int
	err   error
}

func (r *registry) list(context.Context) ([]store.Registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists++
	return append([]store.Registration(nil), r.nodes...), r.err
}

func (r *registry) set(nodes ...store.Registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes = nodes
}

func newRing(t *testing.T) keyring.MasterRing {
	t.Helper()
	var key [keyring.MasterKeySize]byte
	_, _ = rand.Read(key[:])
	master, err := keyring.NewMasterKey("m1", key)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.ParseMasterRing(master.Line())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// serve starts a server on a port of its own.
func serve(
	t *testing.T, self store.Incarnation, ring keyring.MasterRing, e executor,
) (store.Registration, *peer.Server) {
	t.Helper()
	return serveLogging(t, self, ring, e, zerolog.Nop())
}

func serveLogging(
	t *testing.T, self store.Incarnation, ring keyring.MasterRing, e executor, log zerolog.Logger,
) (store.Registration, *peer.Server) {
	t.Helper()
	s, err := peer.NewServer(self, ring, e, metrics.New(prometheus.NewRegistry(), "test", "", ""), log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return s.Registration(listener.Addr().String()), s
}

func newClient(t *testing.T, ring keyring.MasterRing, r *registry) *peer.Client {
	t.Helper()
	c, err := peer.NewClient(ring, r.list, guard.New(nil, zerolog.Nop()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var self = store.Incarnation{1, 2, 3}

func hop(within time.Duration, devices ...string) node.Hop {
	h := node.Hop{Over: time.Now().Add(within)}
	for _, d := range devices {
		target := licensing.Target{Key: h.License.Key("LIC")}
		h.Commands = append(h.Commands, licensing.Activate{Target: target, Device: d})
	}
	return h
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestSend(t *testing.T) {
	ring := newRing(t)
	var over time.Time
	r := &registry{}
	registration, _ := serve(t, self, ring, func(h node.Hop) (node.HopAnswer, error) {
		over = h.Over
		return bind(h)
	})
	r.set(registration)
	c := newClient(t, ring, r)
	began := time.Now()
	for range 3 {
		h := hop(time.Minute, "a", "b")
		got, err := c.Send(testContext(t), self, h)
		if err != nil || len(got.Answers) != 2 || got.Answers[1].Result.Device.ID != "b" {
			t.Fatalf("%+v, %v", got, err)
		}
		// The other side knows the moment by how old it is, and takes it for no later
		// than it is here. Both have one clock in this test.
		if early := h.Over.Sub(over); early < 0 || early > 5*time.Second {
			t.Errorf("over there it is over %v earlier", early)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if took := time.Since(began); r.lists > 1+int(took/time.Second) {
		t.Errorf("the nodes were listed %d times in %v, want once a second at most", r.lists, took)
	}
}

// TestRefusals: whatever is refused, by whatever it is noticed, was not taken.
func TestRefusals(t *testing.T) {
	ring := newRing(t)
	ran := func(h node.Hop) (node.HopAnswer, error) {
		t.Error("commands were run")
		return bind(h)
	}
	registration, _ := serve(t, self, ring, ran)
	elsewhere, _ := serve(t, store.Incarnation{7}, ring, ran)
	busy, _ := serve(t, store.Incarnation{8}, ring, func(node.Hop) (node.HopAnswer, error) {
		return node.HopAnswer{}, errors.Join(node.ErrNotTaken, errors.New("full"))
	})
	otherKey := registration
	otherKey.PublicKey = elsewhere.PublicKey
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // shakes no hands
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	silent := registration
	silent.Address = deaf.Addr().String()
	gone := registration
	gone.Address = "127.0.0.1:1"
	stranger := elsewhere
	stranger.Incarnation = self
	for name, x := range map[string]struct {
		ring keyring.MasterRing
		to   store.Registration
		list error
	}{
		"another master key":         {ring: newRing(t), to: registration},
		"another key of its own":     {ring: ring, to: otherKey},
		"a closed port":              {ring: ring, to: gone},
		"a port that does not speak": {ring: ring, to: silent},
		"another node's address":     {ring: ring, to: stranger},
		"not registered":             {ring: ring, to: elsewhere},
		"no list":                    {ring: ring, to: registration, list: errors.New("the store is away")},
		"full":                       {ring: ring, to: busy},
	} {
		t.Run(name, func(t *testing.T) {
			to := self
			if name == "full" {
				to = x.to.Incarnation
			}
			r := &registry{nodes: []store.Registration{x.to}, err: x.list}
			if _, err := newClient(t, x.ring, r).Send(testContext(t), to, hop(time.Minute, "a")); !errors.Is(err,
				node.ErrNotTaken) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestInDoubt: where the other side has been sent commands and does not answer,
// that is no refusal; and it was sent them once.
func TestInDoubt(t *testing.T) {
	ring := newRing(t)
	var times atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	registration, _ := serve(t, self, ring, func(h node.Hop) (node.HopAnswer, error) {
		if times.Add(1) > 1 {
			panic("a bug")
		}
		cancel() // the sender's time is up
		<-release
		return bind(h)
	})
	c := newClient(t, ring, &registry{nodes: []store.Registration{registration}})
	if _, err := c.Send(ctx, self, hop(time.Minute, "a")); err == nil || errors.Is(err, node.ErrNotTaken) {
		t.Errorf("no answer in time: %v", err)
	}
	close(release)
	if n := times.Load(); n != 1 {
		t.Errorf("run %d times", n)
	}
	if _, err := c.Send(testContext(t), self, hop(time.Minute, "a")); err == nil || errors.Is(err, node.ErrNotTaken) {
		t.Errorf("a panic over there: %v", err)
	}
	if n := times.Load(); n != 2 {
		t.Errorf("run %d times", n)
	}
}

// cut forwards connections to an address until the test cuts them.
type cut struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newCut(t *testing.T, to string) *cut {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cut{Listener: listener}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				return
			}
			c.mu.Lock()
			c.conns = append(c.conns, from, onward)
			c.mu.Unlock()
			group.Go(func() { copyTo(onward, from) })
			group.Go(func() { copyTo(from, onward) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		c.now()
		group.Wait()
	})
	return c
}

func copyTo(to, from net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			to.Close()
			from.Close()
			return
		}
	}
}

// now cuts all connections.
func (c *cut) now() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// TestCutConnections: a connection that is cut while commands are under way leaves them in doubt, and the client does
// not send them again. The client notices a connection that was cut before, and sends nothing on it.
func TestCutConnections(t *testing.T) {
	ring := newRing(t)
	var times atomic.Int32
	running, release := make(chan struct{}, 10), make(chan struct{})
	registration, _ := serve(t, self, ring, func(h node.Hop) (node.HopAnswer, error) {
		times.Add(1)
		running <- struct{}{}
		<-release
		return bind(h)
	})
	way := newCut(t, registration.Address)
	registration.Address = way.Addr().String()
	c := newClient(t, ring, &registry{nodes: []store.Registration{registration}})
	ended := make(chan error)
	go func() {
		_, err := c.Send(testContext(t), self, hop(time.Minute, "a"))
		ended <- err
	}()
	<-running
	way.now()
	if err := <-ended; err == nil || errors.Is(err, node.ErrNotTaken) {
		t.Errorf("cut while it ran: %v", err)
	}
	close(release)
	if _, err := c.Send(testContext(t), self, hop(time.Minute, "a")); err != nil {
		t.Errorf("on a new connection: %v", err)
	}
	<-running
	way.Close() // refuses further connections
	way.now()
	wantNotTaken(t, c)
	if n := times.Load(); n != 2 {
		t.Errorf("run %d times, want 2", n)
	}
}

// wantNotTaken sends hops to a node that has gone until the client knows for certain that a hop was not taken. The
// client notices by itself that its connection is gone; until then, what the client sends there is in doubt.
func wantNotTaken(t *testing.T, c *peer.Client) {
	t.Helper()
	for i := 0; ; i++ {
		_, err := c.Send(testContext(t), self, hop(time.Minute, "a"))
		if errors.Is(err, node.ErrNotTaken) {
			return
		}
		if err == nil || i == 10 {
			t.Fatalf("to a node that has gone: %v", err)
		}
	}
}

// TestNodesComeAndGo: a node that starts anew at the same address is another one.
func TestNodesComeAndGo(t *testing.T) {
	ring := newRing(t)
	one, first := serve(t, self, ring, bind)
	r := &registry{nodes: []store.Registration{one}}
	c := newClient(t, ring, r)
	if _, err := c.Send(testContext(t), self, hop(time.Minute, "a")); err != nil {
		t.Fatal(err)
	}
	if err := first.Shutdown(testContext(t)); err != nil {
		t.Error(err)
	}
	wantNotTaken(t, c)
	next := store.Incarnation{1, 2, 4}
	two, _ := serve(t, next, ring, bind)
	r.set(two)
	// It is looked for once a second at most.
	for until := time.Now().Add(10 * time.Second); ; {
		if _, err := c.Send(testContext(t), next, hop(time.Minute, "a")); err == nil {
			break
		} else if !errors.Is(err, node.ErrNotTaken) || time.Now().After(until) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
