package main

import (
	"net"
	"testing"
)

// TestReachableAddress checks that the listener listens on the address that a node registers.
func TestReachableAddress(t *testing.T) {
	listener, err := listen(t.Context(), "internal-listen", "0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, endpoint := range []string{"http://127.0.0.1:2379", "http://[::1]:2379", "unix:///tmp/x",
		"http://no.such.host.invalid:2379"} {
		address := reachableAddress(t.Context(), listener.Addr(), []string{endpoint})
		t.Logf("%s: %s", endpoint, address)
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Errorf("with etcd at %s the address is %s: %v", endpoint, address, err)
			continue
		}
		conn.Close()
	}
}

// TestInternalAddress checks which addresses --internal-address accepts.
func TestInternalAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"10.0.0.7:7070": true, "node-1.example.com:1": true, "[fd00::7]:7070": true,
		"": false, "10.0.0.7": false, ":7070": false, "0.0.0.0:7070": false, "[::]:7070": false, "10.0.0.7:0": false,
		"10.0.0.7:99999": false, "10.0.0.7:http": false,
	} {
		if got := validAddress(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
