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
	for _, c := range []struct {
		name    string
		before  *SandboxOrder
		attempt int
		outcome SandboxOutcome
		want    SandboxOrder
		refused bool
		same    bool
	}{
		{"the first", nil, 1, SandboxPending, SandboxOrder{1, SandboxPending, time.Time{}}, false, false},
		{"paid at once", nil, 1, SandboxPaid, SandboxOrder{1, SandboxPaid, later}, false, false},
		{"pending, paid", &SandboxOrder{1, SandboxPending, time.Time{}}, 1, SandboxPaid,
			SandboxOrder{1, SandboxPaid, later}, false, false},
		{"pending, failed", &SandboxOrder{1, SandboxPending, time.Time{}}, 1, SandboxFailed,
			SandboxOrder{1, SandboxFailed, time.Time{}}, false, false},
		{"late, paid", &SandboxOrder{1, SandboxLate, now}, 1, SandboxPaid, SandboxOrder{1, SandboxPaid, now}, false,
			false},
		{"late, failed", &SandboxOrder{1, SandboxLate, now}, 1, SandboxFailed, SandboxOrder{1, SandboxLate, now}, true,
			false},
		{"paid, paid", &SandboxOrder{1, SandboxPaid, now}, 1, SandboxPaid, SandboxOrder{1, SandboxPaid, now}, false,
			true},
		{"paid, failed", &SandboxOrder{1, SandboxPaid, now}, 1, SandboxFailed, SandboxOrder{1, SandboxPaid, now}, true,
			false},
		{"failed, paid", &SandboxOrder{1, SandboxFailed, time.Time{}}, 1, SandboxPaid,
			SandboxOrder{1, SandboxFailed, time.Time{}}, true, false},
		{"the next attempt", &SandboxOrder{1, SandboxFailed, time.Time{}}, 2, SandboxPending,
			SandboxOrder{2, SandboxPending, time.Time{}}, false, false},
		{"an earlier attempt", &SandboxOrder{2, SandboxPending, time.Time{}}, 1, SandboxPaid,
			SandboxOrder{2, SandboxPending, time.Time{}}, true, false},
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
		if err == nil && result.Sandbox != c.want {
			t.Errorf("%s: the result is %+v", c.name, result.Sandbox)
		}
	}
}
