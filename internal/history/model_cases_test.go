package history

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"licet/licensing"
)

// The model is what all else here leans on, so it is shown small histories
// whose rightness one can see.

const (
	noon  = int64(1_800_000_000_000)
	still = noon + 1 // a later moment
)

// at returns an operation that took from call to ret, with the clock at noon.
func at(call, ret int64, in input, out output) porcupine.Operation {
	if out.Clock == (span{}) {
		out.Clock = span{noon, noon}
	}
	if out.Verdict == unknown {
		ret = 1000
	}
	return porcupine.Operation{Input: in, Output: out, Call: call, Return: ret}
}

// ok is an accepted answer with the counts of devices.
func ok(current, limit int) output {
	return output{Verdict: accepted, Facts: facts{Current: current, Max: limit, Activated: noon}}
}

// fresh is the answer about a license that was never activated.
func fresh(limit int) output {
	return output{Verdict: accepted, Facts: facts{Max: limit}}
}

func (out output) removed() output { out.Removed = true; return out }

func (out output) listing(devices uint64) output { out.Devices = devices; return out }

func (out output) with(change func(*facts)) output { change(&out.Facts); return out }

func no(reason licensing.Reason) output { return output{Verdict: refused, Reason: reason} }

func full(current, limit int) output {
	return no(licensing.ReasonDeviceLimitReached).with(func(f *facts) { f.Current, f.Max = current, limit })
}

func bind(device int) input { return input{Action: activate, Device: device} }

func unbind(device int) input { return input{Action: remove, Device: device} }

func valid(device int) input { return input{Action: validate, Device: device} }

func (out output) not(why licensing.Reason) output { out.Invalid = why; return out }

// renewed asks for a new key with a number.
func renewed(number int, overlap bool) input {
	return input{Action: reissue, Number: number, Overlap: overlap}
}

// by presents the new key with a number.
func (in input) by(number int) input { in.Number = number; return in }

func keys(out output, n int) output { out.Facts.Reissues = n; return out }

func ask(a action) input { return input{Action: a} }

var (
	lost  = output{Verdict: unknown}
	never = output{Verdict: nothing}
)

func TestModel(t *testing.T) {
	one := at(0, 0, input{Action: create, Max: 1}, output{Verdict: accepted})
	two := at(0, 0, input{Action: create, Max: 2}, output{Verdict: accepted})
	open := at(0, 0, ask(create), output{Verdict: accepted})
	until := at(0, 0, input{Action: create, Expires: noon + 10}, output{Verdict: accepted})
	clocked := func(out output, from, to int64) output { out.Clock = span{from, to}; return out }
	type history []porcupine.Operation
	for _, c := range []struct {
		name  string
		right bool
		ops   history
	}{
		{"nothing", true, nil},
		{"bound, and again", true, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(0), ok(1, 1)),
			at(5, 6, ask(get), ok(1, 1).listing(1))}},
		{"bound twice is not two", false, history{two, at(1, 2, bind(0), ok(1, 2)), at(3, 4, bind(0), ok(2, 2))}},
		{"one too many", false, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(1), ok(2, 1))}},
		{"refused at the limit", true, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(1), full(1, 1))}},
		{"refused below the limit", false, history{two, at(1, 2, bind(0), ok(1, 2)), at(3, 4, bind(1), full(1, 2))}},
		{"refused although bound", false, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(0), full(1, 1))}},
		{"refused with wrong counts", false,
			history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(1), full(2, 1))}},
		{"no limit", true, history{open, at(1, 2, bind(0), ok(1, 0)), at(3, 4, bind(1), ok(2, 0))}},
		{"two at once, one slot", true, history{one, at(1, 9, bind(0), ok(1, 1)), at(1, 9, bind(1), full(1, 1))}},
		{"two at once, one slot, both in", false,
			history{one, at(1, 9, bind(0), ok(1, 1)), at(1, 9, bind(1), ok(1, 1))}},
		{"two at once, each with a count of its own", true,
			history{two, at(1, 9, bind(0), ok(2, 2)), at(1, 9, bind(1), ok(1, 2))}},
		{"two at once, same count", false, history{two, at(1, 9, bind(0), ok(1, 2)), at(1, 9, bind(1), ok(1, 2))}},

		{"removed", true, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, unbind(0), ok(0, 1).removed()),
			at(5, 6, bind(1), ok(1, 1))}},
		{"removed what was not there", false, history{one, at(1, 2, unbind(0), fresh(1).removed())}},
		{"not there to remove", true, history{one, at(1, 2, unbind(0), fresh(1))}},
		{"not removed although there", false,
			history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, unbind(0), ok(1, 1))}},
		{"removed by two", false, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 9, unbind(0), ok(0, 1).removed()),
			at(3, 9, unbind(0), ok(0, 1).removed())}},
		{"back without being asked", false, history{one, at(1, 2, bind(0), ok(1, 1)),
			at(3, 4, unbind(0), ok(0, 1).removed()), at(5, 6, ask(get), ok(1, 1).listing(1))}},

		{"valid", true, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, valid(0), ok(1, 1)),
			at(5, 6, valid(1), ok(1, 1).not(licensing.NotBound))}},
		{"valid although not bound", false, history{one, at(1, 2, valid(0), fresh(1))}},
		{"not valid although bound", false,
			history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, valid(0), ok(1, 1).not(licensing.NotBound))}},
		{"valid until it is removed", true, history{one, at(1, 2, bind(0), ok(1, 1)),
			at(3, 9, input{Action: remove, ByUser: true}, ok(0, 1).removed()),
			at(4, 5, valid(0), ok(1, 1)), at(6, 7, valid(0), ok(0, 1).not(licensing.NotBound))}},
		{"valid after it was removed", false, history{one, at(1, 2, bind(0), ok(1, 1)),
			at(3, 4, unbind(0), ok(0, 1).removed()), at(5, 6, valid(0), ok(1, 1))}},
		{"not valid while suspended", true,
			history{one, at(1, 2, ask(suspend), fresh(1).with(func(f *facts) { f.Suspended = true })),
				at(3, 4, valid(0),
					fresh(1).with(func(f *facts) { f.Suspended = true }).not(licensing.ReasonLicenseSuspended))}},
		{"for another reason", false,
			history{one, at(1, 2, ask(suspend), fresh(1).with(func(f *facts) { f.Suspended = true })),
				at(3, 4, valid(0), fresh(1).with(func(f *facts) { f.Suspended = true }).not(licensing.NotBound))}},

		{"a lookup that is late", false, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, ask(get), fresh(1))}},
		{"a lookup that is early", true, history{one, at(1, 5, bind(0), ok(1, 1)), at(3, 4, ask(get), fresh(1))}},
		{"a lookup of another device", false,
			history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, ask(get), ok(1, 1).listing(2))}},
		{"lookups that go back", false, history{one, at(1, 9, bind(0), ok(1, 1)),
			at(2, 3, ask(get), ok(1, 1).listing(1)), at(4, 5, ask(get), fresh(1))}},

		{"unknown that happened", true,
			history{one, at(1, 2, bind(0), lost), at(3, 4, ask(get), ok(1, 1).listing(1))}},
		{"unknown that did not", true, history{one, at(1, 2, bind(0), lost), at(3, 4, ask(get), fresh(1))}},
		{"unknown that happened late", true,
			history{one, at(1, 2, bind(0), lost), at(3, 4, ask(get), fresh(1)), at(5, 6, bind(1), full(1, 1))}},
		{"unknown that happened twice", false, history{
			one, at(1, 2, bind(0), lost), at(3, 4, unbind(0), ok(0, 1).removed()), at(5, 6, ask(get),
				ok(1, 1).listing(1)),
		}},
		{"unknown and undone before it was asked", false,
			history{one, at(1, 2, ask(get), ok(1, 1).listing(1)), at(3, 4, bind(0), lost)}},
		{"unknown removal of a bound device", true,
			history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, unbind(0), lost), at(5, 6, bind(1), ok(1, 1))}},
		{"not executed", true, history{one, at(1, 2, bind(0), never), at(3, 4, ask(get), fresh(1))}},
		{"said not to be executed, and was", false,
			history{one, at(1, 2, bind(0), never), at(3, 4, ask(get), ok(1, 1).listing(1))}},

		{"not there", true, history{at(1, 2, bind(0), no(licensing.ReasonLicenseNotFound)),
			at(3, 4, input{Action: create, Max: 1}, output{Verdict: accepted}), at(5, 6, ask(get), fresh(1))}},
		{"not there any more", false, history{one, at(1, 2, ask(get), no(licensing.ReasonLicenseNotFound))}},
		{"created twice", false, history{one, at(1, 2, input{Action: create, Max: 1}, output{Verdict: accepted})}},
		{"creation refused", true, history{one, at(1, 2, ask(create), no(alreadyThere))}},

		{"suspended", true, history{
			one, at(1, 2, ask(suspend), fresh(1).with(func(f *facts) { f.Suspended = true })),
			at(3, 4, bind(0), no(licensing.ReasonLicenseSuspended)), at(5, 6, ask(reinstate), fresh(1)),
			at(7, 8, bind(0), ok(1, 1)),
		}},
		{"bound while " +
			"suspended", false, history{one,
			at(1, 2, ask(suspend), fresh(1).with(func(f *facts) { f.Suspended = true })), at(3, 4, bind(0),
				ok(1, 1).with(func(f *facts) { f.Suspended = true }))}},
		{"removed while suspended", true, history{
			one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, ask(suspend),
				ok(1, 1).with(func(f *facts) { f.Suspended = true })),
			at(5, 6, unbind(0), ok(0, 1).removed().with(func(f *facts) { f.Suspended = true })),
		}},
		{"revoked for good", true, history{
			one, at(1, 2, ask(revoke), fresh(1).with(func(f *facts) { f.Revoked = true })),
			at(3, 4, ask(reinstate), no(licensing.ReasonInvalidLicenseState)),
			at(5, 6, bind(0), no(licensing.ReasonLicenseRevoked)),
		}},
		{"revoked and back", false, history{one,
			at(1, 2, ask(revoke), fresh(1).with(func(f *facts) { f.Revoked = true })), at(3, 4, bind(0), ok(1, 1))}},

		{"replaced", true, history{
			two, at(1, 2, bind(0), ok(1, 2)), at(3, 4, renewed(1, false), keys(ok(1, 2), 1)),
			at(5, 6, bind(0), no(licensing.ReasonLicenseKeyReplaced)), at(7, 8, bind(0).by(1), keys(ok(1, 2), 1)),
			at(9, 10, valid(0), keys(ok(1, 2), 1).not(licensing.ReasonLicenseKeyReplaced)),
		}},
		{"taken although replaced", false, history{
			two, at(1, 2, bind(0), ok(1, 2)), at(3, 4, renewed(1, false), keys(ok(1, 2), 1)),
			at(5, 6, bind(0), keys(ok(1, 2), 1)),
		}},
		{"replaced by two at once", true, history{
			two, at(1, 2, bind(0), ok(1, 2)), at(3, 9, renewed(1, true), keys(ok(1, 2), 2)),
			at(3, 9, renewed(2, true), keys(ok(1, 2), 1)), at(10, 11, bind(0), keys(ok(1, 2), 2)),
			at(12, 13, bind(0).by(2), keys(ok(1, 2), 2)), at(14, 15, bind(1).by(2),
				no(licensing.ReasonLicenseKeyReplaced)),
		}},
		{"a new device by an old key in its overlap", false, history{
			two, at(1, 2, renewed(1, true), keys(fresh(2), 1)), at(3, 4, bind(0), keys(ok(1, 2), 1)),
		}},
		{"a new key that is not found", false, history{
			two, at(1, 2, renewed(1, true), keys(fresh(2), 1)), at(3, 4, bind(0).by(1),
				no(licensing.ReasonLicenseNotFound)),
		}},
		{"a new key before the reissue", true, history{
			two, at(1, 9, renewed(1, true), keys(fresh(2), 1)), at(2, 3, bind(0).by(1),
				no(licensing.ReasonLicenseNotFound)),
		}},

		{"lowered below the count", true, history{
			two, at(1, 2, bind(0), ok(1, 2)), at(3, 4, bind(1), ok(2, 2)), at(5, 6, input{Action: setMax, Max: 1},
				ok(2, 1)),
			at(7, 8, bind(1), ok(2, 1)), at(9, 10, bind(2), full(2, 1)), at(11, 12, unbind(0), ok(1, 1).removed()),
			at(13, 14, bind(0), full(1, 1)),
		}},
		{"raised", true, history{one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, input{Action: setMax}, ok(1, 0)),
			at(5, 6, bind(1), ok(2, 0))}},

		{"before the end", true, history{until,
			at(1, 2, bind(0), clocked(ok(1, 0).with(func(f *facts) { f.Expires = noon + 10 }), noon, noon+9))}},
		{"after the end", false, history{until, at(1, 2, bind(0),
			clocked(ok(1, 0).with(func(f *facts) { f.Expires, f.Activated = noon+10, noon+10 }), noon+10, noon+11))}},
		{"expired", true,
			history{until, at(1, 2, bind(0), clocked(no(licensing.ReasonLicenseExpired), noon+10, noon+11))}},
		{"expired too early", false,
			history{until, at(1, 2, bind(0), clocked(no(licensing.ReasonLicenseExpired), noon, noon+9))}},
		{"about the end, in", true, history{until,
			at(1, 2, bind(0), clocked(ok(1, 0).with(func(f *facts) { f.Expires = noon + 10 }), noon, noon+20))}},
		{"about the end, refused", true,
			history{until, at(1, 2, bind(0), clocked(no(licensing.ReasonLicenseExpired), noon, noon+20))}},
		{"unknown about the end", true, history{until, at(1, 2, bind(0), clocked(lost, noon, noon)),
			at(3, 4, ask(get), ok(1, 0).listing(1).with(func(f *facts) { f.Expires = noon + 10 }))}},
		{"renewed", true, history{
			until, at(1, 2, input{Action: renew, Expires: noon + 99},
				clocked(fresh(0).with(func(f *facts) { f.Expires = noon + 99 }), noon+10, noon+11)),
			at(3, 4, bind(0), clocked(ok(1, 0).with(func(f *facts) { f.Expires, f.Activated = noon+99, noon+50 }),
				noon+50, noon+51)),
		}},
		{"expired for every clock, once recorded", true, history{until,
			at(1, 2, input{Action: end, Expires: noon + 10},
				clocked(output{Verdict: accepted, Later: true}, noon+20, noon+20)),
			at(3, 4, bind(0), no(licensing.ReasonLicenseExpired)),
			at(5, 6, input{Action: renew, Expires: noon + 10}, fresh(0).with(func(f *facts) { f.Expires = noon + 10 })),
			at(7, 8, bind(0), ok(1, 0).with(func(f *facts) { f.Expires = noon + 10 }))}},
		{"back although the end is recorded", false, history{until,
			at(1, 2, input{Action: end, Expires: noon + 10},
				clocked(output{Verdict: accepted, Later: true}, noon+20, noon+20)),
			at(3, 4, bind(0), ok(1, 0).with(func(f *facts) { f.Expires = noon + 10 }))}},
		{"recorded too early", false, history{until,
			at(1, 2, input{Action: end, Expires: noon + 10}, output{Verdict: accepted, Later: true})}},
		{"renewed into the past", true,
			history{until, at(1, 2, input{Action: renew, Expires: noon}, no(licensing.ReasonInvalidField))}},
		{"renewed into the past, and taken", false, history{until,
			at(1, 2, input{Action: renew, Expires: noon}, fresh(0).with(func(f *facts) { f.Expires = noon }))}},

		{"first activation stays", true, history{one, at(1, 2, bind(0), ok(1, 1)),
			at(3, 4, unbind(0), ok(0, 1).removed()), at(5, 6, bind(0), clocked(ok(1, 1), still, still))}},
		{"first activation moved", false, history{
			one, at(1, 2, bind(0), ok(1, 1)), at(3, 4, unbind(0), ok(0, 1).removed()),
			at(5, 6, bind(0), clocked(ok(1, 1).with(func(f *facts) { f.Activated = still }), still, still)),
		}},
		{"first activation at another time", false, history{one, at(1, 2, bind(0), clocked(ok(1, 1), still, still))}},
		{"first activation unknown, then seen", true, history{one, at(1, 2, bind(0), lost),
			at(3, 4, ask(get), ok(1, 1).listing(1).with(func(f *facts) { f.Activated = still }))}},
		{"unknown before it is made, and seen", true, history{
			at(0, 0, ask(create), lost), at(1, 2, ask(get), no(licensing.ReasonLicenseNotFound)), at(1, 2, bind(0),
				lost),
			at(3, 4, ask(get), no(licensing.ReasonLicenseNotFound)), at(5, 6, ask(get), ok(1, 0).listing(1)),
		}},
		{"made by what is unknown, and gone", false, history{
			at(0, 0, ask(create), lost), at(1, 2, ask(get), fresh(0)), at(3, 4, ask(get),
				no(licensing.ReasonLicenseNotFound)),
		}},
		{"first activation seen at two times", false, history{
			one, at(1, 2, bind(0), lost), at(3, 4, ask(get), ok(1, 1).listing(1)),
			at(5, 6, ask(get), ok(1, 1).listing(1).with(func(f *facts) { f.Activated = still })),
		}},
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

// TestModelSearch is a history of which an order is found soon only if what is unknown is not
// taken for without effect wherever it may be: the first activation of all was an early one,
// that the lookups do without.
func TestModelSearch(t *testing.T) {
	lostAt := func(clock int64) output { return output{Verdict: unknown, Clock: span{clock, clock}} }
	ops := []porcupine.Operation{at(0, 0, ask(create), lost)}
	for i := range 8 {
		ops = append(ops, at(int64(1+i), 30, bind(i), no(licensing.ReasonLicenseNotFound)))
	}
	ops = append(ops,
		at(31, 100, ask(get), fresh(0)), at(32, 101, valid(5), fresh(0).not(licensing.NotBound)),
		at(32, 101, unbind(0), fresh(0)),
		at(33, 0, bind(0), lostAt(noon)), at(40, 0, bind(0), lostAt(noon+1)))
	for i := range 14 {
		ops = append(ops, at(int64(44+i), 0, bind(1+i), lostAt(noon+int64(2+i))))
	}
	for i := range 4 {
		ops = append(ops, at(int64(60+i), 0, unbind(i), lostAt(noon+int64(20+i))))
	}
	ops = append(ops, at(200, 201, ask(get), ok(2, 0).listing(3)))
	if got := porcupine.CheckOperationsTimeout(model(), ops, busyTime); got != porcupine.Ok {
		t.Errorf("the checker says %s", got)
	}
}

// TestModelParts mixes two licenses: one may be wrong alone.
func TestModelParts(t *testing.T) {
	var ops []porcupine.Operation
	keyA, keyB := licensing.LicenseID{1}.Key("LIC"), licensing.LicenseID{2}.Key("LIC")
	for _, key := range []licensing.LicenseKey{keyA, keyB} {
		ops = append(ops, at(0, 0, input{Key: key, Action: create, Max: 1}, output{Verdict: accepted}),
			at(1, 2, input{Key: key, Action: activate}, ok(1, 1)))
	}
	if !porcupine.CheckOperations(model(), ops) {
		t.Error("two licenses are taken for one")
	}
	ops = append(ops, at(3, 4, input{Key: keyB, Action: activate, Device: 1}, ok(2, 1)))
	if porcupine.CheckOperations(model(), ops) {
		t.Error("a wrong answer of one license passes")
	}
}
