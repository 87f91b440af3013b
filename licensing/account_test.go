package licensing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

func TestOwnerMatches(t *testing.T) {
	owner := func(account string, mode licensing.Mode) licensing.Owner {
		return licensing.Owner{AccountID: account, Mode: mode}
	}
	f := func(thing, condition licensing.Owner, want bool) {
		t.Helper()
		if got := thing.Matches(condition); got != want {
			t.Errorf("%+v matches %+v: %v, want %v", thing, condition, got, want)
		}
	}
	thing := owner("a", licensing.Live)
	f(thing, owner("a", licensing.Live), true)
	f(thing, owner("", ""), true)
	f(thing, owner("a", ""), true)
	f(thing, owner("", licensing.Live), true)

	f(thing, owner("b", licensing.Live), false)
	f(thing, owner("a", licensing.Test), false)
	f(thing, owner("b", ""), false)
	f(thing, owner("", licensing.Test), false)
	f(thing, owner("A", licensing.Live), false)
	f(thing, owner("a", "LIVE"), false)
	f(thing, owner("a ", licensing.Live), false)

	// An empty account or mode of the record is no wildcard.
	f(owner("", ""), owner("a", ""), false)
	f(owner("", ""), owner("", licensing.Live), false)
	f(owner("", ""), owner("", ""), true)
}

func TestAPIKeyUsable(t *testing.T) {
	past, future, never := noon.Add(-time.Millisecond), noon.Add(time.Millisecond), time.Time{}
	for name, c := range map[string]struct {
		expires, revoked time.Time
		want             bool
	}{
		"for ever":                   {never, never, true},
		"a millisecond left":         {future, never, true},
		"at its end":                 {noon, never, false},
		"expired":                    {past, never, false},
		"revoked":                    {never, past, false},
		"revoked now":                {never, noon, false},
		"revoked by a clock ahead":   {never, future, false},
		"revoked with time left":     {future, past, false},
		"both":                       {past, past, false},
		"revoked before its own end": {noon.Add(time.Hour), noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := licensing.APIKey{ExpiresAt: c.expires, RevokedAt: c.revoked}
			if got := k.Usable(noon); got != c.want {
				t.Errorf("usable: %v, want %v", got, c.want)
			}
		})
	}
}

func TestAPIKeyAllows(t *testing.T) {
	f := func(scope string, want bool, have ...string) {
		t.Helper()
		k := licensing.APIKey{Scopes: have}
		if got := k.Allows(scope); got != want {
			t.Errorf("%q allow %q: %v, want %v", have, scope, got, want)
		}
	}
	for _, s := range []string{"orders", "licenses", "products", "webhooks", "events", "keys"} {
		f(s, true, s)
		f(s+":read", true, s)
		f(s+":read", true, s+":read")
		f(s, false, s+":read")
		f(s, true, "*")
		f(s+":read", true, "*")
		f(s, false)
		f(s+":read", false)
		f(s, false, "other", "other:read")
		f(s, true, "other", s)
	}
	f("orders", false, "order")
	f("orders", false, "orders2")
	f("orders", false, "Orders")
	f("orders", false, "")
	f("orders", false, "orders ")
	f("orders", false, "orders:*")
	f("orders:read", false, "orders:write")
	f("orders:read", false, "licenses:read")
	f("orders:read", false, ":read")
	f("orders:read", false, "read")
	f("orders:read", false, "")
	f("orders", true, "licenses", "orders:read", "orders")
	f("*", false, "orders", "licenses", "products", "webhooks", "events", "keys")
	f("*", true, "*")
}

func TestRotateAPIKey(t *testing.T) {
	key := licensing.APIKey{ID: "key_1", SecretVersion: 1, MasterID: "a"}
	rotate := func(master string, at time.Time, overlap time.Duration, previous licensing.PreviousSecret) {
		t.Helper()
		before := key.SecretVersion
		if err := key.Rotate(master, at, overlap); err != nil {
			t.Fatal(err)
		}
		if key.SecretVersion != before+1 || key.MasterID != master || key.Previous != previous {
			t.Errorf("after a rotation: %+v, want the previous %+v", key, previous)
		}
	}
	rotate("b", noon, time.Hour, licensing.PreviousSecret{Version: 1, MasterID: "a", Until: noon.Add(time.Hour)})
	// Within the overlap: the oldest of three is dropped.
	rotate("b", noon.Add(time.Minute), time.Hour,
		licensing.PreviousSecret{Version: 2, MasterID: "b", Until: noon.Add(61 * time.Minute)})
	rotate("b", noon.Add(time.Minute), 0, licensing.PreviousSecret{})

	key.ExpiresAt = noon
	before := key
	if err := key.Rotate("c", noon, 0); !errors.Is(err, licensing.ErrAPIKeyNotFound) {
		t.Errorf("an expired key: %v", err)
	}
	if diff := cmp.Diff(before, key); diff != "" {
		t.Errorf("a refused rotation changed the key: %s", diff)
	}
	key.ExpiresAt = time.Time{}
	key.Revoke(noon)
	key.Revoke(noon.Add(time.Hour))
	if !key.RevokedAt.Equal(noon) {
		t.Errorf("revoked twice, it was revoked at %v", key.RevokedAt)
	}
	if err := key.Rotate("c", noon.Add(-time.Hour), 0); !errors.Is(err, licensing.ErrAPIKeyNotFound) {
		t.Errorf("a revoked key: %v", err)
	}
}

func TestValidAccountID(t *testing.T) {
	f := func(id string, want bool) {
		t.Helper()
		if got := licensing.ValidAccountID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
	f("acct_a", true)
	f("acct_01jd4q8x2m7r3n5t9v1w4y6z8a", true)
	f("acct_a_b_", true)
	f("acct_"+strings.Repeat("a", 59), true)

	f("acct_"+strings.Repeat("a", 60), false)
	f("acct_", false)
	f("", false)
	f("acme", false)
	f("acct-a", false)
	f("acct_A", false)
	f("acct_a/t", false)
	f("acct_a ", false)
	f("acct_ä", false)
	f("acct_a\x00", false)
}

func TestValidateAPIKey(t *testing.T) {
	f := func(change func(*licensing.APIKey), want ...string) {
		t.Helper()
		key := licensing.APIKey{Owner: licensing.Owner{AccountID: "acct_a", Mode: licensing.Live}, Name: "shop",
			Scopes: []string{"orders"}}
		change(&key)
		var got []string
		var problem *licensing.Error
		if errors.As(key.Validate(noon), &problem) {
			for _, field := range problem.Fields {
				got = append(got, field.Field)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", key, diff)
		}
	}
	f(func(*licensing.APIKey) {})
	for _, scope := range append(licensing.ScopeForms(), "*") {
		f(func(k *licensing.APIKey) { k.Scopes = []string{scope} })
	}
	f(func(k *licensing.APIKey) { k.Scopes = []string{"keys:read", "webhooks"} })
	f(func(k *licensing.APIKey) { k.ExpiresAt = noon.Add(time.Millisecond) })
	f(func(k *licensing.APIKey) { k.Name = strings.Repeat("ä", 255) })

	f(func(k *licensing.APIKey) { k.Owner.AccountID = "acme" }, "account")
	f(func(k *licensing.APIKey) { k.Owner.Mode = "Live" }, "mode")
	for _, name := range []string{"", "a\nb", "\x7f", "\xff", strings.Repeat("a", 256)} {
		f(func(k *licensing.APIKey) { k.Name = name }, "name")
	}
	for _, scopes := range [][]string{nil, {""}, {"order"}, {"orders", "Orders"}, {"*:read"}, {"orders:write"},
		{"orders:refunds:read"}, {"orders:payments:read"}, {"orders:subscriptions:read"},
		make([]string, 33)} {
		f(func(k *licensing.APIKey) { k.Scopes = scopes }, "scopes")
	}
	f(func(k *licensing.APIKey) { k.ExpiresAt = noon }, "expires_at")
	f(func(k *licensing.APIKey) { *k = licensing.APIKey{} }, "account", "mode", "name", "scopes")
}

func TestAPIKeyStatus(t *testing.T) {
	f := func(key licensing.APIKey, want licensing.APIKeyStatus) {
		t.Helper()
		if got := key.Status(noon); got != want {
			t.Errorf("%+v is %s, want %s", key, got, want)
		}
	}
	f(licensing.APIKey{}, licensing.APIKeyActive)
	f(licensing.APIKey{ExpiresAt: noon.Add(time.Millisecond)}, licensing.APIKeyActive)
	f(licensing.APIKey{ExpiresAt: noon}, licensing.APIKeyExpired)
	f(licensing.APIKey{RevokedAt: noon}, licensing.APIKeyRevoked)
	f(licensing.APIKey{RevokedAt: noon.Add(time.Hour)}, licensing.APIKeyRevoked)
	f(licensing.APIKey{ExpiresAt: noon, RevokedAt: noon}, licensing.APIKeyRevoked)
}

// TestAPIKeyBeyond: an API key can't give another key a scope that it lacks itself.
func TestAPIKeyBeyond(t *testing.T) {
	f := func(have, give, want string) {
		t.Helper()
		key := licensing.APIKey{Scopes: strings.Fields(have)}
		if got := strings.Join(key.Beyond(strings.Fields(give)), " "); got != want {
			t.Errorf("%q gives %q: beyond is %q, want %q", have, give, got, want)
		}
	}
	f("*", "* orders keys:read", "")
	f("orders", "orders orders:read", "")
	f("orders:read", "orders:read", "")
	f("orders:read", "orders", "orders")
	f("orders keys", "orders licenses:read * licenses:read", "licenses:read *")
	f(strings.Join(licensing.ScopeForms(), " "), "*", "*")
	f("*", "orders:payments orders:refunds", "")
	f("orders:payments", "orders:payments orders:refunds orders", "orders:refunds orders")
	f("orders", "orders:payments orders:refunds", "orders:payments orders:refunds")
	f("", "orders", "orders")
}

func TestValidAPIKeyID(t *testing.T) {
	f := func(id string, want bool) {
		t.Helper()
		if got := licensing.ValidAPIKeyID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
	f("key_01jd4q8x2m7r3n5t9v1w4y6z8a", true)
	f("key_test_all", true)
	f("key_"+strings.Repeat("x", 60), true)

	f("", false)
	f("key_", false)
	f("key_A", false)
	f("key_a/b", false)
	f("key_a.b", false)
	f("acct_acme", false)
	f("key_"+strings.Repeat("x", 61), false)
}
