package handlers_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/handlers/limits"
	"licet/node/service"
)

// visitor is a client with an address of its own on the loopback network.
type visitor struct {
	net.Conn
	t       *testing.T
	answers *bufio.Reader
}

// visit connects from an address, and checks that the server answers a request, or refuses the
// connection.
func (s *fixture) visit(from string) (v *visitor, accepted bool) {
	s.t.Helper()
	v = s.connect(from)
	// The write fails if the server has refused and closed the connection already.
	_, _ = io.WriteString(v, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	a := v.answer()
	if a.status == http.StatusOK {
		return v, true
	}
	a.must(s.t, 50301)
	checkCommonHeaders(s.t, a)
	return v, false
}

// connect makes a connection from an address, and sends nothing.
func (s *fixture) connect(from string) *visitor {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return &visitor{c, s.t, bufio.NewReader(c)}
}

func (v *visitor) say(text string) {
	v.t.Helper()
	say(v.t, v.Conn, text)
}

func (v *visitor) answer() answer {
	v.t.Helper()
	response, err := http.ReadResponse(v.answers, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return readAnswer(v.t, response)
}

// wantServed checks that the server still serves the connection.
func (v *visitor) wantServed() {
	v.t.Helper()
	v.say("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	v.answer().must(v.t, 0)
}

// wantClosed checks that the server has closed the connection.
func (v *visitor) wantClosed() {
	v.t.Helper()
	if n, err := v.answers.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		v.t.Errorf("the connection is open: %d bytes, %v", n, err)
	}
}

func (s *fixture) visits(from string, most int) (accepted []*visitor) {
	s.t.Helper()
	for range most {
		v, ok := s.visit(from)
		if !ok {
			break
		}
		accepted = append(accepted, v)
	}
	return accepted
}

func maxConnections(n int, proxies ...string) option {
	return func(c *handlers.Config, _ *service.Config) {
		c.MaxConnections = n
		for _, proxy := range proxies {
			c.Proxies = append(c.Proxies, netip.MustParsePrefix(proxy))
		}
	}
}

// TestConnectionsOfAnAddress: an address may have as many connections as are still free, and the log
// names an address that asks for more, and the setting for proxies.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	s := newService(t, maxConnections(8))
	for i, want := range []int{4, 2, 1, 1} {
		from := fmt.Sprintf("127.0.0.%d", i+1)
		if got := len(s.visits(from, want)); got != want {
			t.Fatalf("%s got %d connections, want %d", from, got, want)
		}
		if i == 0 {
			for range 20 {
				if _, ok := s.visit(from); ok {
					t.Fatalf("%s got more than %d connections", from, want)
				}
			}
		}
	}
	if _, ok := s.visit("127.0.0.2"); ok {
		t.Error("an address with connections got another one, although all are open")
	}
	want := map[string]float64{"connection_address": 20, "connection": 1}
	if got := s.series("licet_commands_shed_total"); !maps.Equal(got, want) {
		t.Errorf("shed: %v, want %v", got, want)
	}
	log := s.log.String()
	if !strings.Contains(log, `"address":"127.0.0.1"`) || !strings.Contains(log, "--trusted-proxies") {
		t.Errorf("the log names neither the address nor the setting:\n%s", log)
	}
	if lines := strings.Count(log, "refused a connection"); lines > 6 {
		t.Errorf("21 refused connections made %d lines", lines)
	}
}

// TestConnectionsEnd: the connections of an address that have ended no longer count.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	s := newService(t, maxConnections(4))
	for range 3 {
		for _, v := range s.visits("127.0.0.1", 2) {
			v.say("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			v.answer().must(t, 0)
			v.wantClosed()
		}
	}
	// The server closes a connection before it returns the place.
	for until := time.Now().Add(10 * time.Second); len(s.visits("127.0.0.2", 2)) < 2; {
		if time.Now().After(until) {
			t.Fatal("closed connections still have a place")
		}
	}
}

// TestConnectionsOfAProxy: the connections of a trusted proxy have no share, and the longest-idle
// connection makes a place for a new one.
func TestConnectionsOfAProxy(t *testing.T) {
	t.Parallel()
	s := newService(t, maxConnections(3, "127.0.0.1/32"))
	all := []*visitor{s.connect("127.0.0.1"), s.connect("127.0.0.1"), s.connect("127.0.0.1")}
	// A client has its answer a moment before the server counts the connection as idle. The server accepts connections
	// in the order in which they were made, so all[1] is idle before the server reads from all[2] and then from all[0].
	all[2].wantServed()
	all[0].wantServed()
	late, ok := s.visit("127.0.0.1")
	if !ok {
		t.Fatal("a new connection was refused, although others are idle")
	}
	all[1].wantClosed()
	for _, v := range []*visitor{all[0], all[2], late} {
		v.wantServed()
	}
	if got := s.series("licet_idle_connections_closed_total"); got[""] != 1 {
		t.Errorf("idle connections closed: %v", got)
	}
}

// TestBusyConnectionsStay: no connection with a request in progress is closed for a new one.
func TestBusyConnectionsStay(t *testing.T) {
	t.Parallel()
	s := newService(t, maxConnections(2, "127.0.0.1/32"))
	all := s.visits("127.0.0.1", 2)
	for _, v := range all {
		v.say(longPoll)
	}
	s.awaitInFlight(2)
	if _, ok := s.visit("127.0.0.1"); ok {
		t.Error("a connection was accepted beyond the limit")
	}
	if got := s.series("licet_commands_shed_total"); got["connection"] != 1 {
		t.Errorf("shed: %v", got)
	}
	all[0].say("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") // this request does not end the request in progress
	if got := s.inFlight(); got != 2 {
		t.Errorf("%v requests are in flight", got)
	}
}

// TestUnusedConnectionsMakePlace: connections on which the server has received nothing make a place too.
func TestUnusedConnectionsMakePlace(t *testing.T) {
	t.Parallel()
	s := newService(t, maxConnections(70, "127.0.0.0/8"))
	for range 70 {
		s.connect("127.0.0.1")
	}
	if got := len(s.visits("127.0.0.2", 70)); got != 70 {
		t.Errorf("%d of 70 connections were accepted in place of silent ones", got)
	}
}

// TestBodiesOfAnAddress: the bodies that the server waits for are bounded, in all and by address.
func TestBodiesOfAnAddress(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *handlers.Config, _ *service.Config) {
		c.MaxBodies, c.ReadTimeout = 192<<10, time.Minute
	})
	const length = 60_000
	begin := func(from, head string) *visitor {
		v, ok := s.visit(from)
		if !ok {
			t.Fatal("the connection was refused")
		}
		v.say("POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + head + "\r\n\r\n")
		return v
	}
	declared := fmt.Sprintf("Content-Length: %d", length)
	const chunked = "Transfer-Encoding: chunked"
	bytes := func() float64 { return s.gather("licet_request_body_bytes").GetMetric()[0].GetGauge().GetValue() }
	await := func(want float64) {
		t.Helper()
		for until := time.Now().Add(20 * time.Second); bytes() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%v bytes of bodies, want %v", bytes(), want)
			}
		}
	}
	first := begin("127.0.0.1", declared)
	await(length)
	second := begin("127.0.0.1", chunked)
	await(length + 64<<10)
	refused := begin("127.0.0.1", declared)
	a := refused.answer().must(t, 50301)
	checkCommonHeaders(t, a)
	if a.header.Get("Retry-After") == "" || !a.closes {
		t.Errorf("Retry-After: %q, closes: %v", a.header.Get("Retry-After"), a.closes)
	}
	other := begin("127.0.0.2", declared)
	await(2*length + 64<<10)
	begin("127.0.0.3", declared).answer().must(t, 50301) // all bytes are taken
	if got := s.series("licet_commands_shed_total"); !maps.Equal(got, map[string]float64{"bodies": 2}) {
		t.Errorf("shed: %v", got)
	}

	first.say(strings.Repeat(" ", length))
	first.answer().must(t, 40100)
	await(length + 64<<10)
	begin("127.0.0.3", declared)
	await(2*length + 64<<10)
	second.say("1\r\nx\r\n0\r\n\r\n")
	second.answer().must(t, 40100)
	_ = other.Close()
	await(length)
}

// TestSmallBodiesAreNotCounted: a body that comes with its head is not counted, however little room there
// is.
func TestSmallBodiesAreNotCounted(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.MaxBodies = 1 })
	s.send("POST", "/v1/orders", keyAll, `{"product_id":"editor","amount":0,"currency":"USD"}`).must(t, 0)
}

// TestPeerOfAProxy: connections count by /64 with IPv6, and those of trusted proxies have no address.
func TestPeerOfAProxy(t *testing.T) {
	t.Parallel()
	proxies := limits.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:10::/48")}
	for peer, want := range map[string]string{
		"192.0.2.7":        "192.0.2.7",
		"::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8::1:2":    "2001:db8::",
		"2001:db8::9:9":    "2001:db8::",
		"fe80::1%eth0":     "fe80::",
		"10.1.2.3":         "",
		"::ffff:10.1.2.3":  "",
		"2001:db8:10::5":   "",
	} {
		got := proxies.Peer(netip.MustParseAddr(peer))
		if want == "" && got != (netip.Addr{}) || want != "" && got != netip.MustParseAddr(want) {
			t.Errorf("%s counts as %v, want %q", peer, got, want)
		}
	}
}
