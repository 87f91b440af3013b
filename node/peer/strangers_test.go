package peer_test

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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/peer"
	"licet/node/store"
)

// TestSlowListDelaysNoSender: a slow list of the nodes, as while etcd is away, does not delay a hop to a known node.
func TestSlowListDelaysNoSender(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	registration, _ := serve(t, self, ring, bind)
	var slow, ended atomic.Bool
	began := make(chan struct{}, 100)
	r := &registry{nodes: []store.Registration{registration}}
	c, err := peer.NewClient(ring, func(ctx context.Context) ([]store.Registration, error) {
		if slow.Load() {
			began <- struct{}{}
			<-ctx.Done()
			ended.Store(true)
			return nil, ctx.Err()
		}
		return r.list(ctx)
	}, guard.New(nil, zerolog.Nop()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Send(testContext(t), self, hop(time.Minute, "a")); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	time.Sleep(1100 * time.Millisecond) // the list is old
	stuck, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		_, err := c.Send(stuck, self, hop(time.Minute, "b"))
		if err != nil && !errors.Is(err, node.ErrNotTaken) {
			t.Errorf("in doubt, though it never left: %v", err)
		}
	})
	<-began
	if err := c.Reach(testContext(t), self); err != nil || ended.Load() {
		t.Errorf("Reach has waited for the list: %v, its error: %v", ended.Load(), err)
	}
	group.Wait()
}

// TestBiggestHop: the most and the longest commands that the API lets in fit, or are not taken.
func TestBiggestHop(t *testing.T) {
	ring := newRing(t)
	registration, _ := serve(t, self, ring, bind)
	c := newClient(t, ring, &registry{nodes: []store.Registration{registration}})
	long := strings.Repeat("\U0001F600", 252)
	h := node.Hop{Over: time.Now().Add(time.Minute)}
	for i := range node.MaxHop {
		h.Commands = append(h.Commands, licensing.Activate{
			Target: licensing.Target{Key: h.License.Key("LICENSES"),
				Pin: licensing.Owner{AccountID: long + "abc", Mode: licensing.Live}},
			Device: fmt.Sprintf("%s%03d", long, i), Name: long + "abc", Named: true, ProductID: long + "abc",
			SeenStep: time.Hour,
		})
	}
	_, err := c.Send(testContext(t), self, h)
	t.Logf("252 of 255: %v", err)
	full := strings.Repeat("\U0001F600", 255)
	for i := range h.Commands {
		a := h.Commands[i].(licensing.Activate)
		a.Name, a.ProductID, a.Pin.AccountID = full, full, full
		h.Commands[i] = a
	}
	if _, err := c.Send(testContext(t), self, h); err != nil && !errors.Is(err, node.ErrNotTaken) {
		t.Errorf("not taken: %v, %v", errors.Is(err, node.ErrNotTaken), err)
	}
}

// silentFrom opens connections from an address that send nothing.
func silentFrom(t *testing.T, from string, to store.Registration, count int) []net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := dialer.Dial("tcp", to.Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	return conns
}

// TestStrangersDoNotBlockTheListener: clients that open connections and send nothing never keep a node out, whether
// they have an address of their own or the node's.
func TestStrangersDoNotBlockTheListener(t *testing.T) {
	t.Parallel()
	for name, addresses := range map[string][]string{
		"the node's address": {"127.0.0.1"},
		"another address":    {"127.0.0.2"},
		"many addresses":     {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := newRing(t)
			registration, _ := serve(t, self, ring, bind)
			nodes := &registry{nodes: []store.Registration{registration}}
			early := newClient(t, ring, nodes)
			if _, err := early.Send(testContext(t), self, hop(time.Minute, "a")); err != nil {
				t.Fatal(err)
			}
			// A client gives up the connection and the handshake after half a second, for which a busy machine may be
			// too slow. So other clients come, and at first other strangers.
			const tries = 20
			for try := 1; ; try++ {
				for _, from := range addresses {
					if try <= 3 {
						silentFrom(t, from, registration, 300)
					}
				}
				var err error
				for n := 0; n < 3 && err == nil; n++ {
					_, err = newClient(t, ring, nodes).Send(testContext(t), self, hop(time.Minute, "b"))
				}
				if err == nil {
					break
				}
				if try == tries {
					t.Fatalf("a node among strangers, %d times: %v", tries, err)
				}
			}
			if _, err := early.Send(testContext(t), self, hop(time.Minute, "c")); err != nil {
				t.Errorf("a node that came before the strangers: %v", err)
			}
		})
	}
}

// TestSilentStrangersEnd: the node closes a stranger's connection well before the time that a node has for a request,
// without a handshake, after one, and within a request. It serves a kept connection of a node after that.
func TestSilentStrangersEnd(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	registration, _ := serve(t, self, ring, bind)
	c := newClient(t, ring, &registry{nodes: []store.Registration{registration}})
	send := func(device string) {
		onBusyMachine(t, func() error {
			_, err := c.Send(testContext(t), self, hop(time.Minute, device))
			return err
		})
	}
	send("a")
	onBusyMachine(t, func() error {
		began := time.Now()
		half, err := dialStranger(t, registration)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(half, "POST /hop HTTP/1.1\r\nHost: x\r\n"); err != nil {
			return err
		}
		mute, err := dialStranger(t, registration)
		if err != nil {
			return err
		}
		for name, conn := range map[string]net.Conn{
			"no handshake": silentFrom(t, "127.0.0.1", registration, 1)[0],
			"no request":   mute,
			"half a head":  half,
		} {
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the connection stays open", name)
			}
		}
		if took := time.Since(began); took > 4*time.Second {
			return fmt.Errorf("the strangers' connections ended after %v", took)
		}
		return nil
	})
	send("b")
}

// onBusyMachine tries until a try succeeds, five times at most. The node ends a handshake and a head after a second,
// and a client gives up after half a second: a machine that is busy now and then is too slow for that now and then. A
// try that fails sooner fails the test.
func onBusyMachine(t *testing.T, try func() error) {
	t.Helper()
	for n := 1; ; n++ {
		began := time.Now()
		err := try()
		if err == nil {
			return
		}
		if took := time.Since(began); n == 5 || took < 500*time.Millisecond {
			t.Fatalf("try %d failed after %v: %v", n, took, err)
		}
		t.Logf("try %d: %v", n, err)
	}
}

// TestStrangersGetOneAnswer: the node answers all strangers alike, reads no commands of them, closes their
// connections, and writes a bounded log that has the reasons.
func TestStrangersGetOneAnswer(t *testing.T) {
	ring := newRing(t)
	var log strings.Builder
	registration, _ := serveLogging(t, self, ring, func(h node.Hop) (node.HopAnswer, error) {
		t.Error("commands were run")
		return bind(h)
	}, zerolog.New(zerolog.SyncWriter(&log)))
	var first string
	for _, request := range []string{
		"POST /hop HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na",
		"GET /hop HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no HTTP\r\n\r\n",
		// All of the header, and a little of a mebibyte that is announced.
		"POST /hop HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\nabc",
		"POST /hop HTTP/1.1\r\nHost: x\r\nLicet-Seal: none\r\nContent-Length: 1048576\r\n\r\nabc",
		"POST /hop HTTP/1.1\r\nHost: x\r\nLicet-Seal: AQJtMQ\r\nContent-Length: 1\r\n\r\na",
	} {
		var response *http.Response
		var answer []byte
		onBusyMachine(t, func() (err error) {
			response, answer, err = asStranger(t, registration, request)
			return err
		})
		if len(answer) < 9 || !response.Close {
			t.Fatalf("%q: %q, closes: %v", request, answer, response.Close)
		}
		// 8 bytes are the age of the node.
		got := fmt.Sprintf("%s %v %q", response.Status, response.Header, string(answer[:1])+string(answer[9:]))
		if first == "" {
			first = got
		}
		if got != first || answer[0] != 2 {
			t.Errorf("%q is answered\n%s, and another stranger\n%s", request, got, first)
		}
	}
	for range 100 {
		onBusyMachine(t, func() error {
			_, _, err := asStranger(t, registration, "POST /hop HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
			return err
		})
	}
	if lines := strings.Count(log.String(), "\n"); lines < 1 || lines > 20 {
		t.Errorf("%d lines in the log", lines)
	}
	if !strings.Contains(log.String(), "body size exceeds") {
		t.Errorf("the log has no reason:\n%s", log.String())
	}
}

// asStranger sends a request to a node, and reads the answer.
func asStranger(t *testing.T, r store.Registration, request string) (*http.Response, []byte, error) {
	t.Helper()
	conn, err := dialStranger(t, r)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%q: %w", request, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response, answer, err
}

// dialStranger shakes hands with a node, with no certificate.
func dialStranger(t *testing.T, r store.Registration) (net.Conn, error) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(testContext(t), "tcp",
		r.Address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return conn, conn.SetDeadline(time.Now().Add(10 * time.Second))
}
