package licensing

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// usageStep is one step of a history of an owner's usage.
type usageStep struct {
	begun   int64 // the revision of the latest recount that has begun, from this step on; 0: as before
	cmd     Command
	want    Size
	changed Size // the correction
}

func grow(changes ...int64) AddUsage {
	var c AddUsage
	for i := 0; i < len(changes); i += 2 {
		c.Changes = append(c.Changes,
			SizeChange{Revision: changes[i], Size: Size{Bytes: changes[i+1], Keys: changes[i+1] / 10}})
	}
	return c
}

func TestUsageAndRecount(t *testing.T) {
	sized := func(bytes int64) Size { return Size{Bytes: bytes, Keys: bytes / 10} }
	for name, steps := range map[string][]usageStep{
		"growth adds up": {
			{cmd: grow(5, 100, 6, -20), want: sized(80)},
			{cmd: grow(7, -90), want: sized(-10)},
		},
		"a recount replaces the sum": {
			{cmd: grow(5, 100), want: sized(100)},
			{begun: 10, cmd: SetUsage{Counted: sized(300), RecountAt: 10}, want: sized(300), changed: sized(200)},
		},
		"growth after the revision of the recount is kept": {
			{cmd: grow(5, 100), want: sized(100)},
			{begun: 10, cmd: grow(9, 10, 12, 20), want: sized(130)},
			{cmd: grow(13, 30), want: sized(160)},
			{cmd: SetUsage{Counted: sized(200), RecountAt: 10}, want: sized(250), changed: sized(90)},
		},
		"growth that the recount has counted does not count twice": {
			{begun: 10, cmd: SetUsage{Counted: sized(200), RecountAt: 10}, want: sized(200), changed: sized(200)},
			{cmd: grow(9, 10, 10, 10, 11, 20), want: sized(220)},
		},
		"the second recount keeps only growth after its own revision": {
			{begun: 10, cmd: grow(12, 20), want: sized(20)},
			{cmd: SetUsage{Counted: sized(100), RecountAt: 10}, want: sized(120), changed: sized(100)},
			{cmd: grow(15, 30), want: sized(150)},
			{begun: 20, cmd: grow(18, 10, 22, 40), want: sized(200)},
			{cmd: SetUsage{Counted: sized(170), RecountAt: 20}, want: sized(210), changed: sized(10)},
		},
		"the result of a recount that another one has overtaken is not stored": {
			{begun: 20, cmd: grow(5, 100), want: sized(100)},
			{cmd: SetUsage{Counted: sized(999), RecountAt: 10}, want: sized(100)},
		},
		"a recount is stored once": {
			{begun: 10, cmd: SetUsage{Counted: sized(100), RecountAt: 10}, want: sized(100), changed: sized(100)},
			{cmd: grow(12, 50), want: sized(150)},
			{cmd: SetUsage{Counted: sized(100), RecountAt: 10}, want: sized(150)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r Record
			for i, step := range steps {
				if step.begun != 0 {
					r.RecountAt = step.begun
				}
				result, err := Apply(&r, step.cmd, time.UnixMilli(int64(i)))
				if err != nil || result.Stored() != step.want || result.Corrected() != step.changed ||
					r.Usage.Size != step.want {
					t.Fatalf("step %d: %+v, %v, want the size %+v and the correction %+v", i, result, err, step.want,
						step.changed)
				}
			}
		})
	}
}

func TestBudget(t *testing.T) {
	b := Budget{Bytes: 1000, Keys: 50}
	for _, test := range []struct {
		size            Size
		warns, refusing bool
	}{
		{Size{Bytes: 639, Keys: 31}, false, false},
		{Size{Bytes: 640, Keys: 0}, true, false},
		{Size{Bytes: 0, Keys: 32}, true, false},
		{Size{Bytes: 799, Keys: 39}, true, false},
		{Size{Bytes: 800, Keys: 0}, true, true},
		{Size{Bytes: 0, Keys: 40}, true, true},
		{Size{Bytes: -1, Keys: 5000}, true, true},
	} {
		if b.Warns(test.size) != test.warns || (b.Refuse(test.size) != nil) != test.refusing {
			t.Errorf("%+v: warns %v, refuses %v", test.size, b.Warns(test.size), b.Refuse(test.size))
		}
	}
	if err := b.Refuse(Size{Bytes: 900, Keys: 45}); !errors.Is(err, ErrAccountBudgetReached) {
		t.Errorf("%v", err)
	}
	huge := Size{Bytes: 1 << 60, Keys: 1 << 60}
	if err := (Budget{}).Refuse(huge); err != nil || (Budget{}).Warns(huge) {
		t.Errorf("no budget: %v", err)
	}
	if err := (Budget{Keys: 1 << 60}).Refuse(Size{Bytes: 1 << 60, Keys: 5}); err != nil {
		t.Errorf("a budget of keys only: %v", err)
	}
}

func TestBudgetRefusalIsNotFinal(t *testing.T) {
	if ErrAccountBudgetReached.Final() {
		t.Error("the refusal would be kept under its Idempotency-Key, and a larger budget would not help")
	}
}

func TestBudgetWarning(t *testing.T) {
	var r Record
	owner := Owner{AccountID: "acct_1", Mode: Test}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	revision := int64(0)
	add := func(after time.Duration, bytes int64) (warnings []Event) {
		t.Helper()
		now = now.Add(after)
		revision++
		r.Events = nil
		cmd := AddUsage{Owner: owner, Budget: Budget{Bytes: 1000},
			Changes: []SizeChange{{Revision: revision, Size: Size{Bytes: bytes}}}}
		if _, err := Apply(&r, cmd, now); err != nil {
			t.Fatal(err)
		}
		return r.Events
	}
	for i, step := range []struct {
		after time.Duration
		bytes int64
		want  bool
	}{
		{0, 639, false},
		{time.Second, 1, true},
		{time.Hour, 500, false},    // still above
		{time.Second, -600, false}, // below
		{time.Second, 600, true},   // an hour after the first warning
		{time.Second, -600, false},
		{time.Second, 600, false}, // too soon
		{time.Second, -600, false},
		{2 * time.Hour, 600, true},
	} {
		got := add(step.after, step.bytes)
		if (len(got) == 1) != step.want {
			t.Fatalf("step %d, with %d bytes: events %+v", i, r.Usage.Bytes, got)
		}
	}
	e := r.Events[0]
	if e.Type != EventBudgetWarning || e.Actor != System || e.Sequence != 3 || r.Usage.Sequence != 3 ||
		!e.At.Equal(now) {
		t.Errorf("%+v", e)
	}
	var members []string
	for _, m := range e.Members {
		if !m.WellFormed() {
			t.Errorf("%+v is not well-formed", m)
		}
		members = append(members, m.Of+"."+m.Name+"="+m.JSON)
	}
	want := []string{
		"account.stored_bytes=1140", "account.stored_keys=0", "account.limit_bytes=800", "account.limit_keys=0",
		"account.budget_bytes=1000", "account.budget_keys=0",
	}
	if diff := cmp.Diff(want, members); diff != "" {
		t.Error(diff)
	}

	add(time.Second, -600)
	r.Usage.WarnedAt = now.Add(9 * 24 * time.Hour)
	if got := add(time.Second, 600); len(got) != 1 || !r.Usage.WarnedAt.Equal(now) {
		t.Errorf("a clock was 9 days ahead at the warning before: events %+v, warned at %v", got, r.Usage.WarnedAt)
	}
	add(time.Second, -600)
	r.Usage.WarnedAt = now.Add(59 * time.Minute)
	if got := add(time.Second, 600); len(got) != 0 {
		t.Errorf("a clock was 59 minutes ahead at the warning before: events %+v", got)
	}
}

func TestUsageIsCloned(t *testing.T) {
	r := Record{Usage: &Usage{Size: Size{Bytes: 5}}}
	c := r.Clone()
	if _, err := Apply(&c, grow(1, 100), time.Time{}); err != nil || r.Usage.Bytes != 5 || c.Usage.Bytes != 105 {
		t.Errorf("%+v, %+v, %v", r.Usage, c.Usage, err)
	}
}
