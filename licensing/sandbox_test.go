package licensing

import (
	"errors"
	"testing"
	"time"
)

// TestPlayCheckout: a checkout keeps its last word, and a later attempt replaces it.
func TestPlayCheckout(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	later := now.Add(time.Hour)
	played := func(attempt int, outcome SandboxOutcome, paid time.Time) SandboxOrder {
		return SandboxOrder{Attempt: attempt, Outcome: outcome, PaidAt: paid}
	}
	for _, c := range []struct {
		name    string
		before  *SandboxOrder
		attempt int
		outcome SandboxOutcome
		want    SandboxOrder
		refused bool
		same    bool
	}{
		{"the first", nil, 1, SandboxPending, played(1, SandboxPending, time.Time{}), false, false},
		{"paid at once", nil, 1, SandboxPaid, played(1, SandboxPaid, later), false, false},
		{"pending, paid", new(played(1, SandboxPending, time.Time{})), 1, SandboxPaid,
			played(1, SandboxPaid, later), false, false},
		{"pending, failed", new(played(1, SandboxPending, time.Time{})), 1, SandboxFailed,
			played(1, SandboxFailed, time.Time{}), false, false},
		{"late, paid", new(played(1, SandboxLate, now)), 1, SandboxPaid, played(1, SandboxPaid, now), false,
			false},
		{"late, failed", new(played(1, SandboxLate, now)), 1, SandboxFailed, played(1, SandboxLate, now), true,
			false},
		{"paid, paid", new(played(1, SandboxPaid, now)), 1, SandboxPaid, played(1, SandboxPaid, now), false,
			true},
		{"paid, failed", new(played(1, SandboxPaid, now)), 1, SandboxFailed, played(1, SandboxPaid, now), true,
			false},
		{"failed, paid", new(played(1, SandboxFailed, time.Time{})), 1, SandboxPaid,
			played(1, SandboxFailed, time.Time{}), true, false},
		{"the next attempt", new(played(1, SandboxFailed, time.Time{})), 2, SandboxPending,
			played(2, SandboxPending, time.Time{}), false, false},
		{"an earlier attempt", new(played(2, SandboxPending, time.Time{})), 1, SandboxPaid,
			played(2, SandboxPending, time.Time{}), true, false},
	} {
		r := Record{Sandbox: c.before}
		command := PlayCheckout{Attempt: c.attempt, Outcome: c.outcome}
		if growth := GrowthOf(command, &r, later); growth.Budgeted() {
			t.Errorf("%s: a budget refuses it", c.name)
		}
		result, err := Apply(&r, command, later)
		if c.refused != errors.Is(err, ErrNothingPending) || *r.Sandbox != c.want ||
			r.Changed == (c.refused || c.same) {
			t.Errorf("%s: %+v, changed %t, %v", c.name, *r.Sandbox, r.Changed, err)
		}
		if err == nil && result.Sandbox() != c.want {
			t.Errorf("%s: the result is %+v", c.name, result.Sandbox())
		}
	}
}

// TestPlayRefund: only the next refund fails, and its end only comes nearer.
func TestPlayRefund(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var r Record
	play := func(c Command, want SandboxOrder, changed bool) {
		t.Helper()
		r.Changed = false
		_, err := Apply(&r, c, now)
		if got := r.Sandbox; err != nil || got == nil && want != (SandboxOrder{}) || got != nil && *got != want ||
			r.Changed != changed {
			t.Errorf("%+v: %+v, changed %t, %v", c, got, r.Changed, err)
		}
	}
	later, armed := now.Add(time.Minute), SandboxOrder{RefundFails: true}
	failing := SandboxOrder{RefundNo: "ref_1", RefundEnds: later}
	play(PlayRefund{Number: "ref_0", Ends: later}, SandboxOrder{}, false)
	play(FailNextRefund{}, armed, true)
	play(FailNextRefund{}, armed, false)
	play(PlayRefund{Number: "ref_1", Ends: later}, failing, true)
	play(PlayRefund{Number: "ref_1", Ends: later.Add(1)}, failing, false)
	play(PlayRefund{Number: "ref_2", Ends: now}, failing, false)
	play(PlayRefund{Number: "ref_1", Ends: now}, SandboxOrder{RefundNo: "ref_1", RefundEnds: now}, true)
	play(FailNextRefund{}, SandboxOrder{RefundFails: true, RefundNo: "ref_1", RefundEnds: now}, true)
	play(PlayRefund{Number: "ref_1", Ends: later}, SandboxOrder{RefundFails: true, RefundNo: "ref_1", RefundEnds: now},
		false)
	play(PlayRefund{Number: "ref_2", Ends: later}, SandboxOrder{RefundNo: "ref_2", RefundEnds: later}, true)
}
