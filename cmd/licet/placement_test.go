package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/internal/etcdtest"
	"licet/kv"
)

// route sends what goes to one place in the fleet to a node from now on.
func (f *fleet) route(at int, to *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[at] = strings.TrimPrefix(to.url, "http://")
}

// contend binds devices to one license and removes them until ctx ends, whatever
// happens to the nodes.
func (l *ledger) contend(ctx context.Context, a api, name, key string) error {
	insist := func(do func() error) error {
		for {
			err := do()
			if err == nil || ctx.Err() != nil || !refusal(err) && !brokenConnection(err) {
				return err
			}
		}
	}
	for i := 0; ctx.Err() == nil; i++ {
		if l.resting.Load() {
			time.Sleep(pause)
		}
		device := fmt.Sprintf("%s-%d", name, i)
		err := insist(func() error { return l.bind(ctx, a, key, device) })
		if err == nil {
			// What stayed bound would fill the license, and then nothing changes any more.
			err = insist(func() error { return l.remove(ctx, a, key, device) })
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// metric reads the sum of a metric's series from a process.
func (p *process) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	page := p.get(t, logged(p.log.String(), "metrics", "url")).body
	series := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`)
	for _, match := range series.FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatalf("%s: %v", match[0], err)
		}
		sum += value
	}
	return sum
}

// TestPlacement has three nodes contend for one license. One node comes to write for all; the test pauses that node for
// longer than the deadline of requests. The next owner leaves, and the owner after that is killed. Every acknowledged
// device is bound, and no device is bound without a request.
func TestPlacement(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	start := func() *process {
		p := startServe(t, "--etcd-endpoints", endpoints, "--internal-listen", "127.0.0.1:0", "--metrics-listen",
			"127.0.0.1:0")
		p.key = key
		return p
	}
	nodes := []*process{start(), start(), start()}
	f, all := newFleet(key, nodes...)
	book := newLedger()
	license := all.grant(t, 300)
	const contenders = 24
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, contenders)
	for i := range contenders {
		go func() { done <- book.contend(ctx, all, fmt.Sprint("c", i), license) }()
	}
	// owner waits until commands hop, and returns the place of the node that runs most
	// of them.
	owner := func() int {
		t.Helper()
		const ran = "licet_hop_commands_run_total"
		before := make([]float64, len(nodes))
		for i, p := range nodes {
			before[i] = p.metric(t, ran)
		}
		at := 0
		waitFor(t, func() bool {
			most := 0.0
			for i, p := range nodes {
				if now := p.metric(t, ran) - before[i]; now > most {
					at, most = i, now
				}
			}
			return most >= depth.Of(100.0, 200.0)
		})
		return at
	}
	replace := func(at int) {
		t.Helper()
		next := start()
		f.route(at, next)
		nodes[at] = next
	}

	at := owner()
	stopped := nodes[at]
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := stopped.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	f.route(at, nodes[(at+1)%len(nodes)]) // as a load balancer would, soon
	signal(syscall.SIGSTOP)
	floor := book.acks.Load() + depth.Of[int64](100, 300)
	waitFor(t, func() bool { return book.acks.Load() >= floor })
	book.resting.Store(true)
	time.Sleep(5 * time.Second) // what it was sent is over by then
	book.resting.Store(false)
	signal(syscall.SIGCONT)
	f.route(at, stopped)

	leaving := owner()
	if code := nodes[leaving].terminate(t); code != exitOK {
		t.Errorf("a node that left ended with exit code %d", code)
	}
	replace(leaving)
	killed := owner()
	nodes[killed].kill()
	replace(killed)
	owner()
	cancel()
	for range contenders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	book.verify(t, all)
	if verified := runLicet(t, "store", "verify", "--etcd-endpoints", endpoints); verified.code != exitOK {
		t.Errorf("licet store verify: exit code %d\n%s%s", verified.code, verified.stdout, verified.stderr)
	}
	hops, unknown := 0.0, 0.0
	for _, p := range nodes {
		hops += p.metric(t, `licet_hops_total`)
		unknown += p.metric(t, `licet_hop_commands_total`)
	}
	t.Logf("%d changes were acknowledged, and none was lost; the nodes that are left made %.0f hops of %.0f commands",
		book.acks.Load(), hops, unknown)
}
