package licensing_test

import (
	"errors"
	"testing"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
)

// keysOfTest returns the keys of a store, and an owner.
func keysOfTest() (keyring.LicenseKeys, licensing.Owner) {
	return keyring.NewLicenseKeys(keyring.NewKeyCheck([]byte("check key")),
			keyring.NewIDKey([keyring.IDKeySize]byte([]byte("id key of a test")))),
		licensing.Owner{AccountID: "acct_a", Mode: licensing.Test}
}

// reissuable returns a license issued at noon, its first key, and its record, which has read the devices.
func reissuable(keys keyring.LicenseKeys, owner licensing.Owner, devices ...string) (
	noon time.Time, first licensing.LicenseKey, r licensing.Record,
) {
	noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	first = keys.Mint("LIC", owner, [keyring.LicenseKeyEntropy]byte{1})
	r = licensing.Record{
		License:  licensing.Terms{KeyPrefix: "LIC"}.Issue(first, owner, "editor", "", noon),
		Devices:  make(licensing.Devices),
		Metadata: &licensing.Metadata{},
	}
	for _, id := range devices {
		r.Devices[id] = &licensing.DeviceEntry{Device: licensing.Device{ID: id}}
	}
	return noon, first, r
}

// TestReissuedKeys: the text of a reissued key alone says that an alias leads to its license, and neither kind of key
// passes for the other.
func TestReissuedKeys(t *testing.T) {
	keys, owner := keysOfTest()
	entropy := [keyring.LicenseKeyEntropy]byte{1, 2, 3}
	first, reissued := keys.Mint("LIC", owner, entropy), keys.MintReissued("LIC", owner, entropy)
	if first.IsAlias() || !reissued.IsAlias() || keys.Text(first) == keys.Text(reissued) {
		t.Errorf("%q and %q", keys.Text(first), keys.Text(reissued))
	}
	for _, key := range []licensing.LicenseKey{first, reissued} {
		parsed, text, err := keys.Parse(keys.Text(key))
		if err != nil || parsed != key || text != keys.Text(key) {
			t.Errorf("%v is parsed as %v, %v", key, parsed, err)
		}
	}
	license := keys.Mint("LIC", owner, [keyring.LicenseKeyEntropy]byte{4})
	resolved := reissued.Of(license.ID())
	if resolved.IsAlias() || resolved.ID() != license.ID() || keys.Text(resolved) != keys.Text(reissued) ||
		!resolved.Names(license) {
		t.Errorf("resolved to %v", resolved)
	}
	if reissued.Alias() != resolved.Alias() {
		t.Errorf("the alias is %x, and %x", reissued.Alias(), resolved.Alias())
	}
}

// TestOverlaps: the earlier keys of a license end when any later reissue says so, and at once on devices that are not
// bound.
func TestOverlaps(t *testing.T) {
	keys, owner := keysOfTest()
	noon, first, r := reissuable(keys, owner, "pc", "new")
	run := func(cmd licensing.Command, at time.Duration) error {
		_, err := licensing.Apply(&r, cmd, noon.Add(at))
		return err
	}
	reissue := func(n byte, at, overlap time.Duration) licensing.LicenseKey {
		t.Helper()
		made := keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{n})
		if err := run(licensing.ReissueLicense{Target: licensing.Target{Key: first}, New: made, Overlap: overlap},
			at); err != nil {
			t.Fatal(err)
		}
		return made.Of(first.ID())
	}
	use := func(what string, key licensing.LicenseKey, device string, at time.Duration, want error) {
		t.Helper()
		if err := run(licensing.Activate{Target: licensing.Target{Key: key}, Device: device}, at); err != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	use("the only key", first, "pc", 0, nil)
	second := reissue(2, time.Hour, 10*time.Hour)
	use("an earlier key in the overlap", first, "pc", 2*time.Hour, nil)
	use("an earlier key on another device", first, "new", 2*time.Hour, licensing.ErrLicenseKeyReplaced)
	use("an external key on another device", first.ID().External(), "new", 2*time.Hour, licensing.ErrLicenseKeyReplaced)
	third := reissue(3, 3*time.Hour, time.Hour)
	use("the second key in its overlap", second, "pc", 3*time.Hour, nil)
	use("the first key while both overlaps last", first, "pc", 3*time.Hour, nil)
	use("the second key after its overlap", second, "pc", 4*time.Hour, licensing.ErrLicenseKeyReplaced)
	use("the first key, which ends with the second", first, "pc", 5*time.Hour, licensing.ErrLicenseKeyReplaced)
	use("the current key", third, "new", 5*time.Hour, nil)
	fourth := reissue(4, 6*time.Hour, 0)
	use("a key without overlap, by a clock that is behind", third, "pc", 5*time.Hour, licensing.ErrLicenseKeyReplaced)
	use("the new key, by that clock", fourth, "pc", 5*time.Hour, nil)
	if len(r.NewAliases) != 3 {
		t.Errorf("%d aliases, want those of all new keys", len(r.NewAliases))
	}
	use("the id", first.ID().Key(""), "pc", 5*time.Hour, nil)
	unknown := keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{9}).Of(first.ID())
	use("a key that is not the license's", unknown, "pc", 5*time.Hour, licensing.ErrLicenseNotFound)
}

// TestReceiptsOfReplacedKeys: a receipt proves the right to remove its device as long as each key that its device may
// have used works on bound devices.
func TestReceiptsOfReplacedKeys(t *testing.T) {
	keys, owner := keysOfTest()
	const hour = time.Hour
	for _, c := range []struct {
		overlap, receipt, now time.Duration // the reissue is after one hour
		want                  error
	}{
		{0, 0, hour, licensing.ErrLicenseKeyReplaced},
		{0, hour, 2 * hour, licensing.ErrLicenseKeyReplaced}, // issued in the second of the reissue
		{0, hour + time.Second, 2 * hour, nil},
		{hour, 0, 2*hour - time.Second, nil}, // the overlap lasts
		{hour, 0, 2 * hour, licensing.ErrLicenseKeyReplaced},
		{hour, 2 * hour, 3 * hour, licensing.ErrLicenseKeyReplaced}, // perhaps for the earlier key
		{hour, 2*hour + time.Second, 3 * hour, nil},
	} {
		noon, first, r := reissuable(keys, owner, "pc")
		r.License.SelfService.Allowed = true
		run := func(cmd licensing.Command, at time.Duration) error {
			_, err := licensing.Apply(&r, cmd, noon.Add(at))
			return err
		}
		target := licensing.Target{Key: first}
		err := errors.Join(
			run(licensing.Activate{Target: target, Device: "pc"}, 0),
			run(licensing.ReissueLicense{Target: target, Overlap: c.overlap,
				New: keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{2})}, hour))
		if err != nil {
			t.Fatal(err)
		}
		release := licensing.DeactivateDevice{Target: licensing.Target{Key: first.ID().Key("")}, Device: "pc",
			ReceiptAt: noon.Add(c.receipt)}
		if got := run(release, c.now); got != c.want || r.Devices["pc"].Bound == (got == nil) {
			t.Errorf("%+v: %v, bound %v", c, got, r.Devices["pc"].Bound)
		}
	}
}

// TestReceiptsEndWithTheOverlap: a receipt that a device got with a replaced key ends with the first overlap after that
// key, and so does the day until which receipts may be valid. Receipts for the current key and for the id do not.
func TestReceiptsEndWithTheOverlap(t *testing.T) {
	const day = 24 * time.Hour
	keys, owner := keysOfTest()
	noon, first, r := reissuable(keys, owner, "pc")
	mint := func(n byte) licensing.LicenseKey {
		return keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{n})
	}
	target := licensing.Target{Key: first}
	must(t, &r, licensing.Activate{Target: target, Device: "pc"}, noon)
	must(t, &r, licensing.ReissueLicense{Target: target, New: mint(2), Overlap: 3 * day}, noon)
	must(t, &r, licensing.ReissueLicense{Target: target, New: mint(3), Overlap: 5 * day}, noon)
	must(t, &r, licensing.ReissueLicense{Target: target, New: mint(4), Overlap: 30 * day}, noon)
	ask := licensing.AskReceipt(true, true, 0)
	for _, c := range []struct {
		name string
		key  licensing.LicenseKey
		ends time.Duration
	}{
		{"the first key", first, 3 * day},
		{"the external key", first.ID().External(), 3 * day},
		{"the second key", mint(2).Of(first.ID()), 5 * day},
		{"the third key", mint(3).Of(first.ID()), 7 * day}, // the overlap outlasts the validity
		{"the current key", mint(4).Of(first.ID()), 7 * day},
		{"the id", first.ID().Key(""), 7 * day},
	} {
		target := licensing.Target{Key: c.key}
		for _, cmd := range []licensing.Command{
			licensing.Activate{Target: target, Device: "pc", Receipt: ask},
			licensing.ValidateLicense{Target: target, Device: "pc", Receipt: ask},
		} {
			before := *r.License
			before.ReceiptsUntil, before.Revision = 0, 0
			r.License = &before
			if !licensing.RecordsReceipt(&r, cmd, noon) {
				t.Errorf("%s: the receipt of %T is not recorded", c.name, cmd)
			}
			end := noon.Add(c.ends)
			result := must(t, &r, cmd, noon)
			if until := r.License.ReceiptsUntil.Begins(); !result.Receipt.ExpiresAt.Equal(end) ||
				!until.Equal(end.Add(day/2)) {
				t.Errorf("%s: the receipt of %T ends at %v, recorded until %v; want %v", c.name, cmd,
					result.Receipt.ExpiresAt, until, end)
			}
			if licensing.RecordsReceipt(&r, cmd, noon) {
				t.Errorf("%s: the receipt of %T is recorded twice", c.name, cmd)
			}
		}
	}
}

// TestReissuesInOrder: a node whose clock is behind stores no earlier time than the reissue before. The overlap counts
// from the node's own time.
func TestReissuesInOrder(t *testing.T) {
	keys, owner := keysOfTest()
	noon, first, r := reissuable(keys, owner, "pc")
	r.Devices["pc"].Bound = true
	for i, at := range []time.Time{noon, noon.Add(-time.Second), noon.Add(time.Second)} {
		_, err := licensing.Apply(&r, licensing.ReissueLicense{Target: licensing.Target{Key: first},
			New:     keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{2, byte(i)}),
			Overlap: time.Minute}, at)
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []time.Time{noon, noon, noon.Add(time.Second)} {
		if got := r.License.Reissues.At(i); !got.Equal(want) {
			t.Errorf("reissue %d at %v, want %v", i, got, want)
		}
	}
	use := licensing.Activate{Target: licensing.Target{Key: first}, Device: "pc"}
	if _, err := licensing.Apply(&r, use, noon.Add(59*time.Second-time.Millisecond)); err != nil {
		t.Errorf("in the overlap: %v", err)
	}
	if _, err := licensing.Apply(&r, use, noon.Add(59*time.Second)); err != licensing.ErrLicenseKeyReplaced {
		t.Errorf("after the overlap: %v", err)
	}
}

// TestLeasesOfReplacedKeys: with a key that a reissue has replaced, a device gives back the lease that it took before.
// The key removes no lease that a device has taken or renewed with a newer key, so that a leaked key can't take leases
// away again and again, and it shows of no device whether the device has a lease. That holds for receipts, too.
func TestLeasesOfReplacedKeys(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	replaced := licensing.ErrLicenseKeyReplaced
	type reissue struct{ at, overlap time.Duration }
	for name, c := range map[string]struct {
		reissues []reissue
		renewed  time.Duration // with the newest key; the lease is taken at noon, with the first key. 0: never
		now      time.Duration
		want     error
	}{
		"taken before":                 {[]reissue{{hour, 0}}, 0, 2 * hour, nil},
		"taken before two reissues":    {[]reissue{{hour, 0}, {2 * hour, 0}}, 0, 3 * hour, nil},
		"lapsed":                       {[]reissue{{hour, 0}}, 0, 24 * hour, replaced},
		"renewed with the new key":     {[]reissue{{hour, 0}}, hour + minute, 2 * hour, replaced},
		"in the overlap":               {[]reissue{{hour, 3 * hour}}, 2 * hour, 3 * hour, nil},
		"renewed in the overlap":       {[]reissue{{hour, 3 * hour}}, 2 * hour, 5 * hour, nil},
		"renewed after the overlap":    {[]reissue{{hour, hour}}, 2*hour + minute, 3 * hour, replaced},
		"before an overlap":            {[]reissue{{hour, 0}, {2 * hour, day}}, 0, 3 * hour, nil},
		"renewed before an overlap":    {[]reissue{{hour, 0}, {3 * hour, day}}, 2 * hour, 4 * hour, replaced},
		"renewed by a clock behind":    {[]reissue{{2 * hour, 0}}, hour, hour + minute, replaced},
		"an overlap is cut":            {[]reissue{{hour, day}, {2 * hour, 0}}, 0, 3 * hour, nil},
		"renewed after an overlap cut": {[]reissue{{hour, day}, {2 * hour, 0}}, 3 * hour, 4 * hour, replaced},
	} {
		keys, owner := keysOfTest()
		noon, first, r := reissuable(keys, owner, "pc", "other")
		r.License.Lease = licensing.LeaseTerms{Length: 20 * hour, Longest: 2 * day}
		r.Leases, r.ActsByTime = licensing.KnownLeases{All: true}, true
		newest := first
		do := func(cmd licensing.Command, at time.Duration) {
			if _, err := licensing.Apply(&r, cmd, noon.Add(at)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		renew := func(until time.Duration) {
			if c.renewed != 0 && c.renewed < until && newest != first {
				do(licensing.Activate{Target: licensing.Target{Key: newest}, Device: "pc", Lease: 2 * day}, c.renewed)
				c.renewed = 0
			}
		}
		do(licensing.Activate{Target: licensing.Target{Key: first}, Device: "pc"}, 0)
		for i, made := range c.reissues {
			renew(made.at)
			to := keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{byte(i + 2)})
			do(licensing.ReissueLicense{Target: licensing.Target{Key: first}, New: to, Overlap: made.overlap}, made.at)
			newest = to.Of(first.ID())
		}
		renew(c.now)
		without := licensing.DeactivateDevice{Target: licensing.Target{Key: first}, Device: "other"}
		if _, err := licensing.Apply(&r, without, noon.Add(c.now)); err != replaced {
			t.Errorf("%s: a device without a lease: %v", name, err)
		}
		for _, give := range []licensing.DeactivateDevice{
			{Target: licensing.Target{Key: first}, Device: "pc"},
			{Target: licensing.Target{Key: first.ID().Key("")}, Device: "pc", ReceiptAt: noon},
		} {
			entry, license := *r.Devices["pc"], *r.License
			_, err := licensing.Apply(&r, give, noon.Add(c.now))
			if err != c.want || r.Devices["pc"].Bound == (err == nil) {
				t.Errorf("%s, %+v: %v, bound %v", name, give, err, r.Devices["pc"].Bound)
			}
			*r.Devices["pc"], *r.License = entry, license
		}
	}
}

// TestLeasesByClocksBehind: a reissue by a clock that is an hour ahead is before each lease that a device takes or
// renews with the new key, by any clock.
func TestLeasesByClocksBehind(t *testing.T) {
	keys, owner := keysOfTest()
	noon, first, r := reissuable(keys, owner, "old", "new")
	r.License.Lease = licensing.LeaseTerms{Length: time.Minute, Longest: day}
	r.Leases, r.ActsByTime = licensing.KnownLeases{All: true}, true
	to := keys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{2})
	use := func(key licensing.LicenseKey, device string) licensing.Command {
		return licensing.Activate{Target: licensing.Target{Key: key}, Device: device, Lease: day}
	}
	must(t, &r, licensing.Activate{Target: licensing.Target{Key: first}, Device: "old"}, noon)
	must(t, &r, licensing.ReissueLicense{Target: licensing.Target{Key: first}, New: to}, noon.Add(time.Hour))
	must(t, &r, use(to.Of(first.ID()), "old"), noon.Add(time.Second))
	must(t, &r, use(to.Of(first.ID()), "new"), noon.Add(time.Second))
	for _, device := range []string{"old", "new"} {
		refuses(t, &r, licensing.DeactivateDevice{Target: licensing.Target{Key: first}, Device: device},
			noon.Add(time.Minute), licensing.ReasonLicenseKeyReplaced)
		if got, want := r.Devices[device].Device.LastSeenAt, noon.Add(time.Hour+time.Millisecond); !got.Equal(want) {
			t.Errorf("%s was last seen at %v, want %v", device, got, want)
		}
	}
}
