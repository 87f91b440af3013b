package stripe_test

import (
	"strings"
	"testing"

	"licet/internal/fakestripe"
	"licet/payment/stripe"
)

// TestKeys: a key of the wrong kind or mode is refused with what to do, and the text of the key is not repeated.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key  string
		live bool
		want string // a part of the error; empty: the key is accepted
	}{
		{"sk_test_canary0123", false, ""}, {"rk_test_canary0123", false, ""},
		{"sk_live_canary0123", true, ""}, {"rk_live_canary0123", true, ""},
		{"sk_live_canary0123", false, "test mode needs a test key"},
		{"rk_test_canary0123", true, "live mode needs a live key"},
		{"pk_test_canary0123", false, "publishable key"},
		{"", false, "is empty"},
		{"canary", false, "no secret key of Stripe"},
		{"sk_test_", false, "no secret key of Stripe"},
		{"sk_test_canary 0123", false, "no secret key of Stripe"},
		{"whsec_canary0123456", false, "no secret key of Stripe"},
		{"sk_test_" + strings.Repeat("canary", 50), false, "no secret key of Stripe"},
	} {
		err := stripe.ValidateKey(c.key, c.live)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, live %v: %v", c.key, c.live, err)
		case err != nil && strings.Contains(err.Error(), "canary"):
			t.Errorf("the error repeats the key: %v", err)
		}
	}
	const good = "whsec_0123456789abcdef"
	for _, c := range []struct {
		webhook []string
		ok      bool
	}{
		{nil, true}, {[]string{good}, true}, {[]string{good, good + "2"}, true},
		{[]string{good, good, good}, false}, {[]string{"sk_test_0123456789"}, false}, {[]string{"whsec_1"}, false},
		{[]string{good + "\n"}, false},
	} {
		secrets := stripe.Secrets{Key: testKey, Webhook: c.webhook}
		if err := secrets.Validate(false); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.webhook, err)
		}
	}
}

func TestBase(t *testing.T) {
	for base, ok := range map[string]bool{
		stripe.DefaultBase: true, "https://stripe.example": true, "http://127.0.0.1:12111": true,
		"http://localhost:1/": true, "http://[::1]:80": true,
		"http://stripe.example": false, "https://stripe.example/v1": false, "https://a:b@stripe.example": false,
		"ftp://stripe.example": false, "stripe.example": false, "": false, "https://stripe.example?x=1": false,
	} {
		if err := stripe.ValidateBase(base); (err == nil) != ok {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// TestVerify: Stripe says whether a key is valid. Without an answer of Stripe the key may be right.
func TestVerify(t *testing.T) {
	f := newFixture(t)
	verify := func() (bool, error) { return f.provider.Verify(t.Context()) }
	if refused, err := verify(); refused || err != nil {
		t.Errorf("a right key: %v, %v", refused, err)
	}
	f.fake.Fail("GET", sessionsPath, fakestripe.Busy, 1)
	if refused, err := verify(); refused || err == nil {
		t.Errorf("a busy Stripe: %v, %v", refused, err)
	}
	f.fake.Forbid(testKey, sessionsPath)
	if refused, err := verify(); !refused || err == nil || !strings.Contains(err.Error(), "permissions") {
		t.Errorf("without a permission: %v, %v", refused, err)
	}
	f.secrets.Key = "sk_test_wrong0123456789"
	if refused, err := verify(); !refused || err == nil {
		t.Errorf("a wrong key: %v, %v", refused, err)
	}
	f.fake.Close()
	if refused, err := verify(); refused || err == nil {
		t.Errorf("without a connection: %v, %v", refused, err)
	}
}
