package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"licet/internal/etcdtest"
	"licet/kv"
	"licet/licensing"
)

// recovery is how long after a fault requests may still be refused.
const recovery = 5 * time.Second

// busySlack is how much longer than a node should take something may take on a busy machine.
const busySlack = 10 * time.Second

// startFleet starts two nodes on three members of etcd, and returns an API whose requests go to either node by chance.
func startFleet(t *testing.T) (cluster *etcdtest.Cluster, nodes []*process, f *fleet, both api) {
	t.Helper()
	cluster = etcdtest.Start(t, 3)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	nodes = []*process{startServe(t, "--etcd-endpoints", endpoints), startServe(t, "--etcd-endpoints", endpoints)}
	f, both = newFleet(key, nodes...)
	for _, node := range nodes {
		node.key = key
	}
	return cluster, nodes, f, both
}

// memberFault is a fault of one etcd member. inject returns the function that ends the fault.
type memberFault struct {
	name   string
	inject func(t *testing.T, cluster *etcdtest.Cluster, leader, follower *etcdtest.Member) (heal func())
}

// TestFleetLosesMembers kills, stops and cuts off etcd members under load, one at a time: a few seconds after each
// fault the nodes refuse nothing any more. On a busy machine, requests may fail later for want of processor time: then
// the test repeats the fault.
func TestFleetLosesMembers(t *testing.T) {
	t.Parallel()
	for _, faults := range [][]memberFault{
		{
			{"kill -9 of the leader", func(t *testing.T, _ *etcdtest.Cluster, leader, _ *etcdtest.Member) func() {
				leader.Kill()
				return func() { leader.Restart(t) }
			}},
			{"SIGSTOP of a follower", func(t *testing.T, _ *etcdtest.Cluster, _, follower *etcdtest.Member) func() {
				follower.Stop(t)
				return func() { follower.Continue(t) }
			}},
		},
		{
			{"SIGSTOP of the leader", func(t *testing.T, _ *etcdtest.Cluster, leader, _ *etcdtest.Member) func() {
				leader.Stop(t)
				return func() { leader.Continue(t) }
			}},
			{"the leader cut off from its peers",
				func(_ *testing.T, cluster *etcdtest.Cluster, leader, _ *etcdtest.Member) func() {
					cluster.Isolate(leader)
					return func() { cluster.Join(leader) }
				}},
		},
	} {
		t.Run(faults[0].name, func(t *testing.T) {
			t.Parallel()
			loseMembers(t, faults)
		})
	}
}

func loseMembers(t *testing.T, faults []memberFault) {
	t.Helper()
	cluster, nodes, f, both := startFleet(t)
	book := newLedger()
	sharedKey := both.grant(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, workers)
	for i := range workers {
		go func() { done <- book.weather(ctx, both, fmt.Sprintf("w%d-", i), sharedKey) }()
	}
	for _, fault := range faults {
		for try := 1; !loseMember(t, fault, cluster, nodes, f, book); try++ {
			if try == 5 {
				t.Errorf("%s: in each of %d tries, the nodes refused a request that began more than %v after the "+
					"fault, or a request took longer", fault.name, try, recovery)
				break
			}
		}
	}
	cancel()
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	book.verify(t, both)
}

// loseMember injects a fault, ends it, and reports whether the nodes recovered in time.
func loseMember(
	t *testing.T, fault memberFault, cluster *etcdtest.Cluster, nodes []*process, f *fleet, book *ledger,
) (inTime bool) {
	t.Helper()
	// A fault counts only if there was traffic before it, and the nodes used all members.
	floor := book.acks.Load() + 100
	waitFor(t, func() bool { return book.acks.Load() >= floor && leftOut(nodes) == 0 })
	leader, follower := cluster.Leader(t)
	f.forget()
	began := time.Now()
	heal := fault.inject(t, cluster, leader, follower)
	defer heal()
	waitFor(t, func() bool { return leftOut(nodes) >= len(nodes) })
	// A request that began before the limit may take its whole deadline.
	waitFor(t, func() bool { return time.Since(began) > recovery })
	floor = book.acks.Load() + 100
	waitFor(t, func() bool { return book.acks.Load() >= floor })
	refused, lastBad, slowest := f.report()
	t.Logf("%s: %d refused, the last one begun after %v; the slowest request took %v", fault.name, refused,
		max(0, lastBad.Sub(began)), slowest)
	return lastBad.Sub(began) <= recovery && slowest <= recovery
}

// TestFleetLosesANode kills one of two nodes under load, and then all of etcd.
func TestFleetLosesANode(t *testing.T) {
	t.Parallel()
	cluster, nodes, _, both := startFleet(t)
	book := newLedger()
	sharedKey := both.grant(t, 3)

	t.Run("kill -9 of a node", func(t *testing.T) {
		done := book.load(t.Context(), both, "k", sharedKey)
		enough := book.acks.Load() + 300
		waitFor(t, func() bool { return book.acks.Load() >= enough })
		nodes[0].kill()
		for _, err := range <-done {
			if !brokenConnection(err) {
				t.Error(err)
			}
		}
		book.verify(t, nodes[1].api)
		t.Logf("%d changes were acknowledged, and none was lost", book.acks.Load())
	})

	t.Run("all of etcd", func(t *testing.T) {
		alone := nodes[1].api
		for _, member := range cluster.Members {
			member.Kill()
		}
		gone := time.Now()
		waitFor(t, func() bool {
			r, err := alone.send(t.Context(), "GET", "/readyz", "")
			return err == nil && r.status == http.StatusServiceUnavailable
		})
		if took := time.Since(gone); took > recovery+busySlack {
			t.Errorf("readiness failed only after %v", took)
		}
		calls := []func() (reply, error){
			func() (reply, error) { return alone.activate(t.Context(), sharedKey, "late") },
			func() (reply, error) { return alone.send(t.Context(), "GET", "/v1/licenses/"+sharedKey, "") },
			func() (reply, error) {
				return alone.send(t.Context(), "POST", "/v1/orders",
					`{"product_id":"editor","amount":1,"currency":"EUR"}`)
			},
		}
		atOnce(len(calls), func(i int) {
			began := time.Now()
			r, err := calls[i]()
			if err != nil || r.status != http.StatusServiceUnavailable && r.status != http.StatusGatewayTimeout {
				t.Errorf("without etcd: status %d, %v: %s", r.status, err, r.body)
			}
			if took := time.Since(began); took > recovery+busySlack {
				t.Errorf("without etcd an answer took %v", took)
			}
		})
		alone.want(t, 200, "GET", "/livez", "")

		back := make(chan struct{})
		go func() { // a member is ready once it is not alone
			cluster.Members[0].Restart(t)
			close(back)
		}()
		cluster.Members[1].Restart(t)
		<-back
		healed := time.Now()
		waitFor(t, func() bool {
			r, err := alone.send(t.Context(), "GET", "/readyz", "")
			return err == nil && r.status == http.StatusOK
		})
		if took := time.Since(healed); took > recovery+busySlack {
			t.Errorf("it was ready again only after %v", took)
		}
		alone.want(t, 200, "GET", "/v1/licenses/"+sharedKey, "")
		if code := nodes[1].terminate(t); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	})
}

// leftOut counts the members that nodes do not ask, by what their logs say.
func leftOut(nodes []*process) (n int) {
	for _, node := range nodes {
		log := node.log.String()
		n += strings.Count(log, `"the etcd member does not answer"`) - strings.Count(log,
			`"the etcd member answers again"`)
	}
	return n
}

// TestServeOverTLS has TLS on both sides, and replaces the listener's
// certificate while it is in use.
func TestServeOverTLS(t *testing.T) {
	t.Parallel()
	ca := etcdtest.NewCA(t)
	cluster := etcdtest.StartTLS(t, ca.Issue(t, "etcd", 2))
	toEtcd := ca.Issue(t, "node", 3)
	key := storeKey(t, kv.Config{
		Endpoints: cluster.Endpoints(),
		TLS:       kv.TLS{CAFile: toEtcd.CA, CertFile: toEtcd.Cert, KeyFile: toEtcd.Key},
	})
	files := ca.Issue(t, "listener", 10)
	p := startServe(t, "--tls-cert", files.Cert, "--tls-key", files.Key,
		// The scheme follows from the files.
		"--etcd-endpoints", strings.TrimPrefix(cluster.Endpoints()[0], "https://"),
		"--etcd-ca", toEtcd.CA, "--etcd-cert", toEtcd.Cert, "--etcd-key", toEtcd.Key)
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("it says it is ready at %s", p.url)
	}
	address := strings.TrimPrefix(p.url, "https://")
	p.key = key
	p.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: ca.Pool()}
	p.activated(t)

	kept := dialTLS(t, address, &tls.Config{RootCAs: ca.Pool()})
	kept.wantLive(t)
	kept.wantSerial(t, 10)
	// serves returns the certificate that a new connection gets.
	serves := func(serial int64) func() bool {
		return func() bool {
			c := dialTLS(t, address, &tls.Config{RootCAs: ca.Pool()})
			defer c.Close()
			return c.serial() == serial
		}
	}
	ca.Issue(t, "listener", 11)
	waitFor(t, serves(11))
	kept.wantLive(t)
	kept.wantSerial(t, 10)

	whole, err := os.ReadFile(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Key, []byte("half of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		if !serves(11)() {
			t.Fatal("a broken key is used")
		}
		return strings.Contains(p.log.String(), "the previous certificate stays in use")
	})
	if err := os.WriteFile(files.Key, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	ca.Issue(t, "listener", 12)
	waitFor(t, serves(12))
	kept.wantLive(t)

	for name, config := range map[string]*tls.Config{
		"TLS 1.1": {RootCAs: ca.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"HTTP/2":  {RootCAs: ca.Pool(), NextProtos: []string{"h2"}},
	} {
		if c, err := tls.Dial("tcp", address, config); err == nil {
			t.Errorf("a client that speaks only %s is let in", name)
			_ = c.Close()
		}
	}
	stranger := etcdtest.NewCA(t)
	wantOneLine(t,
		licetCommand("serve", "--listen", "127.0.0.1:0", "--master-key-file", ringFile(t), "--log-level", "error",
			"--etcd-endpoints", cluster.Endpoints()[0], "--etcd-ca",
			stranger.File), "certificate signed by unknown authority")
	p.log.forgive("the previous certificate stays in use")
}

// activated walks the middle of the main job.
func (a api) activated(t *testing.T) {
	t.Helper()
	order := a.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"USD"}`).Data
	key := a.want(t, 200, "PUT", "/v1/orders/"+order.text("order_no")+"/sandbox_payment", "").Data.text("license_key")
	if r, err := a.activate(t.Context(), key, "laptop"); err != nil || r.status != 200 {
		t.Fatalf("activating: %v %s", err, r.body)
	}
}

// secured is one TLS connection that speaks HTTP.
type secured struct {
	*tls.Conn
	reader *bufio.Reader
}

func dialTLS(t *testing.T, address string, config *tls.Config) *secured {
	t.Helper()
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &secured{c, bufio.NewReader(c)}
}

func (s *secured) serial() int64 { return s.ConnectionState().PeerCertificates[0].SerialNumber.Int64() }

func (s *secured) wantSerial(t *testing.T, want int64) {
	t.Helper()
	if got := s.serial(); got != want {
		t.Errorf("the connection has certificate %d, want %d", got, want)
	}
}

func (s *secured) wantLive(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(s, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(s.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != 200 || response.Close {
		t.Fatalf("status %d, closed: %v", response.StatusCode, response.Close)
	}
}

// TestServeDocs: a node serves the API reference only with --docs, and never the page at /.
func TestServeDocs(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	for _, docs := range []bool{false, true} {
		p := startServe(t, "--etcd-endpoints", cluster.Endpoints()[0], fmt.Sprintf("--docs=%v", docs))
		status, part := 404, `"code":40400`
		if docs {
			status, part = 200, "<openapi-explorer"
		}
		if r, err := p.send(t.Context(), "GET", "/docs", ""); err != nil || r.status != status ||
			!strings.Contains(r.body, part) {
			t.Errorf("--docs=%v: /docs answers %v %d %.300s", docs, err, r.status, r.body)
		}
		r, err := p.send(t.Context(), "GET", "/", "")
		if err != nil || r.status != 404 || strings.Contains(r.body, `"docs_url":"/docs/errors#40400"`) != docs {
			t.Errorf("--docs=%v: / answers %v %d %s", docs, err, r.status, r.body)
		}
	}
}

// TestServeDrains sees that a stop fails readiness first, goes on answering for
// the drain delay, and ends then.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	p := startServe(t, "--etcd-endpoints", cluster.Endpoints()[0], "--drain-delay", "1s")
	p.key = key
	p.activated(t)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	waitFor(t, func() bool {
		r, err := p.send(t.Context(), "GET", "/readyz", "")
		return err == nil && r.status == http.StatusServiceUnavailable
	})
	p.activated(t)
	<-p.ended
	if took := time.Since(began); p.cmd.ProcessState.ExitCode() != exitOK || took < 900*time.Millisecond {
		t.Errorf("exit code %d after %v", p.cmd.ProcessState.ExitCode(), took)
	}
	if _, err := p.send(t.Context(), "GET", "/livez", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestServeWithoutEtcd(t *testing.T) {
	t.Parallel() // it waits for most of ten seconds
	nobody := "unix://" + filepath.Join(t.TempDir(), "nobody.sock")
	began := time.Now()
	wantOneLine(t, licetCommand("serve", "--listen", "127.0.0.1:0", "--master-key-file", ringFile(t), "--log-level",
		"error", "--etcd-endpoints", nobody),
		"etcd can't be reached: "+nobody, "no such file")
	if took := time.Since(began); took > 10*time.Second+busySlack {
		t.Errorf("it took %v", took)
	}
}

func TestServeNeedsItsFiles(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("m1:c2hvcnQ=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(problem string, args ...string) {
		t.Helper()
		args = append([]string{"serve", "--listen", "127.0.0.1:0", "--master-key-file", ringFile(t), "--etcd-endpoints",
			"127.0.0.1:1"}, args...)
		if got := runLicet(t, args...); got.code != exitFailed || !strings.Contains(got.stderr, problem) ||
			strings.Contains(got.stderr, "c2hvcnQ") {
			t.Errorf("%v: want exit code 1 and %q, got %+v", args, problem, got)
		}
	}
	f("master keys: open /nowhere", "--master-key-file", "/nowhere")
	f(broken+": line 1 of the master key ring", "--master-key-file", broken)
	f("the TLS certificate: stat /nowhere", "--tls-cert", "/nowhere", "--tls-key", "/nowhere")
	f("the TLS certificate: ", "--tls-cert", broken, "--tls-key", broken)
	f("TLS to etcd: ", "--etcd-ca", broken)
	f("TLS to etcd: ", "--etcd-cert", "/nowhere", "--etcd-key", "/nowhere")
	f("another process listens there", "--listen", listener.Addr().String())
}

func TestServeUsageErrors(t *testing.T) {
	f := func(problem string, args ...string) {
		t.Helper()
		args = append([]string{"serve"}, args...)
		if got := runLicet(t, args...); got.code != exitUsage || !strings.Contains(got.stderr, problem) {
			t.Errorf("%v: want exit code 2 and %q, got %+v", args, problem, got)
		}
	}
	f("--etcd-endpoints must name every etcd member")
	f("--master-key-file must name a file", "--etcd-endpoints", "127.0.0.1:2379")
	for _, bad := range []string{"etcd", "http://", "ftp://etcd:2379", "http://etcd:2379/v3", "http://user@etcd:2379",
		"http://:2379", "etcd:", "unix://", "127.0.0.1:2379,"} {
		f("--etcd-endpoints has ", "--etcd-endpoints", bad)
	}
	f("--etcd-endpoints mixes http:// and https://", "--etcd-endpoints", "http://a:2379,https://b:2379")
	f("which is without TLS", "--etcd-endpoints", "http://a:2379", "--etcd-ca", "ca.pem")
	f("--etcd-cert and --etcd-key go together", "--etcd-endpoints", "a:2379", "--etcd-cert", "cert.pem")
	etcd := []string{"--etcd-endpoints", "a:2379,b:2379", "--master-key-file", "ring"}
	f("--tls-cert and --tls-key go together", append(etcd, "--tls-key", "key.pem")...)
	f("--drain-delay is -1s", append(etcd, "--drain-delay", "-1s")...)
	f("--clock-tolerance is 1ms", append(etcd, "--clock-tolerance", "1ms")...)
	f("--clock-tolerance is 2.5s: write a duration from 500ms to 2.4s", append(etcd, "--clock-tolerance", "2.5s")...)
	if 2*maxClockTolerance >= licensing.LeaseGuard {
		t.Error("two nodes may lease the same slot: the guard of a lease is not above twice the clock tolerance")
	}
	f("--log-level", append(etcd, "--log-level", "loud")...)

	t.Setenv("LICET_ETCD_ENDPOINTS", "a:2379,http//b")
	f(`--etcd-endpoints has "http//b"`)
}

func TestEndpointsAreCompleted(t *testing.T) {
	f := func(c etcdConfig, want ...string) {
		t.Helper()
		if err := c.validate(); err != nil || strings.Join(c.Endpoints, " ") != strings.Join(want, " ") {
			t.Errorf("got %v, %v, want %v", c.Endpoints, err, want)
		}
	}
	f(etcdConfig{Endpoints: []string{"a:1", "http://b:2"}}, "http://a:1", "http://b:2")
	f(etcdConfig{Endpoints: []string{"a:1", "[::1]:2"}, CAFile: "ca"}, "https://a:1", "https://[::1]:2")
	f(etcdConfig{Endpoints: []string{"https://a:1"}}, "https://a:1")
	f(etcdConfig{Endpoints: []string{"unix:///run/etcd.sock"}}, "unix:///run/etcd.sock")
}
