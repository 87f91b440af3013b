package handlers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/node/service"
)

// largeLicense grants a license and binds 1,000 devices with long names to it. It returns the license's
// key and the length of the response to a lookup.
func (s *fixture) largeLicense(apiKey string) (key string, length int) {
	s.t.Helper()
	s.send("PUT", "/v1/products/editor", apiKey, `{"max_devices":0}`).must(s.t, 0)
	granted := s.send("POST", "/v1/licenses", apiKey, `{"product_id":"editor","quantity":1,"max_devices":0}`)
	key = granted.must(s.t, 0).grantedKey()
	long := strings.Repeat("\U0001F600", 250)
	for i := range 1000 {
		s.send("POST", "/v1/licenses/activate", "",
			fmt.Sprintf(`{"license_key":%q,"device_id":"%s%d","device_name":%q}`, key, long, i, long)).must(s.t, 0)
	}
	return key, len(s.send("GET", "/v1/licenses/"+key, apiKey, "").must(s.t, 0).body)
}

// lookUp sends a lookup over a connection of its own.
func (s *fixture) lookUp(apiKey, key string) *visitor {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	say(s.t, c, lookup(apiKey, key))
	return &visitor{c, s.t, bufio.NewReader(c)}
}

func lookup(apiKey, key string) string {
	return "GET /v1/licenses/" + key + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + apiKey + "\r\n\r\n"
}

func (s *fixture) responseBytes() int {
	return int(s.gather("licet_response_bytes_in_flight").GetMetric()[0].GetGauge().GetValue())
}

// responseBytesReach waits until the number of bytes is as wanted, and reports whether this happened within a time.
func (s *fixture) responseBytesReach(within time.Duration, right func(bytes int) bool) bool {
	for until := time.Now().Add(within); !right(s.responseBytes()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// awaitResponseBytes waits until the number of bytes is as wanted, as long as a busy machine may need.
func (s *fixture) awaitResponseBytes(right func(bytes int) bool) {
	s.t.Helper()
	if !s.responseBytesReach(time.Minute, right) {
		s.t.Fatalf("%d bytes of responses are in flight", s.responseBytes())
	}
}

// stall sends lookups whose responses the client never reads, and reports whether the bytes of all of them were in
// flight at once. On a busy machine the server may cut the first client off before the last response begins.
func (s *fixture) stall(lookups int, apiKey, key string, length int) bool {
	s.t.Helper()
	for range lookups {
		s.lookUp(apiKey, key)
	}
	return s.responseBytesReach(10*time.Second, atLeast(lookups*length))
}

func none(bytes int) bool { return bytes == 0 }

func atLeast(n int) func(bytes int) bool { return func(bytes int) bool { return bytes >= n } }

// tries is how often a test repeats steps that a busy machine may run too late.
const tries = 60

func maxResponses(n int64) option {
	return func(c *handlers.Config, _ *service.Config) { c.MaxResponses = n }
}

// TestUnreadResponses: the responses that an owner does not read take only its share of the bytes, and end with their
// connections. The server closes these long before the deadline of the whole response, here an hour.
func TestUnreadResponses(t *testing.T) {
	t.Parallel()
	const most = 16 << 20
	s := newService(t, maxResponses(most), func(c *handlers.Config, _ *service.Config) { c.WriteTimeout = time.Hour })
	key, length := s.largeLicense(keyAll)
	other, _ := s.largeLicense(keyOther)
	s.awaitResponseBytes(none)

	var refused []answer
	unread := most/2/length + 1
	for try := 1; ; try++ {
		shed := s.series("licet_commands_shed_total")["responses"]
		if s.stall(unread, keyAll, key, length) {
			refused = []answer{
				s.send("GET", "/v1/licenses/"+key, keyAll, ""),
				s.send("POST", "/v1/licenses/"+key+"/suspend", keyAll, ""),
			}
			s.send("GET", "/v1/orders", keyAll, "").must(t, 0)
			s.send("GET", "/v1/licenses/"+other, keyOther, "").must(t, 0)
		}
		if s.responseBytes() >= unread*length {
			if got := s.series("licet_commands_shed_total")["responses"] - shed; got != 2 {
				t.Errorf("shed: %v", got)
			}
			break
		}
		if try == tries {
			t.Fatalf("%d bytes of responses are in flight: the clients were cut off too early for the test",
				s.responseBytes())
		}
		s.awaitResponseBytes(none)
		s.send("POST", "/v1/licenses/"+key+"/reinstate", keyAll, "") // if the server did not refuse to suspend
	}
	for _, a := range refused {
		a.must(t, 50301)
	}
	if refused[0].header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.send("POST", "/v1/licenses/activate", "", `{"license_key":"`+key+`","device_id":"one"}`).must(t, 0)

	s.awaitResponseBytes(none)
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.send("POST", "/v1/licenses/"+key+"/suspend", keyAll, "").must(t, 0)
}

// TestUnreadResponsesHoldNoPlaces: a client does not read large responses, more than there are places for lists. Other
// clients still get lists, because unread responses take bytes only; see decision 10.
func TestUnreadResponsesHoldNoPlaces(t *testing.T) {
	t.Parallel()
	const listPlaces, most = 8, 256 << 20
	s := newService(t, maxResponses(most))
	key, length := s.largeLicense(keyAll)
	for try := 1; ; try++ {
		if s.stall(listPlaces+1, keyAll, key, length) {
			s.send("GET", "/v1/orders", keyOther, "").must(t, 0)
			s.send("GET", "/v1/orders", keyAll, "").must(t, 0)
		}
		bytes := s.responseBytes()
		if bytes >= (listPlaces+1)*length {
			break
		}
		if try == tries {
			t.Fatalf("%d bytes of responses are in flight: the clients were cut off too early for the test", bytes)
		}
		s.awaitResponseBytes(none)
	}
	s.awaitResponseBytes(none)
}

// TestResponsesThatAreRead: a response no longer counts once the client has read it, also if the next request came
// with the request, and once its client has closed the connection. A client that reads steadily gets
// all of it.
func TestResponsesThatAreRead(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key, length := s.largeLicense(keyAll)

	v := s.lookUp(keyAll, key)
	v.say(lookup(keyAll, key) + lookup(keyAll, key))
	for range 3 {
		if got := len(v.answer().must(t, 0).body); got != length {
			t.Errorf("%d bytes, want %d", got, length)
		}
	}
	s.awaitResponseBytes(none)
	v.wantServed()

	// The bytes go back before the server could have cut the client off, two seconds after the response began.
	const cutOff = 1900 * time.Millisecond
	for try := 1; ; try++ {
		began := time.Now()
		gone := s.lookUp(keyAll, key)
		s.awaitResponseBytes(atLeast(length))
		_ = gone.Close()
		s.awaitResponseBytes(none)
		took := time.Since(began)
		if took < cutOff {
			break
		}
		if try == tries {
			t.Fatalf("the bytes of a closed connection came back only after %v", took)
		}
	}

	steady := s.lookUp(keyAll, key)
	response, err := http.ReadResponse(steady.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	for left := length; left > 0; left -= min(left, 128<<10) {
		time.Sleep(100 * time.Millisecond) // the client is slow
		if _, err := io.CopyN(io.Discard, response.Body, int64(min(left, 128<<10))); err != nil {
			t.Fatalf("cut off with %d bytes left: %v", left, err)
		}
	}
}

// TestResponseOfAChange: a change is made although its response has no room, and the answer says that
// its outcome is not known.
func TestResponseOfAChange(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key, length := s.largeLicense(keyAll)
	s.config.MaxResponses = int64(length) / 2
	narrow := serve(t, handlers.New(s.config))
	s.sendTo(narrow, "GET", "/v1/licenses/"+key, keyAll, "").must(t, 50301)
	s.sendTo(narrow, "POST", "/v1/licenses/"+key+"/suspend", keyAll, "").must(t, 50400)
	if got := s.send("GET", "/v1/licenses/"+key, keyAll, "").text("status"); got != "suspended" {
		t.Errorf("the license is %s", got)
	}
}

// TestResponseOfAGrant: a grant whose response has no room is refused before it is made.
func TestResponseOfAGrant(t *testing.T) {
	t.Parallel()
	s := newService(t, maxResponses(100<<10))
	s.send("PUT", "/v1/products/editor", keyAll, `{"max_devices":0}`).must(t, 0)
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"editor","quantity":1000}`).must(t, 50301)
	metadata := `{"a":"` + strings.Repeat("x", 15<<10) + `"}`
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"editor","quantity":10,"metadata":`+metadata+`}`).must(t, 50301)
	list := s.send("GET", "/v1/licenses", keyAll, "").must(t, 0)
	if licenses, _ := list.data["licenses"].([]any); len(licenses) != 0 {
		t.Errorf("%d licenses were granted", len(licenses))
	}
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"editor","quantity":20}`).must(t, 0)
	s.awaitResponseBytes(none)
	s.send("POST", "/v1/licenses", keyAll, `{"product_id":"editor","quantity":0}`).must(t, 42200)
	if got := s.responseBytes(); got != 0 {
		t.Errorf("%d bytes are in flight", got)
	}
}
