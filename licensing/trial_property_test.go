package licensing_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/licensing"
)

// naiveTrial is a trial of a product and its license, written the long way.
type naiveTrial struct {
	Remembered, Licensed bool // each is there, or not
	Licenses             int  // that trials have issued
	Starter              string

	Order              string // that upgraded the license
	Upgraded           time.Time
	Expires            time.Time
	Max                int
	Suspended, Revoked bool
	RevokedAt          time.Time
	Buyer              string
}

// trialAnswer is the result of a command, as Apply or the naive trial returns it.
type trialAnswer struct {
	Reason           licensing.Reason
	Created, Removed bool
	Starter          string // the device of the trial
}

const naiveTrialDays, naiveMemoryDays = 14, 90

// start is a request of a device for a trial.
func (n *naiveTrial) start(device, buyer string, now time.Time) trialAnswer {
	if n.Remembered {
		return trialAnswer{Starter: n.Starter}
	}
	*n = naiveTrial{Remembered: true, Licensed: true, Licenses: n.Licenses + 1, Starter: device, Buyer: buyer, Max: 2,
		Expires: now.Add(naiveTrialDays * day)}
	return trialAnswer{Created: true, Starter: device}
}

// upgrade is the payment of an order that names the license.
func (n *naiveTrial) upgrade(order string, now time.Time) trialAnswer {
	switch {
	case n.Licensed && n.Order == order:
		return trialAnswer{}
	case !n.Licensed, !n.Remembered, n.Order != "", n.Suspended, n.Revoked:
		return trialAnswer{Reason: licensing.ReasonOf(licensing.ErrTrialGone)}
	}
	n.Order, n.Upgraded, n.Max, n.Expires, n.Buyer = order, now, 5, now.AddDate(0, 0, 365), ""
	return trialAnswer{}
}

// forget is a sweep.
func (n *naiveTrial) forget(now time.Time) trialAnswer {
	if !n.Licensed {
		return trialAnswer{Reason: "license_not_found"}
	}
	since := n.Expires
	if n.Order != "" {
		since = n.Upgraded
	}
	ended := !now.Before(since.Add(naiveMemoryDays*day)) && (n.Order != "" || !n.Suspended)
	revoked := n.Order == "" && n.Revoked && !now.Before(n.RevokedAt.Add(time.Hour))
	if !n.Remembered || !ended && !revoked {
		return trialAnswer{}
	}
	if n.Order == "" {
		*n = naiveTrial{Licenses: n.Licenses}
	} else {
		n.Remembered, n.Starter = false, ""
	}
	return trialAnswer{Removed: true}
}

// TestTrialAgainstNaiveModel runs random commands on a trial and its license, and on the naive trial.
func TestTrialAgainstNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, model := noon, naiveTrial{}
		var trial, license licensing.Record
		name := licensing.TrialName{1}
		key := func(number int) licensing.LicenseKey { return licensing.LicenseID{byte(number)}.Key("LIC") }
		apply := func(r *licensing.Record, c licensing.Command) (trialAnswer, licensing.Result) {
			result, err := licensing.Apply(r, c, now)
			if err != nil {
				return trialAnswer{Reason: licensing.ReasonOf(err)}, result
			}
			return trialAnswer{Created: result.Created, Removed: result.Removed}, result
		}
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, day, 13 * day, 45 * day,
				90*day - time.Millisecond, 90 * day, time.Hour, time.Hour - time.Millisecond,
				-time.Minute}).Draw(t, "clock"))
			device := rapid.SampledFrom([]string{"pc", "mac"}).Draw(t, "device")
			buyer := rapid.SampledFrom([]string{"", "ada@example.com"}).Draw(t, "buyer")
			order := "ord_" + strconv.Itoa(rapid.IntRange(1, 2).Draw(t, "order"))
			var want, got trialAnswer
			switch kind := rapid.SampledFrom([]string{"start", "start", "upgrade", "upgrade", "forget", "forget",
				"forget", "suspend", "reinstate", "reinstate", "revoke"}).Draw(t, "kind"); kind {
			case "start":
				want = model.start(device, buyer, now)
				trial.Changed, trial.Issued, trial.Metadata = false, nil, nil
				var result licensing.Result
				got, result = apply(&trial, licensing.StartTrial{Name: name, ProductID: app, Owner: shop,
					Key: key(model.Licenses), Device: device, Mark: licensing.TrialDevice{device[0]}, BuyerEmail: buyer,
					Terms: licensing.Terms{MaxDevices: 2, Validity: licensing.Period{Days: naiveTrialDays}}})
				for _, id := range []string{"pc", "mac"} {
					if result.Trial().Device[0] == id[0] {
						got.Starter = id
					}
				}
				if result.Trial().License != key(model.Licenses) || trial.Changed != got.Created {
					t.Fatalf("it is of %v, changed %v, want %v", result.Trial().License, trial.Changed,
						key(model.Licenses))
				}
				if trial.Issued != nil {
					license = licensing.Record{License: trial.Issued[0], Metadata: &licensing.Metadata{},
						Devices: trial.IssuedDevices}
					if trial.Metadata != nil {
						license.Metadata = trial.Metadata
					}
				}
			case "upgrade":
				want = model.upgrade(order, now)
				got, _ = apply(&license, licensing.UpgradeTrial{Key: key(model.Licenses), Order: licensing.Order{
					OrderNo: order, Owner: shop, ProductID: app, LicenseKey: key(model.Licenses)},
					Terms: licensing.Terms{MaxDevices: 5, Validity: licensing.Period{Days: 365}}})
			case "forget":
				want = model.forget(now)
				var result licensing.Result
				got, result = apply(&license, licensing.ForgetTrial{Before: now})
				_, _ = apply(&trial, licensing.DropTrial{License: result.License.Key, Drop: result.Removed})
				if license.Removed {
					license = licensing.Record{}
				}
			default:
				target := licensing.Target{Key: key(model.Licenses)}
				switch {
				case !model.Licensed:
				case kind == "revoke":
					if !model.Revoked {
						model.Revoked, model.RevokedAt = true, now
					}
					_, _ = apply(&license, licensing.RevokeLicense{Target: target})
				case kind == "suspend":
					model.Suspended = model.Suspended || !model.Revoked
					_, _ = apply(&license, licensing.SuspendLicense{Target: target})
				default:
					model.Suspended = model.Suspended && model.Revoked
					_, _ = apply(&license, licensing.ReinstateLicense{Target: target})
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("at %v (-want +got):\n%s", now, diff)
			}
			is := naiveTrial{Remembered: trial.Trial != nil, Licenses: model.Licenses, Starter: model.Starter}
			if l := license.License; l != nil {
				is.Licensed, is.Order, is.Upgraded, is.Expires = true, l.OrderNo, l.UpgradedAt, l.ExpiresAt
				is.Max, is.Suspended, is.Revoked = l.MaxDevices, !l.SuspendedAt.IsZero(), !l.RevokedAt.IsZero()
				is.RevokedAt = l.RevokedAt
				is.Buyer = license.Metadata.BuyerEmail
				if (l.Trial == name) != is.Remembered || l.CurrentDevices != 1 || l.IsTrial() != (l.OrderNo == "") {
					t.Fatalf("remembered: %v, and the license is %+v", is.Remembered, l)
				}
			}
			if diff := cmp.Diff(model, is); diff != "" {
				t.Fatalf("at %v (-want +got):\n%s", now, diff)
			}
		}
	})
}
