package licet_test

import (
	"errors"
	"testing"
	"time"

	"licet"
)

func TestRenewRefusals(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	month := licet.Period{Months: 1}
	revoked := func(l *licet.License) { l.RevokedAt = at(-day) }
	for _, c := range []struct {
		name   string
		before func(*licet.License)
		renew  licet.RenewLicense
		want   licet.Reason
		field  string
	}{
		{"to the past", nil, licet.RenewLicense{Target: ours, ExpiresAt: at(-time.Millisecond)}, licet.ReasonInvalidField, "expires_at"},
		{"to now", nil, licet.RenewLicense{Target: ours, ExpiresAt: noon}, licet.ReasonInvalidField, "expires_at"},
		{
			"to the past again", func(l *licet.License) { l.ExpiresAt = at(-day) },
			licet.RenewLicense{Target: ours, ExpiresAt: at(-day)}, licet.ReasonInvalidField, "expires_at",
		},
		{"extend a perpetual one", nil, licet.RenewLicense{Target: ours, Extend: month}, licet.ReasonInvalidField, "extend"},
		{
			"extend one that has not started to run", func(l *licet.License) { l.Validity = month },
			licet.RenewLicense{Target: ours, Extend: month}, licet.ReasonInvalidField, "extend",
		},
		{"revoked, to a date", revoked, licet.RenewLicense{Target: ours, ExpiresAt: at(day)}, licet.ReasonInvalidLicenseState, ""},
		// Which error wins: fields, then existence, then license state.
		{"revoked, to the past", revoked, licet.RenewLicense{Target: ours, ExpiresAt: at(-day)}, licet.ReasonInvalidField, "expires_at"},
		{
			"not found, to the past", nil,
			licet.RenewLicense{Target: licet.Target{Key: otherKey}, ExpiresAt: at(-day)}, licet.ReasonInvalidField, "expires_at",
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
		renew licet.RenewLicense
		field string // that is refused, or none
	}{
		{"to the last minute", licet.RenewLicense{ExpiresAt: lastDay.Add(29 * time.Minute)}, ""},
		{"to a date that is in the year 10000 only in UTC", licet.RenewLicense{ExpiresAt: lastDay.Add(time.Hour).In(west)}, "expires_at"},
		{"within the last hour", licet.RenewLicense{Extend: licet.Period{Clock: 29 * time.Minute}}, ""},
		{"beyond the last hour", licet.RenewLicense{Extend: licet.Period{Clock: 30 * time.Minute}}, "extend"},
		{"by a month", licet.RenewLicense{Extend: licet.Period{Months: 1}}, "extend"},
		{"by more years than a time can hold", licet.RenewLicense{Extend: licet.Period{Years: 300_000_000_000}}, "extend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licet.License) { l.ExpiresAt = lastDay })
			c.renew.Target = ours
			_, err := run(t, &r, c.renew, noon)
			got := r.License.ExpiresAt
			if c.field == "" {
				if err != nil || got.Before(lastDay) || got.UTC().Year() != 9999 {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			var e *licet.Error
			if !errors.As(err, &e) || e.Reason != licet.ReasonInvalidField || len(e.Fields) != 1 || e.Fields[0].Field != c.field {
				t.Errorf("got %v, %+v, want a complaint about %s", got, err, c.field)
			}
		})
	}
}

// TestWhichErrorWins: existence, product, license state, device limit.
func TestWhichErrorWins(t *testing.T) {
	revoked := func(l *licet.License) { l.RevokedAt = noon }
	suspended := func(l *licet.License) { l.SuspendedAt = noon }
	expired := func(l *licet.License) { l.ExpiresAt = noon }
	full := func(l *licet.License) { l.MaxDevices = 1 }
	elsewhere := licet.Owner{AccountID: "acc_other"}
	for _, c := range []struct {
		name   string
		facts  []func(*licet.License)
		target licet.Target
		app    string
		want   licet.Reason
	}{
		{"limit", []func(*licet.License){full}, ours, app, licet.ReasonDeviceLimitReached},
		{"expired before limit", []func(*licet.License){full, expired}, ours, app, licet.ReasonLicenseExpired},
		{"suspended before expired", []func(*licet.License){full, expired, suspended}, ours, app, licet.ReasonLicenseSuspended},
		{"revoked before suspended", []func(*licet.License){full, expired, suspended, revoked}, ours, app, licet.ReasonLicenseRevoked},
		{"product before limit", []func(*licet.License){full}, ours, "other", licet.ReasonProductMismatch},
		{"product before state", []func(*licet.License){revoked}, ours, "other", licet.ReasonProductMismatch},
		{"no product demanded", []func(*licet.License){revoked}, ours, "", licet.ReasonLicenseRevoked},
		{"owner before product", []func(*licet.License){full, revoked}, licet.Target{Key: shopKey, Pin: elsewhere}, "other", licet.ReasonLicenseNotFound},
		{"caller before product", []func(*licet.License){full, revoked}, licet.Target{Key: shopKey, Caller: elsewhere}, "other", licet.ReasonLicenseNotFound},
		{"key before product", []func(*licet.License){full, revoked}, licet.Target{Key: otherKey}, "other", licet.ReasonLicenseNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licet.License) {
				for _, fact := range c.facts {
					fact(l)
				}
			}, "laptop")
			refuses(t, &r, licet.Activate{Target: c.target, ProductID: c.app, Device: "phone"}, noon, c.want)
		})
	}
	t.Run("a bound device is refused for another product too", func(t *testing.T) {
		r := licensed(nil, "laptop")
		refuses(t, &r, licet.Activate{Target: ours, ProductID: "other", Device: "laptop"}, noon, licet.ReasonProductMismatch)
	})
	t.Run("products compare exactly", func(t *testing.T) {
		r := licensed(nil)
		refuses(t, &r, licet.Activate{Target: ours, ProductID: "App", Device: "laptop"}, noon, licet.ReasonProductMismatch)
	})
}

// licenseCommands has every command that means a license.
func licenseCommands(target licet.Target) []licet.Command {
	return []licet.Command{
		licet.Activate{Target: target, Device: "phone"},
		licet.RemoveDevice{Target: target, Device: "laptop"},
		licet.SuspendLicense{Target: target},
		licet.ReinstateLicense{Target: target},
		licet.RevokeLicense{Target: target},
		licet.RenewLicense{Target: target, ExpiresAt: noon.Add(day)},
		licet.UpdateLicense{Target: target, MaxDevices: new(7)},
		licet.ValidateLicense{Target: target, Device: "tablet"},
		licet.DeactivateDevice{Target: target, Device: "tv"},
		licet.RedactLicense{Target: target},
	}
}

// TestTarget: to whoever may not see a license it does not exist, whatever the
// command, and with the very same error.
func TestTarget(t *testing.T) {
	account, live := licet.Owner{AccountID: "acc_shop"}, licet.Owner{Mode: licet.Live}
	otherAccount := licet.Owner{AccountID: "acc_other", Mode: licet.Live}
	otherMode := licet.Owner{AccountID: "acc_shop", Mode: licet.Test}
	for _, c := range []struct {
		name   string
		target licet.Target
		found  bool
	}{
		{"end user", licet.Target{Key: shopKey}, true},
		{"caller", licet.Target{Key: shopKey, Caller: shop}, true},
		{"pin", licet.Target{Key: shopKey, Pin: shop}, true},
		{"pin of the account only", licet.Target{Key: shopKey, Pin: account}, true},
		{"pin of the mode only", licet.Target{Key: shopKey, Pin: live}, true},
		{"caller and pin", licet.Target{Key: shopKey, Caller: shop, Pin: shop}, true},
		{"caller of another account", licet.Target{Key: shopKey, Caller: otherAccount}, false},
		{"caller of the other mode", licet.Target{Key: shopKey, Caller: otherMode}, false},
		{"pin of another account", licet.Target{Key: shopKey, Pin: otherAccount}, false},
		{"pin of the other mode", licet.Target{Key: shopKey, Pin: otherMode}, false},
		{"caller right, pin wrong", licet.Target{Key: shopKey, Caller: shop, Pin: otherMode}, false},
		{"caller wrong, pin right", licet.Target{Key: shopKey, Caller: otherMode, Pin: shop}, false},
		{"other key", licet.Target{Key: otherKey}, false},
		{"same 25 characters, other prefix", licet.Target{Key: "APP" + shopKey[3:]}, false},
		{"no key", licet.Target{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, command := range licenseCommands(c.target) {
				r := licensed(func(l *licet.License) { l.SelfService.Allowed = true }, "laptop")
				r.Metadata = &licet.Metadata{}
				if _, err := run(t, &r, command, noon); c.found {
					if err != nil {
						t.Errorf("%T answered %v", command, err)
					}
				} else if err != licet.ErrLicenseNotFound {
					t.Errorf("%T answered %#v, want ErrLicenseNotFound itself", command, err)
				}
			}
		})
	}
	t.Run("nothing stored", func(t *testing.T) {
		for _, command := range licenseCommands(ours) {
			r := licensed(nil)
			r.License = nil
			if _, err := run(t, &r, command, noon); err != licet.ErrLicenseNotFound {
				t.Errorf("%T answered %v", command, err)
			}
		}
	})
	t.Run("an order where a license was asked for", func(t *testing.T) {
		for _, command := range licenseCommands(ours) {
			r := licet.Record{Order: &licet.Order{OrderNo: "ord_1"}}
			refuses(t, &r, command, noon, licet.ReasonLicenseNotFound)
		}
	})
}

func TestCommandDeviceID(t *testing.T) {
	for _, c := range licenseCommands(ours) {
		want := ""
		switch c.(type) {
		case licet.Activate:
			want = "phone"
		case licet.RemoveDevice:
			want = "laptop"
		case licet.ValidateLicense:
			want = "tablet"
		case licet.DeactivateDevice:
			want = "tv"
		}
		if got := c.DeviceID(); got != want {
			t.Errorf("%T touches device %q, want %q", c, got, want)
		}
	}
	for _, c := range []licet.Command{licet.PayOrder{}, licet.CancelOrder{}, licet.ExpireOrder{}, licet.RefundOrder{}, licet.RedactOrder{}, licet.PutProduct{}, licet.DeleteProduct{}} {
		if got := c.DeviceID(); got != "" {
			t.Errorf("%T touches device %q", c, got)
		}
	}
}
