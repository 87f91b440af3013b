package connection

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLazyDeadline: apply sets a deadline only if the applied deadline is late, or early by more than
// a small part of the remaining time.
func TestLazyDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d lazyDeadline
		var set []time.Time
		f := func(wanted time.Time, anew bool) {
			t.Helper()
			set = nil
			d.wanted = wanted
			if err := d.apply(func(at time.Time) error { set = append(set, at); return nil }); err != nil {
				t.Fatal(err)
			}
			if (len(set) == 1) != anew || anew && !set[0].Equal(wanted) {
				t.Errorf("set %v, want %v: %v", set, wanted, anew)
			}
		}
		start := time.Now()
		f(time.Time{}, false)
		f(start.Add(31*time.Second), true)
		f(start.Add(31*time.Second), false)
		f(start.Add(32*time.Second), false)
		f(start.Add(33*time.Second), true)
		f(start.Add(5*time.Second), true) // sooner
		f(start.Add(75*time.Second), true)
		time.Sleep(50 * time.Second)
		f(start.Add(75*time.Second+750*time.Millisecond), false)
		f(start.Add(76*time.Second), true)
		time.Sleep(24 * time.Second)
		f(time.Now().Add(2*time.Second+50*time.Millisecond), false)
		f(time.Now().Add(3*time.Second), true)
		f(time.Now(), true) // at once
		f(time.Now(), false)
		f(time.Now().Add(1), true)
		f(time.Time{}, true) // none
		f(time.Time{}, false)
		f(time.Now().Add(time.Hour), true)
	})
}

// TestLazyDeadlineFails: apply tries again to set a deadline that it could not set.
func TestLazyDeadlineFails(t *testing.T) {
	broken := errors.New("broken")
	d := lazyDeadline{wanted: time.Now().Add(time.Hour)}
	for range 2 {
		if err := d.apply(func(time.Time) error { return broken }); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	calls := 0
	for range 2 {
		if err := d.apply(func(time.Time) error { calls++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("set %d times, want once", calls)
	}
}
