package licensing_test

import (
	"errors"
	"testing"
	"time"

	"licet/licensing"
)

func TestRenewRefusals(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	month := licensing.Period{Months: 1}
	revoked := func(l *licensing.License) { l.RevokedAt = at(-day) }
	for _, c := range []struct {
		name   string
		before func(*licensing.License)
		renew  licensing.RenewLicense
		want   licensing.Reason
		field  string
	}{
		{"to the past", nil, licensing.RenewLicense{Target: ours, ExpiresAt: at(-time.Millisecond)},
			licensing.ReasonInvalidField, "expires_at"},
		{"to now", nil, licensing.RenewLicense{Target: ours, ExpiresAt: noon}, licensing.ReasonInvalidField,
			"expires_at"},
		{
			"to the past again", func(l *licensing.License) { l.ExpiresAt = at(-day) },
			licensing.RenewLicense{Target: ours, ExpiresAt: at(-day)}, licensing.ReasonInvalidField, "expires_at",
		},
		{"extend a perpetual one", nil, licensing.RenewLicense{Target: ours, Extend: month},
			licensing.ReasonInvalidField, "extend"},
		{
			"extend a license that has not started to run", func(l *licensing.License) { l.Validity = month },
			licensing.RenewLicense{Target: ours, Extend: month}, licensing.ReasonInvalidField, "extend",
		},
		{"revoked, to a date", revoked, licensing.RenewLicense{Target: ours, ExpiresAt: at(day)},
			licensing.ReasonInvalidLicenseState, ""},
		// Which error wins: fields, then existence, then license state.
		{"revoked, to the past", revoked, licensing.RenewLicense{Target: ours, ExpiresAt: at(-day)},
			licensing.ReasonInvalidField, "expires_at"},
		{
			"not found, to the past", nil,
			licensing.RenewLicense{Target: licensing.Target{Key: otherKey}, ExpiresAt: at(-day)},
			licensing.ReasonInvalidField, "expires_at",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(c.before)
			e := refuses(t, &r, c.renew, noon, c.want)
			if c.field == "" {
				return
			}
			if len(e.Fields) != 1 || e.Fields[0].Field != c.field || e.Fields[0].Problem == "" {
				t.Errorf("complains about %+v, want %s", e.Fields, c.field)
			}
		})
	}
}

// TestRenewStaysWithinRFC3339: an end after the year 9999 could be stored, but
// no answer could ever show it.
func TestRenewStaysWithinRFC3339(t *testing.T) {
	lastDay := time.Date(9999, time.December, 31, 23, 30, 0, 0, time.UTC)
	west := time.FixedZone("", -3600)
	for _, c := range []struct {
		name  string
		renew licensing.RenewLicense
		field string // that is refused, or none
	}{
		{"to the last minute", licensing.RenewLicense{ExpiresAt: lastDay.Add(29 * time.Minute)}, ""},
		{"to a date that is in the year 10000 only in UTC",
			licensing.RenewLicense{ExpiresAt: lastDay.Add(time.Hour).In(west)}, "expires_at"},
		{"within the last hour", licensing.RenewLicense{Extend: licensing.Period{Clock: 29 * time.Minute}}, ""},
		{"beyond the last hour", licensing.RenewLicense{Extend: licensing.Period{Clock: 30 * time.Minute}}, "extend"},
		{"by a month", licensing.RenewLicense{Extend: licensing.Period{Months: 1}}, "extend"},
		{"by too many years for a time", licensing.RenewLicense{Extend: licensing.Period{Years: 300_000_000_000}},
			"extend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licensing.License) { l.ExpiresAt = lastDay })
			c.renew.Target = ours
			_, err := run(t, &r, c.renew, noon)
			got := r.License.ExpiresAt
			if c.field == "" {
				if err != nil || got.Before(lastDay) || got.UTC().Year() != 9999 {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			var e *licensing.Error
			if !errors.As(err, &e) || e.Reason != licensing.ReasonInvalidField || len(e.Fields) != 1 ||
				e.Fields[0].Field != c.field {
				t.Errorf("got %v, %+v, want a complaint about %s", got, err, c.field)
			}
		})
	}
}

// TestWhichErrorWins: existence, product, license state, device limit.
func TestWhichErrorWins(t *testing.T) {
	revoked := func(l *licensing.License) { l.RevokedAt = noon }
	suspended := func(l *licensing.License) { l.SuspendedAt = noon }
	expired := func(l *licensing.License) { l.ExpiresAt = noon }
	full := func(l *licensing.License) { l.MaxDevices = 1 }
	elsewhere := licensing.Owner{AccountID: "acc_other"}
	for _, c := range []struct {
		name   string
		facts  []func(*licensing.License)
		target licensing.Target
		app    string
		want   licensing.Reason
	}{
		{"limit", []func(*licensing.License){full}, ours, app, licensing.ReasonDeviceLimitReached},
		{"expired before limit", []func(*licensing.License){full, expired}, ours, app, licensing.ReasonLicenseExpired},
		{"suspended before expired", []func(*licensing.License){full, expired, suspended}, ours, app,
			licensing.ReasonLicenseSuspended},
		{"revoked before suspended", []func(*licensing.License){full, expired, suspended, revoked}, ours, app,
			licensing.ReasonLicenseRevoked},
		{"product before limit", []func(*licensing.License){full}, ours, "other", licensing.ReasonProductMismatch},
		{"product before state", []func(*licensing.License){revoked}, ours, "other", licensing.ReasonProductMismatch},
		{"no product demanded", []func(*licensing.License){revoked}, ours, "", licensing.ReasonLicenseRevoked},
		{"owner before product", []func(*licensing.License){full, revoked},
			licensing.Target{Key: shopKey, Pin: elsewhere}, "other", licensing.ReasonLicenseNotFound},
		{"caller before product", []func(*licensing.License){full, revoked},
			licensing.Target{Key: shopKey, Caller: elsewhere}, "other", licensing.ReasonLicenseNotFound},
		{"key before product", []func(*licensing.License){full, revoked}, licensing.Target{Key: otherKey}, "other",
			licensing.ReasonLicenseNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licensing.License) {
				for _, fact := range c.facts {
					fact(l)
				}
			}, "laptop")
			refuses(t, &r, licensing.Activate{Target: c.target, ProductID: c.app, Device: "phone"}, noon, c.want)
		})
	}
	t.Run("a bound device is refused for another product too", func(t *testing.T) {
		r := licensed(nil, "laptop")
		refuses(t, &r, licensing.Activate{Target: ours, ProductID: "other", Device: "laptop"}, noon,
			licensing.ReasonProductMismatch)
	})
	t.Run("products compare exactly", func(t *testing.T) {
		r := licensed(nil)
		refuses(t, &r, licensing.Activate{Target: ours, ProductID: "App", Device: "laptop"}, noon,
			licensing.ReasonProductMismatch)
	})
}

// licenseCommands returns every command that names a license.
func licenseCommands(target licensing.Target) []licensing.Command {
	return []licensing.Command{
		licensing.Activate{Target: target, Device: "phone"},
		licensing.RemoveDevice{Target: target, Device: "laptop"},
		licensing.SuspendLicense{Target: target},
		licensing.ReinstateLicense{Target: target},
		licensing.RevokeLicense{Target: target},
		licensing.RenewLicense{Target: target, ExpiresAt: noon.Add(day)},
		licensing.UpdateLicense{Target: target, MaxDevices: new(7)},
		licensing.ValidateLicense{Target: target, Device: "tablet"},
		licensing.DeactivateDevice{Target: target, Device: "tv"},
		licensing.RedactLicense{Target: target},
	}
}

// TestTarget: to a caller that may not see a license, every command returns the same error as for a license that does
// not exist.
func TestTarget(t *testing.T) {
	account, live := licensing.Owner{AccountID: "acc_shop"}, licensing.Owner{Mode: licensing.Live}
	otherAccount := licensing.Owner{AccountID: "acc_other", Mode: licensing.Live}
	otherMode := licensing.Owner{AccountID: "acc_shop", Mode: licensing.Test}
	for _, c := range []struct {
		name   string
		target licensing.Target
		found  bool
	}{
		{"end user", licensing.Target{Key: shopKey}, true},
		{"caller", licensing.Target{Key: shopKey, Caller: shop}, true},
		{"pin", licensing.Target{Key: shopKey, Pin: shop}, true},
		{"pin of the account only", licensing.Target{Key: shopKey, Pin: account}, true},
		{"pin of the mode only", licensing.Target{Key: shopKey, Pin: live}, true},
		{"caller and pin", licensing.Target{Key: shopKey, Caller: shop, Pin: shop}, true},
		{"caller of another account", licensing.Target{Key: shopKey, Caller: otherAccount}, false},
		{"caller of the other mode", licensing.Target{Key: shopKey, Caller: otherMode}, false},
		{"pin of another account", licensing.Target{Key: shopKey, Pin: otherAccount}, false},
		{"pin of the other mode", licensing.Target{Key: shopKey, Pin: otherMode}, false},
		{"caller right, pin wrong", licensing.Target{Key: shopKey, Caller: shop, Pin: otherMode}, false},
		{"caller wrong, pin right", licensing.Target{Key: shopKey, Caller: otherMode, Pin: shop}, false},
		{"other key", licensing.Target{Key: otherKey}, false},
		{"same 25 characters, other prefix", licensing.Target{Key: shopKey.ID().Key("APP")}, false},
		{"no key", licensing.Target{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, command := range licenseCommands(c.target) {
				r := licensed(func(l *licensing.License) { l.SelfService.Allowed = true }, "laptop")
				r.Metadata = &licensing.Metadata{}
				if _, err := run(t, &r, command, noon); c.found {
					if err != nil {
						t.Errorf("%T answered %v", command, err)
					}
				} else if err != licensing.ErrLicenseNotFound {
					t.Errorf("%T answered %#v, want ErrLicenseNotFound itself", command, err)
				}
			}
		})
	}
	t.Run("nothing stored", func(t *testing.T) {
		for _, command := range licenseCommands(ours) {
			r := licensed(nil)
			r.License = nil
			if _, err := run(t, &r, command, noon); err != licensing.ErrLicenseNotFound {
				t.Errorf("%T answered %v", command, err)
			}
		}
	})
	t.Run("an order where a license was asked for", func(t *testing.T) {
		for _, command := range licenseCommands(ours) {
			r := licensing.Record{Order: &licensing.Order{OrderNo: "ord_1"}}
			refuses(t, &r, command, noon, licensing.ReasonLicenseNotFound)
		}
	})
}

func TestCommandDeviceID(t *testing.T) {
	for _, c := range licenseCommands(ours) {
		want := ""
		switch c.(type) {
		case licensing.Activate:
			want = "phone"
		case licensing.RemoveDevice:
			want = "laptop"
		case licensing.ValidateLicense:
			want = "tablet"
		case licensing.DeactivateDevice:
			want = "tv"
		}
		if got := c.DeviceID(); got != want {
			t.Errorf("%T touches device %q, want %q", c, got, want)
		}
	}
	for _, c := range []licensing.Command{licensing.PayOrder{}, licensing.CancelOrder{}, licensing.ExpireOrder{},
		licensing.RefundOrder{}, licensing.RedactOrder{}, licensing.PutProduct{}, licensing.DeleteProduct{}} {
		if got := c.DeviceID(); got != "" {
			t.Errorf("%T touches device %q", c, got)
		}
	}
}
