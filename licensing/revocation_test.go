package licensing_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// paper is a receipt in the hands of a device.
type paper struct {
	device   string
	revision uint64
	ends     time.Time
	void     bool
	ended    bool // before it was to be void: it does not matter any more
}

// papers are the receipts of a naive license, and the list of revocations as a store keeps it.
type papers struct {
	all  []*paper
	list map[licensing.RevocationName]licensing.Revocation
}

// look is what of a naive license decides about receipts.
type look struct {
	devices   map[string]licensing.Device
	suspended bool
	revoked   bool
	max       int
	expires   time.Time
	grace     int // days
}

func (n *naive) look() look {
	return look{maps.Clone(n.devices), n.suspended, n.revoked, n.max, n.expires, n.grace}
}

// over returns when the license ends with its grace.
func (l look) over() time.Time { return l.expires.Add(time.Duration(l.grace) * day) }

// voids reports whether a change voids the receipt of a device.
func (was look) voids(is look, device string) bool {
	_, had := was.devices[device]
	_, has := is.devices[device]
	return had && !has || !was.suspended && is.suspended || !was.revoked && is.revoked ||
		is.max != 0 && (was.max == 0 || is.max < was.max) ||
		!is.expires.IsZero() && (was.expires.IsZero() || is.expires.Before(was.expires) || is.over().Before(was.over()))
}

// change notes which receipts a change of the license voids, and stores the entries of the change.
func (p *papers) change(was, is look, entries []licensing.Revocation, now time.Time) {
	for _, r := range p.all {
		if was.voids(is, r.device) && !r.void {
			r.ended = r.ended || !now.Before(r.ends)
			r.void = !r.ended
		}
	}
	p.store(entries)
}

func (p *papers) store(entries []licensing.Revocation) {
	if p.list == nil {
		p.list = make(map[licensing.RevocationName]licensing.Revocation)
	}
	for _, e := range entries {
		p.list[e.Name] = e
	}
}

// issue notes the receipt of a result.
func (p *papers) issue(device string, result licensing.Result) {
	if end := result.Receipt.ExpiresAt; !end.IsZero() {
		p.all = append(p.all, &paper{device: device, revision: result.License.Revision, ends: end})
	}
}

// problem returns the first receipt that the list should void and does not; precise: or the other way round.
func (p *papers) problem(precise bool) string {
	for _, r := range p.all {
		listed, long := false, false
		for _, device := range []string{"", r.device} {
			e, is := p.list[licensing.RevocationOf(shopKey.ID(), device)]
			if is && r.revision <= e.Revision {
				listed, long = true, long || !e.Until.Begins().Before(r.ends)
			}
		}
		if !r.ended && (r.void && !(listed && long) || precise && !r.void && listed) {
			return fmt.Sprintf("%+v is listed: %v, for long enough: %v", *r, listed, long)
		}
	}
	return ""
}

// TestRevocationsTogether: one change voids the receipts of few devices one by one, each once, and else those of the
// whole license; and a device's on a day only so often.
func TestRevocationsTogether(t *testing.T) {
	depth.NotRaced(t)
	ids := make([]string, 40)
	for i := range ids {
		ids[i] = fmt.Sprintf("pc-%d", i)
	}
	start := func() (r licensing.Record, p papers) {
		r = licensed(func(l *licensing.License) { l.MaxDevices = 100 })
		r.ActsByTime = true
		for _, id := range ids {
			r.Devices[id] = &licensing.DeviceEntry{Device: licensing.Device{ID: id}}
			p.issue(id, must(t, &r, licensing.Activate{Target: ours, Device: id,
				Receipt: licensing.AskReceipt(true, false, 0)}, noon))
		}
		return r, p
	}
	remove := func(r *licensing.Record, p *papers, ids ...string) {
		for _, id := range ids {
			must(t, r, licensing.RemoveDevice{Target: ours, Device: id}, noon)
			for _, held := range p.all {
				held.void = held.void || held.device == id
			}
		}
	}
	r, p := start()
	remove(&r, &p, ids[:3]...)
	again := licensing.Activate{Target: ours, Device: ids[0], Receipt: licensing.AskReceipt(true, false, 0)}
	p.issue(ids[0], must(t, &r, again, noon))
	remove(&r, &p, ids[0])
	p.issue(ids[0], must(t, &r, again, noon))
	p.store(r.Revocations)
	if problem := p.problem(true); problem != "" || len(r.Revocations) != 3 {
		t.Errorf("%d entries for three devices; %s", len(r.Revocations), problem)
	}

	r, p = start()
	remove(&r, &p, ids[:25]...)
	p.store(r.Revocations)
	if problem := p.problem(false); problem != "" || len(r.Revocations) > 16 {
		t.Errorf("%d entries for many devices; %s", len(r.Revocations), problem)
	}

	r, p = start()
	for range r.License.MaxDevices {
		r.Revocations = nil
		for _, c := range []licensing.Command{licensing.RemoveDevice{Target: ours, Device: ids[0]}, again} {
			if _, err := licensing.Apply(&r, c, noon); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(r.Revocations) != 1 || r.Revocations[0].Name != licensing.RevocationOf(shopKey.ID(), ids[0]) {
		t.Errorf("the last entry of a day is %+v", r.Revocations)
	}
	for at, device := range map[time.Time]string{noon: "", noon.Add(24 * time.Hour): ids[1]} {
		day := r.Clone()
		day.Revocations = nil
		must(t, &day, licensing.RemoveDevice{Target: ours, Device: ids[1]}, at)
		if len(day.Revocations) != 1 || day.Revocations[0].Name != licensing.RevocationOf(shopKey.ID(), device) {
			t.Errorf("at %v, the entry is %+v", at, day.Revocations)
		}
	}
}

// TestRevocationsOfAnEndUser: an end user who binds and removes devices gets few entries a day into the list, about as
// many as the license has device slots; and one in all with a trial, which anybody may start.
func TestRevocationsOfAnEndUser(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*licensing.License)
		entries int // in two days
	}{
		"three devices": {func(l *licensing.License) { l.MaxDevices = 3 }, 2*16 + 1},
		"50 devices":    {func(l *licensing.License) { l.MaxDevices = 50 }, 2*50 + 1},
		"5,000 devices": {func(l *licensing.License) { l.MaxDevices = 5000 }, 2*licensing.MaxRevocationsADay + 1},
		"no limit":      {func(l *licensing.License) { l.MaxDevices = 0 }, 2*licensing.MaxRevocationsADay + 1},
		"a trial": {func(l *licensing.License) {
			l.MaxDevices, l.Trial = 16, licensing.TrialName{1}
		}, 1},
	} {
		r := licensed(c.change)
		r.ActsByTime = true
		var p papers
		for day := range 2 {
			now := noon.Add(time.Duration(day) * 24 * time.Hour)
			for i := range licensing.MaxRevocationsADay + 100 {
				p.comeAndGo(t, &r, fmt.Sprintf("pc-%d-%d", day, i), now)
			}
		}
		if len(p.list) != c.entries {
			t.Errorf("%s: %d entries, want %d", name, len(p.list), c.entries)
		}
	}
}

// comeAndGo binds a device that gets a receipt, removes the device, and stores the entries.
func (p *papers) comeAndGo(t *testing.T, r *licensing.Record, id string, now time.Time) {
	t.Helper()
	r.Devices = licensing.Devices{id: {Device: licensing.Device{ID: id}}}
	r.Revocations, r.Events = nil, nil
	for _, c := range []licensing.Command{
		licensing.Activate{Target: ours, Device: id, Receipt: licensing.AskReceipt(true, false, 0)},
		licensing.RemoveDevice{Target: ours, Device: id},
	} {
		if _, err := licensing.Apply(r, c, now); err != nil {
			t.Fatal(err)
		}
	}
	p.store(r.Revocations)
}

// TestRevocationsOfTwoDays: nodes whose clocks lie on different days share the entries of one day, and a clock that a
// node must not act by begins no day.
func TestRevocationsOfTwoDays(t *testing.T) {
	for name, c := range map[string]struct {
		other   time.Duration // how far the other node's clock is from the first one's
		trusted bool
	}{
		"a clock behind":               {-day, true},
		"a clock behind, in doubt":     {-day, false},
		"a clock far ahead, in doubt":  {1000 * day, false},
		"a clock far behind, in doubt": {-1000 * day, false},
	} {
		r := licensed(func(l *licensing.License) { l.MaxDevices = 3 })
		var p papers
		for i := range 100 {
			now := noon
			if r.ActsByTime = true; i%2 == 1 {
				now, r.ActsByTime = noon.Add(c.other), c.trusted
			}
			p.comeAndGo(t, &r, fmt.Sprintf("pc-%d", i), now)
		}
		if len(p.list) != 16+1 {
			t.Errorf("%s: %d entries, want 17", name, len(p.list))
		}
		r.ActsByTime = true
		before := len(p.list)
		p.comeAndGo(t, &r, "next", noon.Add(day))
		if len(p.list) != before+1 {
			t.Errorf("%s: on the next day, the device has no entry", name)
		}
	}
}

// TestLeasesAndRevocations: a lease that is given back voids its receipts for as long as an earlier, longer lease may
// have receipts; a lease that has ended voids nothing.
func TestLeasesAndRevocations(t *testing.T) {
	depth.NotRaced(t)
	rapid.Check(t, func(t *rapid.T) {
		r := licensed(func(l *licensing.License) {
			l.Lease = licensing.LeaseTerms{Length: time.Hour, Longest: 20 * day}
			l.Receipts.ValiditySeconds = 90 * 24 * 3600
		})
		r.Leases.All, r.ActsByTime = true, true
		r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
		var p papers
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "times") {
			length := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 2 * day, 20 * day}).Draw(t, "lease")
			result, err := run(t, &r, licensing.Activate{Target: ours, Device: "pc", Lease: length,
				Receipt: licensing.AskReceipt(true, true, 0)}, now)
			if err != nil {
				t.Fatal(err)
			}
			p.issue("pc", result)
			clock := rapid.SampledFrom([]time.Duration{0, 30 * time.Second, 2 * time.Minute, day})
			now = now.Add(clock.Draw(t, "clock"))
			removed, err := run(t, &r, licensing.RemoveDevice{Target: ours, Device: "pc"}, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, held := range p.all {
				if !held.void && !held.ended {
					held.ended = !now.Before(held.ends)
					held.void = !held.ended
				}
			}
			if !removed.Removed && len(r.Revocations) != 0 {
				t.Fatalf("a lease that has ended is in the list: %+v", r.Revocations)
			}
			p.store(r.Revocations)
			r.Revocations = nil
			if problem := p.problem(true); problem != "" {
				t.Fatal(problem)
			}
		}
	})
}

// TestRevocationsByWrongClock: a node that must not act by its clock takes neither a receipt nor a lease for ended. The
// clock may be ahead.
func TestRevocationsByWrongClock(t *testing.T) {
	for name, change := range map[string]func(*licensing.License){
		"bound":  func(*licensing.License) {},
		"leased": func(l *licensing.License) { l.Lease = licensing.LeaseTerms{Length: time.Hour, Longest: time.Hour} },
	} {
		for _, c := range []licensing.Command{
			licensing.RemoveDevice{Target: ours, Device: "pc"}, licensing.SuspendLicense{Target: ours},
		} {
			for _, trusted := range []bool{true, false} {
				r := licensed(change)
				r.Leases.All, r.ActsByTime = true, true
				r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
				must(t, &r, licensing.Activate{Target: ours, Device: "pc",
					Receipt: licensing.AskReceipt(true, false, 0)}, noon)
				r.ActsByTime = trusted
				must(t, &r, c, noon.Add(100*day))
				if listed := len(r.Revocations) > 0; listed == trusted {
					t.Errorf("%s, %T with a clock that may end receipts (%v): listed %v", name, c, trusted, listed)
				}
			}
		}
	}
}

// TestRevocationsByTerms: a license of another product, or with a shorter grace, voids its receipts, and a longer grace
// does not. Nor does an extension by the same product.
func TestRevocationsByTerms(t *testing.T) {
	plan := func(product string) *licensing.Plan {
		return &licensing.Plan{ProductID: product, Terms: licensing.DefaultTerms()}
	}
	grace := func(days int) licensing.Command {
		return rolls(licensing.Terms{Grace: licensing.Period{Days: days}}, licensing.RolloutGrace)
	}
	for name, c := range map[string]struct {
		command licensing.Command
		voids   bool
	}{
		"another product":  {licensing.ExtendLicense{Plan: plan("team")}, true},
		"the same product": {licensing.ExtendLicense{Plan: plan(app), End: noon.Add(60 * day)}, false},
		"no grace":         {grace(0), true},
		"a shorter grace":  {grace(4), true},
		"the same grace":   {grace(5), false},
		"a longer grace":   {grace(6), false},
	} {
		r := licensed(func(l *licensing.License) {
			l.ExpiresAt, l.Grace = noon.Add(30*day), licensing.Period{Days: 5}
		})
		r.ActsByTime = true
		r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
		held := must(t, &r, licensing.Activate{Target: ours, Device: "pc",
			Receipt: licensing.AskReceipt(true, true, 0)}, noon)
		must(t, &r, c.command, noon.Add(time.Hour))
		voids := len(r.Revocations) == 1 && r.Revocations[0].Name == licensing.RevocationOf(shopKey.ID(), "") &&
			r.Revocations[0].Revision >= held.License.Revision
		if voids != c.voids || !c.voids && len(r.Revocations) > 0 {
			t.Errorf("%s: the entries are %+v", name, r.Revocations)
		}
	}
}

// TestNoRevocationWithoutReceipts: a license without receipts needs no clock, and gets no entry.
func TestNoRevocationWithoutReceipts(t *testing.T) {
	r := licensed(func(*licensing.License) {}, "laptop")
	must(t, &r, licensing.RemoveDevice{Target: ours, Device: "laptop"}, noon)
	if r.NeedsClock(licensing.Seen{}) || len(r.Revocations) > 0 {
		t.Errorf("a license without receipts has the entries %+v", r.Revocations)
	}
}

// TestRevocationsAfterARestore: a change of a license that was restored from a backup voids the receipts that the lost
// store has issued after the backup, and no receipt that the restored store issues later.
func TestRevocationsAfterARestore(t *testing.T) {
	for _, c := range []licensing.Command{
		licensing.SuspendLicense{Target: ours}, licensing.RemoveDevice{Target: ours, Device: "pc"},
	} {
		r := licensed(func(l *licensing.License) { l.MaxDevices = 100 })
		r.ActsByTime = true
		for _, id := range []string{"pc", "other"} {
			r.Devices[id] = &licensing.DeviceEntry{Device: licensing.Device{ID: id}}
		}
		activate := licensing.Activate{Target: ours, Device: "pc", Receipt: licensing.AskReceipt(true, true, 0)}
		must(t, &r, activate, noon)
		backup := r.Clone()
		must(t, &r, licensing.Activate{Target: ours, Device: "other"}, noon.Add(time.Hour))
		must(t, &r, licensing.RemoveDevice{Target: ours, Device: "other"}, noon.Add(time.Hour))
		lost := must(t, &r, activate, noon.Add(2*time.Hour))

		must(t, &backup, c, noon.Add(3*time.Hour))
		if len(backup.Revocations) != 1 {
			t.Fatalf("%T: the entries are %+v", c, backup.Revocations)
		}
		entry := backup.Revocations[0]
		if lost.License.Revision > entry.Revision {
			t.Errorf("%T: the entry %+v does not void the receipt with revision %d", c, entry, lost.License.Revision)
		}
		must(t, &backup, licensing.ReinstateLicense{Target: ours}, noon.Add(3*time.Hour))
		if later := must(t, &backup, activate, noon.Add(3*time.Hour)); later.License.Revision <= entry.Revision {
			t.Errorf("%T: the entry %+v voids a later receipt with revision %d", c, entry, later.License.Revision)
		}
	}
}

// TestRevocationsOfAnUnknownReceipt: docs/guides/backup.md tells how to void receipts although the backup knows of no
// receipt of the license.
func TestRevocationsOfAnUnknownReceipt(t *testing.T) {
	r := licensed(func(l *licensing.License) { l.MaxDevices = 100 })
	r.ActsByTime = true
	r.Devices["pc"] = &licensing.DeviceEntry{Device: licensing.Device{ID: "pc"}}
	backup := r.Clone()
	activate := licensing.Activate{Target: ours, Device: "pc", Receipt: licensing.AskReceipt(true, true, 0)}
	lost := must(t, &r, activate, noon)
	must(t, &backup, activate, noon.Add(time.Hour))
	must(t, &backup, licensing.SuspendLicense{Target: ours}, noon.Add(time.Hour))
	if len(backup.Revocations) != 1 || backup.Revocations[0].Revision < lost.License.Revision ||
		backup.Revocations[0].Until.Begins().Before(lost.Receipt.ExpiresAt) {
		t.Errorf("the entries %+v do not void the receipt %+v", backup.Revocations, lost.Receipt)
	}
}
