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
	var slow atomic.Bool
	r := &registry{nodes: []store.Registration{registration}}
	c, err := peer.NewClient(ring, func(ctx context.Context) ([]store.Registration, error) {
		if slow.Load() {
			<-ctx.Done()
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
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	ctx, cancel2 := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel2()
	err = c.Reach(ctx, self)
	if took := time.Since(began); took > time.Second || err != nil {
		t.Errorf("Reach took %v, and its context was over after 0.5 s: %v", took, err)
	}
	group.Wait()
}

// TestBiggestHop: the most and the longest commands that the API lets in fit, or are not taken.
func TestBiggestHop(t *testing.T) {
	ring := newRing(t)
	registration, _ := serve(t, self, ring, bind)
	c := newClient(t, ring, &registry{nodes: []store.Registration{registration}})
	long := strings.Repeat("\U0001F600", 252)
	h := node.Hop{Key: "LIC-00000-00000-00000-00000-00000", Over: time.Now().Add(time.Minute)}
	for i := range node.MaxHop {
		h.Commands = append(h.Commands, licensing.Activate{
			Target: licensing.Target{Key: h.Key, Pin: licensing.Owner{AccountID: long + "abc", Mode: licensing.Live}},
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

// TestStrangersDoNotBlockTheListener: a client that opens connections and sends nothing
// does not keep other nodes out for longer than a handshake may take.
func TestStrangersDoNotBlockTheListener(t *testing.T) {
	t.Parallel()
	ring := newRing(t)
	registration, _ := serve(t, self, ring, bind)
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range 1024 + 1 {
		conn, err := net.Dial("tcp", registration.Address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	// The node refuses more connections until readTimeout, 5 s, ends the silent ones.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp",
			registration.Address)
		if err == nil {
			conn.Close()
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no TLS handshake within 10 s of a stranger's 1025 silent connections: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestStrangersAreNotRead: the node reads no command from a sender without a valid seal, or beyond the sealed length,
// and writes a bounded log.
func TestStrangersAreNotRead(t *testing.T) {
	ring := newRing(t)
	var log strings.Builder
	registration, _ := serveLogging(t, self, ring, func(h node.Hop) (node.HopAnswer, error) {
		t.Error("commands were run")
		return bind(h)
	}, zerolog.New(zerolog.SyncWriter(&log)))
	for i, seal := range []string{"", "Licet-Seal: none\r\n", "Licet-Seal: AQJtMQ\r\n"} {
		// All of the header, and a little of a mebibyte that is announced.
		conn := strangerTo(t, registration)
		if _, err := fmt.Fprintf(conn, "POST /hop HTTP/1.1\r\nHost: x\r\n%sContent-Length: 1048576\r\n\r\nabc",
			seal); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || len(answer) < 9 || answer[0] != 2 || !strings.Contains(string(answer), "body size exceeds") {
			t.Errorf("case %d: %s, %q, %v", i, response.Status, answer, err)
		}
		conn.Close()
	}
	conn := strangerTo(t, registration)
	reader := bufio.NewReader(conn)
	for range 100 {
		if _, err := fmt.Fprint(conn, "POST /hop HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if lines := strings.Count(log.String(), "\n"); lines < 1 || lines > 20 {
		t.Errorf("%d lines in the log", lines)
	}
}

func strangerTo(t *testing.T, r store.Registration) net.Conn {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(testContext(t), "tcp",
		r.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}
