package licet_test

import (
	"testing"
	"time"

	"licet"
)

func TestOwnerMatches(t *testing.T) {
	owner := func(account string, mode licet.Mode) licet.Owner {
		return licet.Owner{AccountID: account, Mode: mode}
	}
	f := func(thing, condition licet.Owner, want bool) {
		t.Helper()
		if got := thing.Matches(condition); got != want {
			t.Errorf("%+v matches %+v: %v, want %v", thing, condition, got, want)
		}
	}
	thing := owner("a", licet.Live)
	f(thing, owner("a", licet.Live), true)
	f(thing, owner("", ""), true)
	f(thing, owner("a", ""), true)
	f(thing, owner("", licet.Live), true)

	f(thing, owner("b", licet.Live), false)
	f(thing, owner("a", licet.Test), false)
	f(thing, owner("b", ""), false)
	f(thing, owner("", licet.Test), false)
	f(thing, owner("A", licet.Live), false)
	f(thing, owner("a", "LIVE"), false)
	f(thing, owner("a ", licet.Live), false)

	// An empty member of the thing is no wildcard.
	f(owner("", ""), owner("a", ""), false)
	f(owner("", ""), owner("", licet.Live), false)
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
			k := licet.APIKey{ExpiresAt: c.expires, RevokedAt: c.revoked}
			if got := k.Usable(noon); got != c.want {
				t.Errorf("usable: %v, want %v", got, c.want)
			}
		})
	}
}

func TestAPIKeyAllows(t *testing.T) {
	f := func(scope string, want bool, have ...string) {
		t.Helper()
		k := licet.APIKey{Scopes: have}
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
