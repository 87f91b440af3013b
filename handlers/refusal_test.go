package handlers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/handlers"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// fill takes every place of the service's node until the test calls free.
func (s *fixture) fill() (free func()) {
	s.t.Helper()
	arrived, open := make(chan struct{}), make(chan struct{})
	s.store.onRead(func() {
		arrived <- struct{}{}
		<-open
	})
	refused := make(chan struct{})
	var group sync.WaitGroup
	for i := 0; !s.node.Full(); i++ { // each owner has as many as are free
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, _ = s.node.License(ctx, licensing.Owner{AccountID: fmt.Sprint("acct_", i)},
				parsedKey(absentKey()), store.DevicePage{Limit: 1})
			select {
			case refused <- struct{}{}:
			case <-open:
			}
		})
		select {
		case <-arrived:
		case <-refused:
		}
	}
	free = sync.OnceFunc(func() {
		s.store.onRead(nil)
		close(open)
		group.Wait()
	})
	s.t.Cleanup(free)
	return free
}

// smallest configures a node with the smallest number of places.
func smallest(_ *handlers.Config, c *service.Config) { c.QueueDelay = 1 }

// activationText returns the bytes of an activation, with further lines in its head.
func activationText(body string, lines ...string) string {
	return postText("/v1/licenses/activate", body, lines...)
}

func postText(path, body string, lines ...string) string {
	head := strings.Join(append([]string{"POST " + path + " HTTP/1.1", "Host: x", "Content-Type: application/json"},
		lines...), "\r\n")
	return fmt.Sprintf("%s\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// client is a kept connection.
type client struct {
	net.Conn
	t      *testing.T
	reader *bufio.Reader
}

func (s *fixture) dial() *client {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	return &client{c, s.t, bufio.NewReader(c)}
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) read() answer {
	c.t.Helper()
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return readAnswer(c.t, response)
}

// wantRefusal checks that a response is a refusal with all headers of a response.
func wantRefusal(t *testing.T, a answer) {
	t.Helper()
	a.must(t, 50301)
	checkCommonHeaders(t, a)
	id := a.header.Get("X-Request-Id")
	if got := a.raw["error"].(map[string]any)["request_id"]; got != id {
		t.Errorf("the request is %v in the body and %q in the head", got, id)
	}
	if got := a.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After: %q", got)
	}
}

// early reports whether the connection has refused the request: only fasthttp writes a date.
func early(a answer) bool { return a.header.Get("Date") == "" }

// TestRefusesOtherCommandsOnTheConnection: a full node refuses validations and deactivations in the same
// way as activations.
func TestRefusesOtherCommandsOnTheConnection(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	s.fill()
	c := s.dial()
	for _, path := range []string{"/v1/licenses/activate", "/v1/licenses/validate", "/v1/licenses/deactivate"} {
		c.write(postText(path, `{"license_key":"x","device_id":"d"}`))
		plain := c.read()
		wantRefusal(t, plain)
		if !early(plain) || plain.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %+v", path, plain.header)
		}
		usual := s.send("POST", path, "", `{"license_key":"x","device_id":"d"}`, "Expect", "100-continue")
		if wantRefusal(t, usual); early(usual) {
			t.Errorf("%s: refused on the connection although its head asks for more", path)
		}
	}
}

// TestRefusesAnOwnerOnTheConnection: a node with no place left for an owner refuses, on the connection,
// requests for the owner's licenses, and no others.
func TestRefusesAnOwnerOnTheConnection(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	key := s.license()
	owner, known := s.store.OwnerOf(licensing.LicenseRef(parsedKey(key)))
	if !known {
		t.Fatal("the license has no owner")
	}
	arrived, refused, open := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	s.store.onRead(func() {
		arrived <- struct{}{}
		<-open
	})
	t.Cleanup(func() {
		s.store.onRead(nil)
		close(open)
		group.Wait()
	})
	for full := false; !full; {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := s.node.License(ctx, owner, parsedKey(key),
				store.DevicePage{Limit: 1}); errors.Is(err, licensing.ErrOverloaded) {
				refused <- struct{}{}
			}
		})
		select {
		case <-arrived:
		case <-refused:
			full = true
		}
	}
	if s.node.Full() {
		t.Error("one owner fills the node")
	}
	c := s.dial()
	for _, path := range []string{"/v1/licenses/activate", "/v1/licenses/validate", "/v1/licenses/deactivate"} {
		c.write(postText(path, `{"license_key":"`+key+`","device_id":"d"}`))
		a := c.read()
		if wantRefusal(t, a); !early(a) {
			t.Errorf("%s of the owner's license reached fasthttp", path)
		}
		if got := s.server.Refuse([]byte(postText(path,
			`{"license_key":"`+absentKey()+`","device_id":"d"}`))); got != nil {
			t.Errorf("%s of another license is refused: %s", path, got)
		}
		if got := s.server.Refuse([]byte(postText(path, `{"license_key":7}`))); got != nil {
			t.Errorf("%s of no license is refused: %s", path, got)
		}
	}
}

// TestRefusesOnTheConnection: a full node refuses activations on their connection if they arrive whole
// and are plain, and all others after fasthttp has read them. Both responses are the same.
func TestRefusesOnTheConnection(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	s.fill()
	const body = `{"license_key":"x","device_id":"d"}`
	shape := func(a answer) string {
		id := a.header.Get("X-Request-Id")
		a.header.Del("Date")
		a.header.Del("Connection")
		return strings.ReplaceAll(wireForm(a), id, "ID")
	}
	c := s.dial()
	c.write(activationText(body))
	first := c.read()
	if !early(first) {
		t.Error("the plainest request reached fasthttp")
	}
	want := shape(first)
	for _, x := range []struct {
		name, text string
		early      bool
	}{
		{"on the same connection", activationText(body), true},
		{"not JSON", activationText("{"), true},
		{"no body", "POST /v1/licenses/activate HTTP/1.1\r\nHost: x\r\n\r\n", true},
		{"bad credentials", activationText(body, "Authorization: Bearer "+keyRevoked), true},
		{"two requests at once", activationText(body) + activationText(body), false},
		{"other header names", activationText(body, "X-Request-Ids: a", "Expects: b"), true},
		{"an id of its own", activationText(body, "x-request-ID: mine"), true},
		{"two ids", activationText(body, "x-request-ID: mine", "X-Request-Id: mine"), false},
		{"an id that is none", activationText(body, "X-Request-Id: a b"), false},
		{"no id in it", activationText(body, "X-Request-Id:"), false},
		{"a secret for an id", activationText(body, "X-Request-Id: lk_test_x"), true},
		{"kept open by name", activationText(body, "connection: Keep-Alive "), true},
		{"to be upgraded", activationText(body, "Connection: keep-alive, Upgrade"), false},
		{"a query", strings.Replace(activationText(body), "activate ", "activate?a=b ", 1), false},
		{"chunks", "POST /v1/licenses/activate HTTP/1.1\r\nHost: x\r\nContent-Type: " +
			"application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", false},
		{"long", activationText(`{"` + strings.Repeat("x", 2000) + `":1}`), false},
		{"and the plain one again", activationText(body), true},
	} {
		c.write(x.text)
		for range strings.Count(x.text, "HTTP/1.1") {
			a := c.read()
			wantRefusal(t, a)
			if early(a) != x.early {
				t.Errorf("%s: early: %v", x.name, early(a))
			}
			if got := shape(a); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", x.name, got, want)
			}
		}
	}
	for _, id := range []string{"mine", strings.Repeat("i", 128)} {
		c.write(activationText(body, "X-Request-Id: "+id))
		if a := c.read(); a.header.Get("X-Request-Id") != id || !early(a) {
			t.Errorf("the request's own id %q became %q", id, a.header.Get("X-Request-Id"))
		}
	}
	c.write(activationText(body, "X-Request-Id: lk_test_x"))
	if a := c.read(); a.header.Get("X-Request-Id") == "lk_test_x" {
		t.Error("a secret is repeated")
	}
	c.write(activationText(body, "Connection: close"))
	if a := c.read(); !a.closes {
		t.Error("the connection stays open although the client wants it closed")
	}
}

// TestFullNodeAnswers: a full node too reports errors of a request's size, framing, route or method, and
// serves requests that need no place.
func TestFullNodeAnswers(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	s.fill()
	const line = "POST /v1/licenses/activate HTTP/1.1\r\n"
	for _, x := range []struct {
		name, text string
		code       int
	}{
		{"no host", line + "Content-Length: 0\r\n\r\n", 40000},
		{"two lengths", line + "Host: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", 40000},
		{"bare line feed", line + "Host: x\nContent-Length: 0\r\n\r\n", 40000},
		{"folded line", line + "Host: x\r\n y\r\n\r\n", 40000},
		{"too long", line + "Host: x\r\nContent-Length: 16385\r\n\r\n", 41300},
		{"method", strings.Replace(line, "POST", "PUT", 1) + "Host: x\r\n\r\n", 40500},
		{"route", "POST /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n", 40400},
		{"another route", "POST /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n", 40100},
		{"probe", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := s.dial()
			c.write(x.text)
			c.read().must(t, x.code)
		})
	}
}

// TestServesAfterRefusals: once the node has a place, it serves a connection after many refusals. The
// node has counted and logged every refusal, and no refusal holds a place.
func TestServesAfterRefusals(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest, func(c *handlers.Config, _ *service.Config) { c.ReadTimeout = 2 * time.Second })
	key := s.license()
	before := len(s.log.requests(t))
	free := s.fill()
	c := s.dial()
	const refused = 20
	for range refused {
		c.write(activationText(`{"license_key":"` + key + `","device_id":"d"}`))
		wantRefusal(t, c.read())
	}
	free()
	c.write(activationText(`{"license_key":"` + key + `","device_id":"d"}`))
	c.read().must(t, 0)

	lines := s.log.requests(t)[before:]
	for i, line := range lines[:refused] {
		if line["code"] != 50301.0 || line["status"] != 503.0 || line["route"] != "/v1/licenses/activate" ||
			line["method"] != "POST" || line["level"] != "info" || line["request_id"] == "" ||
			line["bytes"].(float64) < 100 {
			t.Errorf("line %d: %v", i, line)
		}
	}
	if len(lines) != refused+1 {
		t.Errorf("%d lines were logged for %d requests", len(lines), refused+1)
	}
	if got := s.gather("licet_commands_under_way").GetMetric()[0].GetGauge().GetValue(); got != 0 {
		t.Errorf("%v are under way at the end", got)
	}
	count := func(name, label, value string) (n float64) {
		for _, m := range s.gather(name).GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					n += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
		return n
	}
	if got := count("licet_commands_shed_total", "reason", "limit"); got != refused {
		t.Errorf("%v are counted as shed, want %d", got, refused)
	}
	if got := count("licet_http_request_duration_seconds", "code", "503"); got != refused {
		t.Errorf("%v are counted as answered 503, want %d", got, refused)
	}

	// After refusals, an incomplete request has no more time than any other.
	c.write("POST /v1/licenses")
	if a := c.read(); a.code != 40000 || !a.closes {
		t.Errorf("half a request: %s", a.body)
	}
}

// TestRefusesNoHeadBeforeItsChunks: the connection does not refuse a head that announces chunks. The
// server would read the chunks as the next request.
func TestRefusesNoHeadBeforeItsChunks(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	s.fill()
	const head = "POST /v1/licenses/activate HTTP/1.1\r\nHost: x\r\nContent-Type: " +
		"application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	if got := s.server.Refuse([]byte(head)); got != nil {
		t.Errorf("refused before its body came: %s", got)
	}
	c := s.dial()
	c.write(head)
	c.write("2\r\n{}\r\n0\r\n\r\n")
	a := c.read()
	wantRefusal(t, a)
	if early(a) {
		t.Error("refused on the connection")
	}
	c.write(activationText("{}"))
	wantRefusal(t, c.read())
}

// TestClosesIdleAfterRefusal: the idle timeout applies to a connection after a refusal.
func TestClosesIdleAfterRefusal(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest, func(c *handlers.Config, _ *service.Config) {
		c.ReadTimeout, c.IdleTimeout = time.Minute, 2*time.Second
	})
	s.fill()
	c := s.dial()
	for range 2 {
		c.write(activationText("{}"))
		a := c.read()
		wantRefusal(t, a)
		if !early(a) {
			t.Fatal("the request reached fasthttp")
		}
	}
	if _, err := c.reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("an idle connection ended with %v", err)
	}
}

// TestClosesUnreadAfterRefusal: the server closes a connection once it can't write a refusal in time,
// because the client does not read.
func TestClosesUnreadAfterRefusal(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest,
		func(c *handlers.Config, _ *service.Config) { c.WriteTimeout = 2 * time.Second })
	s.fill()
	near, far := net.Pipe() // holds nothing back, so that a write waits for its reader
	t.Cleanup(func() { _ = near.Close() })
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.server.ServeConn(far)
	}()
	if err := near.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := &client{near, t, bufio.NewReader(near)}
	c.write(activationText("{}"))
	if a := c.read(); !early(a) {
		t.Fatal("the request reached fasthttp")
	}
	c.write(activationText("{}"))
	select {
	case <-served:
	case <-time.After(time.Minute):
		t.Error("still waits for its client to read")
	}
}

// TestRefusesWhileLeaving: a server that shuts down closes a connection with its refusal, so fasthttp
// must write the response.
func TestRefusesWhileLeaving(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	s.fill()
	c := s.dial()
	c.write(activationText("{}"))
	if a := c.read(); a.closes || !early(a) {
		t.Errorf("closes: %v, early: %v", a.closes, early(a))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Shutdown begins, and does not wait
	_ = s.server.Shutdown(ctx)
	if got := s.server.Refuse([]byte(activationText("{}"))); got != nil {
		t.Errorf("refused on the connection: %s", got)
	}
}

// TestRefusalAllocatesNothing: a refusal on the connection allocates nothing.
func TestRefusalAllocatesNothing(t *testing.T) {
	s := newService(t, smallest, func(c *handlers.Config, _ *service.Config) { c.Log = c.Log.Level(2) })
	s.fill()
	text, buffer := activationText(`{"license_key":"x","device_id":"d"}`), make([]byte, 1024)
	n := testing.AllocsPerRun(100, func() {
		if s.server.Refuse(buffer[:copy(buffer, text)]) == nil {
			t.Fatal("not refused")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestShutdownAfterRefusal: an idle client does not delay a shutdown after a refusal of either kind.
func TestShutdownAfterRefusal(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name  string
		lines []string
	}{{"on the connection", nil}, {"by fasthttp", []string{"Expect: nothing"}}} {
		t.Run(x.name, func(t *testing.T) {
			s := newService(t, smallest)
			s.fill()
			c := s.dial()
			for range 3 {
				c.write(activationText("{}", x.lines...))
				c.read().must(t, 50301)
			}
			// fasthttp would wait 5 s for the first request of a connection that it takes for new.
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			if err := s.server.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
