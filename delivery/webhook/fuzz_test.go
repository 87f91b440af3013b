package webhook_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"licet/delivery/webhook"
)

// FuzzCheckURL checks each accepted URL against the promises of CheckURL, by other means than CheckURL uses.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://shop.example.com/licet?a=b", "http://localhost:9000/", "https://8.8.8.8:443",
		"https://[::ffff:127.0.0.1]/", "https://127.1/",
		"https://user@a.example/", "https://a.example/#x", "https://[fe80::1%25eth0]/", "https://a.example:99999/",
		"HTTPS://A.EXAMPLE.:443",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	var refused []netip.Addr
	for _, address := range denied() {
		refused = append(refused, netip.MustParseAddr(address).Unmap())
	}
	f.Fuzz(func(t *testing.T, raw string, loopback bool) {
		policy := webhook.Policy{Loopback: loopback}
		problem := policy.CheckURL(raw)
		if problem != "" {
			if !strings.HasPrefix(problem, "must ") || strings.HasSuffix(problem, ".") {
				t.Errorf("%q is no problem of a member", problem)
			}
			return
		}
		request, err := http.NewRequest(http.MethodPost, raw, nil)
		if err != nil {
			t.Fatalf("it passed, and can't be sent to: %v", err)
		}
		u := request.URL
		ip, _ := netip.ParseAddr(u.Hostname())
		ip = ip.Unmap()
		local := ip.IsLoopback() || strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), "localhost") ||
			strings.HasSuffix(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), ".localhost")
		switch {
		case u.Hostname() == "", u.User != nil, u.Fragment != "", len(raw) > 2048, u.Port() == "0":
			t.Errorf("passed as %+v", u)
		case local && !loopback:
			t.Error("leads here")
		case u.Scheme != "https" && (u.Scheme != "http" || !local):
			t.Errorf("the scheme is %s", u.Scheme)
		case !local && u.Port() != "" && u.Port() != "443":
			t.Errorf("the port is %s", u.Port())
		case !local && ip.IsValid() && (slices.Contains(refused, ip) || ip.IsPrivate() || ip.IsLinkLocalUnicast() ||
			ip.IsMulticast() || ip.IsUnspecified()):
			t.Errorf("leads to %s", ip)
		}
		if _, err := url.ParseRequestURI(raw); err != nil {
			t.Error(err)
		}
	})
}

func FuzzParseSecret(f *testing.F) {
	f.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f.Add("whsec_")
	f.Add("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f.Fuzz(func(t *testing.T, text string) {
		if secret, err := webhook.ParseSecret(text); err == nil && secret.Text() != text {
			t.Errorf("read from %q and written as %q", text, secret.Text())
		}
	})
}
