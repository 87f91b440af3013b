package history

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"licet/licensing"
	"licet/node/store"
)

// expiringDays are those of a run's account.
const expiringDays licensing.ExpiringDays = "\x03\x02\x01"

// gracedPlans are the licenses with a grace, and the licenses that end some days later. Clocks are apart by minutes, so
// some nodes see a license before its end, others in its grace or after that.
func gracedPlans(random *rand.Rand) []plan {
	soon := func() time.Duration { return time.Duration(random.IntN(600)) * time.Millisecond }
	about := func() time.Duration { return soon() + skew(1+random.IntN(skews-1)) }
	const day = 24 * time.Hour
	odds := []odd{{8, activate}, {2, remove}, {1, get}, {3, validate}}
	return []plan{
		{name: "graced", max: 3, bound: 2, pool: 4, clients: 5, each: 20, expires: soon(), grace: 5 * time.Minute,
			odds: append(odds, odd{1, renew})},
		{name: "graced for long", max: 3, bound: 2, pool: 4, clients: 5, each: 20, expires: soon(), grace: time.Hour,
			odds: odds},
		{name: "floating, graced", max: 2, pool: 4, clients: 4, each: 20, expires: soon(), grace: 8 * time.Minute,
			lease: 4 * time.Minute, swept: true, odds: odds},
		{name: "noticed", max: 3, pool: 4, clients: 4, each: 14, expires: day + about(),
			odds: []odd{{6, activate}, {2, remove}, {4, renew}, {2, get}}},
		{name: "noticed twice", max: 3, pool: 4, clients: 4, each: 14, expires: 2*day + about(),
			odds: []odd{{6, activate}, {2, remove}, {4, renew}, {1, suspend}, {2, reinstate}, {2, get}}},
		{name: "noticed, floating", max: 2, pool: 4, clients: 4, each: 20, expires: day + about(),
			lease: 4 * time.Minute, swept: true, odds: odds},
	}
}

// grace is that of a license by the rules alone.
type grace struct {
	length int64 // milliseconds
	over   bool  // a sweep has recorded its end: it is over for every clock
}

// inGrace reports whether a license can be in its grace at some moment of the clock's span, and whether it can be
// expired without one.
func (s state) inGrace(clock span) (may, mayNot bool) {
	if s.expires == 0 || !s.ended && s.expires > clock.to {
		return false, false
	}
	over := s.expires + s.grace.length
	none := s.grace.length == 0 || s.grace.over
	return !none && over > clock.from, none || over <= clock.to
}

// expired lists how an activation or a validation ends on a license that has expired.
func (s state) expired(in input, clock span) (list []effect) {
	bound := s.devices&(1<<in.Device) != 0
	may, mayNot := s.inGrace(clock)
	if may && bound {
		list = append(list, effect{next: s})
	}
	switch {
	case !mayNot && bound:
	case in.Action == validate:
		list = append(list, effect{invalid: licensing.ReasonLicenseExpired, next: s})
	default:
		list = append(list, effect{reason: licensing.ReasonLicenseExpired, next: s})
	}
	return list
}

// showsGrace reports whether an answer to a device that may use the license can say of the grace what it says.
func (s state) showsGrace(in input, out output) bool {
	if in.Action != activate && in.Action != validate || out.Invalid != "" || s.expires == 0 {
		return !out.Grace
	}
	may, mayNot := s.inGrace(out.Clock)
	return out.Grace && may || !out.Grace && (mayNot || !s.ended && s.expires > out.Clock.from)
}

// endGraceOn records the end of a grace.
func (s state) endGraceOn(in input, clock span) (list []effect) {
	over := s.expires + s.grace.length
	if !s.revoked && s.ended && !s.grace.over && s.expires == in.Expires && over <= clock.to {
		s.grace.over = true
		list = append(list, effect{next: s})
	}
	return list
}

// gracePeriod reads a period that has a length in nanoseconds only.
func gracePeriod(field string) (int64, error) {
	m, err := parse([]byte(field))
	return m.milli(4) / int64(time.Millisecond), err
}

// graces: no grace changes without a rollout, see rolledTerms. An end of a grace is recorded only along with, or after,
// that of the license; then no device takes a lease, and none is bound after the end of a license without leases. No
// lease outlasts the grace.
func (i *inspection) graces(key licensing.LicenseKey, states []*licenseAt) {
	for n, s := range states[1:] {
		before := states[n]
		if s.grace != before.grace && s.product != "rolled" {
			i.add("grace", "%s: the grace was %d: %s", key, before.grace, s)
		}
		over := s.expires + s.grace
		if s.graceRecorded != before.graceRecorded && s.graceRecorded != 0 &&
			(s.graceRecorded != over || s.endRecorded != s.expires) && s.graceRecorded != before.expires+s.grace {
			i.add("grace", "%s: the end of a grace was recorded that it has not: %d: %s", key, s.graceRecorded, s)
		}
		for id, at := range s.devices {
			ended := s.endRecorded == s.expires && before.endRecorded == s.expires && s.expires != 0
			if s.leased {
				ended = s.grace != 0 && before.graceRecorded == over && s.ends[id] != before.ends[id]
			}
			if before.devices[id] != at && ended {
				i.add("grace", "%s: %s was bound after the end: %s", key, id, s)
			}
			if s.leased && s.grace != 0 && s.expires != 0 && s.ends[id] > over {
				i.add("grace", "%s: the lease of %s ends after the grace: %s", key, id, s)
			}
		}
	}
}

// noticed is an event license.expiring of a license with an end.
type noticed struct {
	end  int64
	days string
}

// notices checks an event license.expiring: it comes once for an end, on a day that the account has, and not before its
// time, as far as clocks tell that.
func (i *inspection) notices(key licensing.LicenseKey, s *licenseAt, e eventAt, given map[noticed]bool) {
	notice := noticed{s.expires, e.days}
	days, err := strconv.Atoi(e.days)
	apart := skew(skews-1) - skew(0) + sweepTime
	if err != nil || given[notice] || !slices.Contains(expiringDays.Numbers(), days) ||
		e.at < s.expires-int64(days)*dayInMilli-apart.Milliseconds() || s.revoked != 0 {
		i.add("notices", "%s: the event %s, %q days before the end: %s", key, e.text(), e.days, s)
	}
	given[notice] = true
}

// expirings counts the events license.expiring.
func (r *run) expirings() (count int) {
	for _, e := range r.feed {
		if e.Type == licensing.EventLicenseExpiring {
			count++
		}
	}
	return count
}

// TestModelOfGrace shows the model small histories of a license that ends, and has a grace.
func TestModelOfGrace(t *testing.T) {
	type history = []porcupine.Operation
	create := at(0, 0, input{Action: create, Max: 2, Expires: noon + 10, Grace: 100}, output{Verdict: accepted})
	first := at(1, 2, bind(0), ok(1, 2).ending())
	// by is an answer at a time after noon.
	by := func(out output, after int64) output {
		out.Clock = span{noon + after, noon + after}
		return out
	}
	goes := func(after int64) output { return by(ok(1, 2).ending().graced(), after) }
	expired := func(after int64) output { return by(no(licensing.ReasonLicenseExpired), after) }
	invalid := func(after int64) output { return by(ok(1, 2).ending().not(licensing.ReasonLicenseExpired), after) }
	record := func(what action, after int64) porcupine.Operation {
		return at(3, 4, input{Action: what, Expires: noon + 10}, by(output{Verdict: accepted, Later: true}, after))
	}
	for _, c := range []struct {
		name  string
		right bool
		ops   history
	}{
		{"a bound device goes on", true, history{create, first, at(3, 4, bind(0), goes(10)),
			at(5, 6, valid(0), goes(109))}},
		{"without a word of the grace", false, history{create, first, at(3, 4, bind(0), by(ok(1, 2).ending(), 10))}},
		{"a grace before the end", false, history{create, first, at(3, 4, bind(0), goes(9))}},
		{"a bound device refused", false, history{create, first, at(3, 4, bind(0), expired(10))}},
		{"a bound device invalid", false, history{create, first, at(3, 4, valid(0), invalid(10))}},
		{"another device refused", true, history{create, first, at(3, 4, bind(1), expired(10)),
			at(5, 6, valid(1), invalid(10))}},
		{"another device let in", false, history{create, first,
			at(3, 4, bind(1), by(ok(2, 2).ending().graced(), 10))}},
		{"removed, and refused", true, history{create, first,
			at(3, 4, unbind(0), by(ok(0, 2).ending().removed(), 10)), at(5, 6, bind(0), expired(10))}},
		{"after the grace", true, history{create, first, at(3, 4, bind(0), expired(110)),
			at(5, 6, valid(0), invalid(110))}},
		{"after the grace, and let in", false, history{create, first, at(3, 4, bind(0), goes(110))}},
		{"the end is recorded", true, history{create, first, record(end, 10), at(5, 6, bind(0), goes(0))}},
		{"the end of the grace is recorded", true, history{create, first, record(end, 10), record(endGrace, 110),
			at(5, 6, bind(0), expired(0))}},
		{"the end of the grace is recorded, and does not hold", false, history{create, first, record(end, 10),
			record(endGrace, 110), at(5, 6, bind(0), goes(20))}},
		{"the end of the grace is recorded too early", false, history{create, first, record(end, 10),
			record(endGrace, 109)}},
		{"the end of the grace is recorded before the end", false, history{create, first, record(endGrace, 110)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := porcupine.CheckOperationsTimeout(model(), c.ops, busyTime)
			if want := map[bool]porcupine.CheckResult{true: porcupine.Ok,
				false: porcupine.Illegal}[c.right]; got != want {
				t.Errorf("the checker says %s, want %s", got, want)
			}
		})
	}
}

// ending is an answer about a license that ends soon after noon.
func (out output) ending() output {
	return out.with(func(f *facts) { f.Expires = noon + 10 })
}

func (out output) graced() output { out.Grace = true; return out }

// open is a store whose node takes any device for bound once the license has expired, and has a grace.
func open(_ *run, s store.Store) store.Store {
	return edited{s, func(snapshot *store.Snapshot) {
		l := snapshot.Record.License
		if l.Grace.IsZero() || l.Lease.Leased() || l.EndRecorded.IsZero() || l.ActivatedAt.IsZero() {
			return
		}
		for _, entry := range snapshot.Record.Devices {
			if !entry.Bound && l.CurrentDevices < l.MaxDevices {
				entry.Bound, entry.Device.BoundAt, entry.Device.LastSeenAt = true, l.ActivatedAt, l.ActivatedAt
				l.CurrentDevices++
			}
		}
	}}
}

// graceless is a store whose node sees no grace. It stores what there was.
type graceless struct {
	edited
	run *run
}

func newGraceless(r *run, s store.Store) store.Store {
	return graceless{edited{s, func(snapshot *store.Snapshot) {
		snapshot.Record.License.Grace = licensing.Period{}
	}}, r}
}

func (g graceless) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	for _, w := range change.Writes {
		if w.Record.License == nil {
			continue
		}
		for _, l := range g.run.planned() {
			if l.key == w.Record.License.Key {
				w.Record.License.Grace = licensing.Period{Clock: l.grace}
			}
		}
	}
	return g.Store.Commit(ctx, change)
}

// planned returns the licenses of the run.
func (r *run) planned() []*license {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.licenses)
}

// reminding is a store that leaves the plan of a notice as it was before the notice.
type reminding struct{ store.Store }

func (m reminding) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	r := &change.Writes[0].Record
	for _, e := range r.Events {
		if e.Type == licensing.EventLicenseExpiring {
			r.License.Notice.Day, _ = strconv.Atoi(e.Members[0].JSON)
		}
	}
	return m.Store.Commit(ctx, change)
}
