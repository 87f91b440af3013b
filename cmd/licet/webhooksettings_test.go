package main

import (
	"strings"
	"testing"
)

// TestWebhookPolicy: what the flags let webhooks reach.
func TestWebhookPolicy(t *testing.T) {
	f := func(networks, url string, loopback, allowed bool) {
		t.Helper()
		cfg := eventsConfig{Ports: []uint{443, 8443}, Loopback: loopback}
		if networks != "" {
			cfg.Networks = strings.Split(networks, ",")
		}
		policy, err := cfg.policy()
		if err != nil {
			t.Fatal(err)
		}
		if problem := policy.CheckURL(url); (problem == "") != allowed {
			t.Errorf("with %q and loopback %v, %s is refused with %q", networks, loopback, url, problem)
		}
	}
	f("", "https://203.0.114.7/hook", false, true)
	f("", "https://203.0.114.7:8443/hook", false, true)
	f("", "https://203.0.114.7:9443/hook", false, false)
	f("", "https://10.1.2.3/hook", false, false)
	f("192.0.2.0/24,10.0.0.0/8", "https://10.1.2.3/hook", false, true)
	f("", "http://127.0.0.1:9000/hook", false, false)
	f("", "http://127.0.0.1:9000/hook", true, true)
	f("127.0.0.0/8", "http://127.0.0.1:9000/hook", false, true)
	f("127.0.0.1", "http://localhost:9000/hook", false, true)
	f("::1", "http://[::1]:9000/hook", false, true)
	f("10.0.0.0/8", "http://127.0.0.1:9000/hook", false, false)
	f("0.0.0.0/0", "http://127.0.0.1:9000/hook", false, false)
}
