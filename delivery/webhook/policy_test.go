package webhook_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"licet/delivery/webhook"
)

// public returns a policy that allows a port, so that only the address can be the reason for a refusal.
func public(port uint16) webhook.Policy {
	return webhook.Policy{Ports: []uint16{port}}
}

// TestThisMachineIsNotReached uses real listeners, which would accept a connection.
func TestThisMachineIsNotReached(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.9.9.9", "::1"} {
		tr := newTrap(t, net.JoinHostPort(address, "0"))
		zone := map[string][]string{
			"shop.example.":  {address},
			"both.example.":  {address, "10.0.0.1"},
			"many.example.":  {"192.168.0.1", address, "fd00::1", "169.254.169.254"},
			"later.example.": {"10.0.0.1", then, address},
		}
		hosts := []string{bracketed(address), "shop.example", "SHOP.example.", "both.example", "many.example",
			"later.example", "later.example"}
		if address == "127.0.0.1" {
			zone["mapped.example."] = []string{"::ffff:127.0.0.1"}
			zone["old.example."] = []string{"::127.0.0.1"}
			zone["zero.example."] = []string{"0.0.0.0"} // this machine, on Linux
			zone["none.example."] = []string{"::"}
			hosts = append(hosts, "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "localhost", "127.1",
				"2130706433",
				"mapped.example", "old.example", "zero.example", "none.example")
		}
		s := newSender(t, nil, under(public(tr.port())), func(cfg *webhook.Config) { cfg.Resolver = names(t, zone) })
		for _, host := range hosts {
			got := send(t, s, fmt.Sprintf("https://%s:%d/", host, tr.port()))
			want := webhook.FailureAddress
			if !strings.Contains(host, "example") {
				want = webhook.FailureURL // refused before a name is resolved
			}
			if got.Outcome != webhook.Retry || got.Failure != want || got.Status != 0 {
				t.Errorf("%s: got %+v, want %s", host, got, want)
			}
		}
		if tr.caught(t) {
			t.Errorf("%s was reached", address)
		}
	}
}

// TestTheTrapCatches: the listeners of the test above would notice a connection.
func TestTheTrapCatches(t *testing.T) {
	tr := newTrap(t, "127.0.0.1:0")
	if tr.caught(t) {
		t.Error("the trap has caught a connection before the first one")
	}
	conn, err := net.Dial("tcp", tr.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if !tr.caught(t) {
		t.Error("the trap has caught no connection")
	}
}

// TestANameThatChangesItsAddress: a name resolves first to an allowed address and then to a forbidden one (DNS
// rebinding).
func TestANameThatChangesItsAddress(t *testing.T) {
	var asked int
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Connection", "close")
	})
	port := uint16(server.Listener.Addr().(*net.TCPAddr).Port)
	tr := newTrap(t, fmt.Sprintf("127.0.0.2:%d", port))
	s := newSender(t, server, under(webhook.Policy{Networks: networks("127.0.0.1/32"), Ports: []uint16{port}}),
		func(cfg *webhook.Config) {
			// The server's certificate has this name.
			cfg.Resolver = names(t, map[string][]string{"example.com.": {"127.0.0.1", then, "127.0.0.2"}})
		})
	url := fmt.Sprintf("https://example.com:%d/", port)
	if got := send(t, s, url); got.Outcome != webhook.Delivered {
		t.Fatalf("first: got %+v", got)
	}
	s.Close() // closes the HTTP/2 connection too
	for range 3 {
		if got := send(t, s, url); got.Failure != webhook.FailureAddress {
			t.Errorf("then: got %+v", got)
		}
	}
	if asked != 1 || tr.caught(t) {
		t.Errorf("the receiver was asked %d times, or the other address was", asked)
	}
}

// TestOneGoodAddressIsEnough: the sender skips the forbidden addresses of a name.
func TestOneGoodAddressIsEnough(t *testing.T) {
	server := receiver(t, func(http.ResponseWriter, *http.Request) {})
	port := uint16(server.Listener.Addr().(*net.TCPAddr).Port)
	tr := newTrap(t, fmt.Sprintf("127.0.0.2:%d", port))
	s := newSender(t, server, under(webhook.Policy{Networks: networks("127.0.0.1/32"), Ports: []uint16{port}}),
		func(cfg *webhook.Config) {
			cfg.Resolver = names(t, map[string][]string{"example.com.": {"127.0.0.2", "10.0.0.1", "127.0.0.1"}})
		})
	if got := send(t, s, fmt.Sprintf("https://example.com:%d/", port)); got.Outcome != webhook.Delivered {
		t.Errorf("got %+v", got)
	}
	if tr.caught(t) {
		t.Error("the first address was reached")
	}
}

// TestRedirectsAreNotFollowed: an allowed receiver redirects to forbidden addresses and to allowed ones.
func TestRedirectsAreNotFollowed(t *testing.T) {
	tr := newTrap(t, "127.0.0.2:0")
	var asked int
	var location string
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	s := newSender(t, server)
	for i, to := range []string{
		"http://169.254.169.254/latest/meta-data/", "https://" + tr.Addr().String() + "/", "http://" +
			tr.Addr().String() + "/", server.URL, "/", "//[::1]/",
	} {
		location = to
		if got := send(t, s, server.URL); got.Outcome != webhook.Retry || got.Failure != webhook.FailureRedirect ||
			got.Status != 307 || asked != i+1 {
			t.Errorf("to %s: got %+v after %d requests", to, got, asked)
		}
	}
	if tr.caught(t) {
		t.Error("a redirect was followed")
	}
}

// TestPlainHTTPStaysHere: with loopback allowed, http:// does not leave this machine, even if a local name resolves to
// another machine.
func TestPlainHTTPStaysHere(t *testing.T) {
	var asked int
	plain := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ })
	server := startPlain(t, plain)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	s := newSender(t, server, under(webhook.Policy{Loopback: true, Networks: networks("0.0.0.0/0", "::/0"),
		Ports: []uint16{uint16(port)}}), func(cfg *webhook.Config) {
		cfg.Resolver = names(t, map[string][]string{"in.localhost.": {"127.0.0.1"}, "out.localhost.": {"192.0.2.1"}})
	})
	if got := send(t, s, fmt.Sprintf("http://in.localhost:%d/", port)); got.Outcome != webhook.Delivered || asked != 1 {
		t.Errorf("got %+v", got)
	}
	if got := send(t, s, fmt.Sprintf("http://out.localhost:%d/", port)); got.Failure != webhook.FailureAddress {
		t.Errorf("got %+v", got)
	}
}

func TestNamesThatAreNotFound(t *testing.T) {
	s := newSender(t, nil, under(webhook.Policy{}), func(cfg *webhook.Config) { cfg.Resolver = names(t, nil) })
	if got := send(t, s, "https://shop.example/"); got.Outcome != webhook.Retry || got.Failure != webhook.FailureDNS {
		t.Errorf("got %+v", got)
	}
	s = newSender(t, nil, under(webhook.Policy{}), func(cfg *webhook.Config) {
		cfg.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, fmt.Errorf("no name server")
		}}
	})
	if got := send(t, s, "https://shop.example/"); got.Failure != webhook.FailureDNS {
		t.Errorf("got %+v", got)
	}
}
