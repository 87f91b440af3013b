package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/etcdtest"
	"licet/kv"
	"licet/metrics"
	"licet/node/clocks"
	"licet/node/store"
)

// runWithClock tells this test binary to be licet serve whose clock is ahead by the duration in a file.
const runWithClock = "RUN_TEST_BINARY_WITH_CLOCK"

// serveWithClock is licet serve, but for the clock.
func serveWithClock(file string, args []string) int {
	system := clocks.System()
	return serveWith(args, func(n *serve) {
		n.clock = func() (time.Time, time.Duration) {
			wall, elapsed := system()
			text, _ := os.ReadFile(file)
			ahead, _ := time.ParseDuration(string(text))
			return wall.Round(0).Add(ahead), elapsed
		}
	})
}

// clocked is a licet serve whose clock a test sets.
type clocked struct {
	*process
	file string // how far the clock is ahead
}

// startClocked starts a licet serve whose clock is right.
func startClocked(t *testing.T, cluster *etcdtest.Cluster, key string) *clocked {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ahead")
	node := startServeAs(t, []string{runWithClock + "=" + file},
		"--etcd-endpoints", strings.Join(cluster.Endpoints(), ","), "--metrics-listen", "127.0.0.1:0")
	node.key = key
	return &clocked{node, file}
}

// set sets how far the clock is ahead.
func (c *clocked) set(t *testing.T, ahead string) {
	t.Helper()
	// A rename, since the node reads the file all the time.
	if err := os.WriteFile(c.file+".new", []byte(ahead), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.file+".new", c.file); err != nil {
		t.Fatal(err)
	}
}

// is reports whether the node's clock has a state among the clocks of all nodes.
func (c *clocked) is(t *testing.T, state string) bool {
	t.Helper()
	page := c.get(t, logged(c.log.String(), "metrics", "url")).body
	return strings.Contains(page, `licet_clock_state{state="`+state+`"} 1`)
}

// TestWrongClock runs three nodes, each a process of its own. One of them gets a clock that is days ahead, and then one
// that is right again.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	var nodes []*clocked
	for range 3 {
		nodes = append(nodes, startClocked(t, cluster, key))
	}
	state := func(node int, state string) bool { return nodes[node].is(t, state) }
	agree := func() bool { return state(0, "agrees") && state(1, "agrees") && state(2, "agrees") }
	waitFor(t, agree)
	nodes[2].set(t, "216h")
	waitFor(t, func() bool { return state(2, "differs") && state(0, "agrees") && state(1, "agrees") })
	if r := nodes[2].get(t, nodes[2].url+"/readyz"); r.status != 503 || !strings.Contains(r.body, "clock differs") {
		t.Errorf("/readyz answers %d %s", r.status, r.body)
	}
	order := `{"product_id":"editor","amount":5,"currency":"USD"}`
	if r, err := nodes[2].send(t.Context(), "POST", "/v1/orders", order); err != nil || r.Code != 50300 {
		t.Errorf("a node that is days ahead answers %d %s, %v", r.status, r.body, err)
	}
	nodes[0].want(t, 201, "POST", "/v1/orders", order)
	nodes[1].want(t, 201, "POST", "/v1/orders", order)
	nodes[2].set(t, "0s")
	waitFor(t, agree)
	nodes[2].want(t, 201, "POST", "/v1/orders", order)
	nodes[2].log.forgive("the clock differs from the clocks of most nodes")
}

// stamps is a clock that keeps the stamps of the last read.
type stamps struct{ last atomic.Pointer[[]store.Stamp] }

func (s *stamps) Stamp() (time.Time, bool)     { return time.Now(), false }
func (s *stamps) Compare(stamps []store.Stamp) { s.last.Store(&stamps) }
func (s *stamps) Leave()                       {}

// newestBut returns the version of the stamp of another node than self; 0: there is none.
func (s *stamps) newestBut(self store.Incarnation) (version int64) {
	if last := s.last.Load(); last != nil {
		for _, each := range *last {
			if each.Node != self {
				version = max(version, each.Version)
			}
		}
	}
	return version
}

// TestStampsWhileDraining: a node that leaves goes on storing its time while it answers requests, so that a node that
// starts meanwhile compares its clock with that node. Once it has ended, its registration is gone.
func TestStampsWhileDraining(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	cfg := kv.Config{Endpoints: cluster.Endpoints()}
	key := storeKey(t, cfg)
	cfg.Metrics, cfg.Log = metrics.New(prometheus.NewRegistry(), "", "", ""), zerolog.Nop()
	other, err := kv.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var clock stamps
	ctx, cancel := context.WithCancel(t.Context())
	var registering sync.WaitGroup
	registering.Go(func() {
		other.Register(ctx, func() store.Registration {
			return store.Registration{Incarnation: other.Incarnation()}
		}, &clock)
	})
	t.Cleanup(func() { cancel(); registering.Wait(); other.Close() })
	p := startServe(t, "--etcd-endpoints", cluster.Endpoints()[0], "--drain-delay", "4s")
	p.key = key
	self := other.Incarnation()
	waitFor(t, func() bool { return clock.newestBut(self) > 0 })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	leaving := func() bool {
		r, err := p.send(t.Context(), "GET", "/readyz", "")
		return err == nil && r.status == http.StatusServiceUnavailable
	}
	waitFor(t, leaving)
	version := clock.newestBut(self)
	if version == 0 {
		t.Fatal("the registration ended as soon as the node left")
	}
	waitFor(t, func() bool { return clock.newestBut(self) > version+1 || !leaving() })
	if now := clock.newestBut(self); now <= version+1 {
		t.Errorf("while it left, the node stored version %d after version %d", now, version)
	}
	<-p.ended
	waitFor(t, func() bool { return clock.newestBut(self) == 0 })
}
