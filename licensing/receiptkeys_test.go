package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

// TestReceiptKeysRotate: a new receipt key rests before it signs, and the key before stays in the set as long as one of
// its receipts may be valid.
func TestReceiptKeysRotate(t *testing.T) {
	r := &licensing.Record{ActsByTime: true}
	begin := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	do := func(c licensing.Command, now time.Time) *licensing.ReceiptKeys {
		t.Helper()
		result, err := licensing.Apply(r, c, now)
		if err != nil {
			t.Fatal(err)
		}
		return result.ReceiptKeys
	}
	if _, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, begin); err == nil || r.Changed {
		t.Errorf("keys that do not exist were rotated: %v", err)
	}
	r.Documents = licensing.ClocksUnknown()
	if _, err := licensing.Apply(r, licensing.MakeReceiptKeys{Owner: shop}, begin); err != licensing.ErrClockInDoubt ||
		r.Changed {
		t.Errorf("made by a clock that is not compared: %v, changed %v", err, r.Changed)
	}
	r.Documents = &licensing.DocumentClock{Ahead: time.Hour, Apart: time.Hour}
	do(licensing.MakeReceiptKeys{Owner: shop}, begin.Add(time.Hour)) // dated by the earliest clock
	r.Documents = nil
	if k := do(licensing.MakeReceiptKeys{Owner: shop}, begin.Add(time.Hour)); len(k.Keys) != 1 ||
		!k.Keys[0].CreatedAt.Equal(begin) || k.Signing(begin.Add(-time.Hour)).Number != 1 {
		t.Errorf("made twice: %+v", k)
	}
	second := begin.Add(time.Hour)
	do(licensing.RotateReceiptKeys{}, second)
	if k := do(licensing.RotateReceiptKeys{}, second.Add(9*time.Minute)); len(k.Keys) != 2 {
		t.Errorf("rotated while the newest key rests: %+v", k)
	}
	k := r.ReceiptKeys
	for at, want := range map[time.Duration]uint64{0: 1, 10*time.Minute - 1: 1, 10 * time.Minute: 2} {
		if got := k.Signing(second.Add(at)).Number; got != want {
			t.Errorf("after %v signs %d, want %d", at, got, want)
		}
	}
	gone := second.Add(10*time.Minute + licensing.MaxReceiptValidity + time.Hour)
	if listed := k.Listed(gone.Add(-1)); len(listed) != 2 || !listed[0].EndsAt.Equal(gone) ||
		!listed[1].EndsAt.IsZero() {
		t.Errorf("the set is %+v", listed)
	}
	if listed := k.Listed(gone); len(listed) != 1 || listed[0].Number != 2 {
		t.Errorf("the set is %+v", listed)
	}
	r.Documents = licensing.ClocksUnknown()
	same := r.ReceiptKeys
	if _, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, gone); err != licensing.ErrClockInDoubt ||
		r.ReceiptKeys != same {
		t.Errorf("rotated by a clock that is not compared: %v, %+v", err, r.ReceiptKeys)
	}
	r.Documents = nil
	if r.ActsByTime = !r.NeedsClock(licensing.RotateReceiptKeys{}); r.ActsByTime {
		t.Error("a rotation does not need the clock")
	}
	if _, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, gone.Add(-2*time.Hour)); err !=
		licensing.ErrClockInDoubt || r.ReceiptKeys != same {
		t.Errorf("rotated by a clock that may be behind: %v, %+v", err, r.ReceiptKeys)
	}
	r.ActsByTime = true
	if k := do(licensing.RotateReceiptKeys{}, gone); len(k.Keys) != 2 || k.Keys[1].Number != 3 {
		t.Errorf("rotated once the first has gone: %+v", k)
	}
	now := gone
	for range licensing.MaxReceiptKeys - 2 {
		now = now.Add(time.Hour)
		do(licensing.RotateReceiptKeys{}, now)
	}
	before := r.ReceiptKeys
	_, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, now.Add(time.Hour))
	if licensing.ReasonOf(err) != licensing.ReasonAPIKeyLimit || r.ReceiptKeys != before {
		t.Errorf("%v, and the keys are %+v", err, r.ReceiptKeys)
	}
}
