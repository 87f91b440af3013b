package handlers_test

import (
	"strings"
	"testing"

	"licet/licensing/keyring"
)

// TestRequestIDsHoldNoSecret: the service replaces an id that contains a secret, wherever in the id and in any case,
// also in a refusal on the connection. It keeps ids that only look similar.
func TestRequestIDsHoldNoSecret(t *testing.T) {
	t.Parallel()
	key := serviceKeys.Text(serviceKeys.Mint("EDITOR", ownerAcme, [keyring.LicenseKeyEntropy]byte{1, 2, 3}))
	mistyped := key[:len(key)-1] + "0"
	if strings.HasSuffix(key, "0") {
		mistyped = key[:len(key)-1] + "1"
	}
	s, full := newService(t), newService(t, smallest)
	full.fill()
	c := full.dial()
	for id, kept := range map[string]bool{
		"lk_test_x":                            false,
		"key=lk_live_0123":                     false,
		"a:LK_TEST_0123":                       false,
		"secret:lks_test_0123":                 false,
		"x/whsec_MfKQ9r8G":                     false,
		key:                                    false,
		strings.ToLower(key):                   false,
		"license=" + key:                       false,
		"a-b-" + key + "-c":                    false,
		"X" + key:                              false, // the prefix of a key may begin anywhere
		mistyped:                               true,
		key[:len(key)-1]:                       true,
		"walk_test_1":                          false,
		"walk_through":                         true,
		"talk_tests_1":                         true,
		"01M7WDPQKGCTE9HV6VK8BXDVSB":           true,
		"3f2504e0-4f89-41d3-9a0c-0305e82c3301": true,
		"a-b-c-d-e-f-g":                        true,
		strings.Repeat("-", 128):               true,
	} {
		if got := s.send("GET", "/livez", "", "", "X-Request-Id", id).header.Get("X-Request-Id"); (got == id) != kept {
			t.Errorf("the id %q became %q", id, got)
		}
		c.write(activationText("{}", "X-Request-Id: "+id))
		if a := c.read(); (a.header.Get("X-Request-Id") == id) != kept || !early(a) {
			t.Errorf("in a refusal the id %q became %q", id, a.header.Get("X-Request-Id"))
		}
	}
}
