package main

import (
	"strings"
	"testing"
)

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	got, err := parseNetworks([]string{"10.1.2.3/8", " 192.0.2.7", "2001:db8::1/32", "::1", "0.0.0.0/0"})
	var texts []string
	for _, network := range got {
		texts = append(texts, network.String())
	}
	if want := "10.0.0.0/8 192.0.2.7/32 2001:db8::/32 ::1/128 0.0.0.0/0"; err != nil ||
		strings.Join(texts, " ") != want {
		t.Errorf("%v, %v, want %s", texts, err, want)
	}
	for _, bad := range []string{"", "10.0.0.0/33", "10.0.0/8", "10.0.0", "proxy.example.com", "::ffff:10.0.0.0/104",
		"::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.1:80", "*"} {
		if got, err := parseNetworks([]string{"10.0.0.0/8", bad}); err == nil ||
			!strings.Contains(err.Error(), "10.0.0.0/8") || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q is %v (%v)", bad, got, err)
		}
	}
}
