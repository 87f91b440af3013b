package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"licet/internal/depth"
)

const (
	readTimeout  = 5 * time.Second // see docs/reference/api.md
	bodyCap      = 64 << 10
	bodiesCap    = 64 << 20 // of one address: half, as long as no other has any
	connCap      = 32 << 10
	openBodyCap  = 16 << 10
	slowClients  = 5000
	fewClients   = 1000 // at the usual depth, and with the race detector, which needs too much time for more
	slowDialers  = 64   // at once, or the queue of the listener runs over
	filesBesides = 500
)

// TestSlowClients runs many clients that never finish a request: half of them stay in its head, half in its body. The
// service closes their connections at the deadline of a complete request, however busily they send, or answers 50301 at
// once if their bodies take more than one address may have. Until then they cost no more memory than their connections
// and these bodies, and other clients are served.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	number, raced := depth.Of(fewClients, slowClients), depth.Raced()
	if raced {
		number = fewClients
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	// Go has raised the soft limit to the hard one, here and in licet itself.
	if files.Cur < uint64(number+filesBesides) {
		t.Skipf("a process may open %d files here, and this needs %d", files.Cur, number+filesBesides)
	}
	p := startProcess(t, t.TempDir())
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	head := func(path string, length int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "+
			"%s\r\nContent-Length: %d\r\n", path, p.key, length)
	}
	body := func(path string, length int) string {
		return head(path, length) + "\r\n" + `{"a":"` + strings.Repeat("x", length-1000)
	}
	starts := []string{
		head("/v1/orders", bodyCap) + "X-Slow: ",
		body("/v1/orders", bodyCap),
		"GET /livez",
		body("/v1/licenses/activate", openBodyCap),
	}

	before := p.memory(t, "VmRSS")
	dialing := make(chan struct{}, slowDialers)
	var open, peak, refused atomic.Int64
	var clients sync.WaitGroup
	failures := make(chan error, number)
	answered := make(chan struct{}, number)
	for i := range number {
		clients.Go(func() {
			dialing <- struct{}{}
			c := slowClient{start: starts[i%len(starts)]}
			err := c.dial(target.Host)
			<-dialing
			if err != nil {
				failures <- err
				return
			}
			now := open.Add(1)
			for seen := peak.Load(); now > seen && !peak.CompareAndSwap(seen, now); seen = peak.Load() {
			}
			err = c.dawdle()
			open.Add(-1)
			if err != nil {
				failures <- err
			} else if c.answered {
				if c.refused {
					refused.Add(1)
				}
				answered <- struct{}{}
			}
		})
	}
	all := make(chan struct{})
	go func() {
		clients.Wait()
		close(all)
	}()
	honest := 0
	for ended := false; !ended; {
		if r, err := p.send(t.Context(), "GET", "/livez", ""); err != nil || r.status != 200 {
			t.Fatalf("/livez after %d times: %d, %v", honest, r.status, err)
		}
		honest++
		select {
		case <-all:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	close(failures)
	for err := range failures {
		t.Fatalf("one of %d: %v", len(failures)+1, err)
	}
	grown := p.memory(t, "VmHWM") - before
	t.Logf("%d at once, %d of %d got a response, /livez answered %d times, memory grew by %d KiB", peak.Load(),
		len(answered), number, honest, grown>>10)
	if peak.Load()+refused.Load() < int64(number) {
		t.Skipf("only %d of %d clients were there at once: this machine is too slow", peak.Load(), number)
	}
	// The race detector takes a multiple of what it watches.
	if limit := min(number*bodyCap, number*connCap+bodiesCap); grown > limit && !raced {
		t.Errorf("memory grew by %d KiB, and %d KiB is the most", grown>>10, limit>>10)
	}
}

// slowClient is a client that is never done.
type slowClient struct {
	net.Conn
	start    string
	began    time.Time
	answered bool
	refused  bool // answered that too many bodies are under way
}

// dial connects and sends what is sent at once.
func (c *slowClient) dial(addr string) (err error) {
	c.began = time.Now()
	if c.Conn, err = net.Dial("tcp", addr); err != nil {
		return err
	}
	_, err = c.Write([]byte(c.start))
	return err
}

// dawdle sends a byte each second until it is cut off.
func (c *slowClient) dawdle() error {
	defer c.Close()
	var got []byte
	buffer := make([]byte, 1024)
	for {
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, err := c.Read(buffer)
		got = append(got, buffer[:n]...)
		lived := time.Since(c.began)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && lived > time.Minute:
			return fmt.Errorf("not cut off within a minute after %.40q", c.start)
		case errors.Is(err, os.ErrDeadlineExceeded):
			if len(got) == 0 {
				_, _ = c.Write([]byte("x"))
			}
		case bytes.Contains(got, []byte(`"code":50301`)):
			c.answered, c.refused = true, true
			return nil
		case lived < readTimeout:
			return fmt.Errorf("cut off after %v, by %w, with %q", lived, err, got)
		default: // closed; the answer is lost where a byte crossed it
			c.answered = bytes.Contains(got, []byte(`"code":40000`))
			return nil
		}
	}
}

// memory is a line of what Linux tells about the memory of the process, in
// bytes.
func (p *process) memory(t *testing.T, line string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.servicePID(t)))
	if err != nil {
		t.Skip("this is no Linux: ", err)
	}
	_, rest, _ := strings.Cut(string(status), "\n"+line+":")
	number, _, found := strings.Cut(rest, " kB\n")
	kilobytes, err := strconv.Atoi(strings.TrimSpace(number))
	if !found || err != nil {
		t.Fatalf("%s: %v in\n%s", line, err, status)
	}
	return kilobytes << 10
}
