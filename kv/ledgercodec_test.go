package kv

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func goldenLedger() *eventLedger {
	spans := []eventSpan{{0x0102030405, 1 << 20}, {0x0102030999, 300}}
	return &eventLedger{swept: 0x0102030405, begun: testTime, spans: spans}
}

func sameLedger(t *testing.T, got, want *eventLedger) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(eventLedger{}, eventSpan{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLedgerRoundTrip(t *testing.T) {
	extremes := &eventLedger{spans: []eventSpan{{1, 0}, {1<<64 - 1, 1<<63 - 1}}}
	for _, l := range []*eventLedger{{}, goldenLedger(), {swept: 1<<64 - 1}, extremes} {
		sameLedger(t, must(readLedger(l.encode()))(t), l)
	}
	newer := append(goldenLedger().encode(), appendString(nil, 99, "of a newer build")...)
	sameLedger(t, must(readLedger(newer))(t), goldenLedger())
	for _, value := range []string{
		"", "\x02", "\x01\x1a", "\x01\x1a\x00", "\x01\x1a\x01\x01", "\x01\x1a\x01\x80", // a span is cut off
		"\x01\x1a\x02\x00\x01",                                                     // no epoch
		"\x01\x1a\x03\x01\x01\x01",                                                 // more than a span
		"\x01\x1a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",                 // less than no byte
		"\x01\x1a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x1a\x02\x01\x01", // behind the last epoch
	} {
		if l, err := readLedger([]byte(value)); !errors.Is(err, errMalformed) {
			t.Errorf("%q is read: %+v, %v", value, l, err)
		}
	}
}

// TestLedgerSpans adds events to ledgers.
func TestLedgerSpans(t *testing.T) {
	g := grain{bytes: 100, age: time.Hour}
	type event struct {
		epoch epoch
		bytes int64
		after time.Duration
	}
	for _, c := range []struct {
		name   string
		events []event
		want   []eventSpan
	}{
		{"a little", []event{{3, 5, 0}, {7, 6, time.Minute}}, []eventSpan{{7, 11}}},
		{"just as much", []event{{3, 50, 0}, {7, 50, 0}}, []eventSpan{{7, 100}}},
		{"more", []event{{3, 50, 0}, {7, 51, 0}, {8, 1, 0}}, []eventSpan{{3, 50}, {8, 52}}},
		{"one epoch", []event{{3, 50, 0}, {3, 51, 0}, {3, 500, 0}, {4, 1, 0}}, []eventSpan{{3, 601}, {4, 1}}},
		{"large events", []event{{2, 300, 0}, {3, 400, 0}, {7, 1, 0}}, []eventSpan{{2, 300}, {3, 400}, {7, 1}}},
		{
			"later", []event{{2, 1, 0}, {3, 1, 59 * time.Minute}, {4, 1, time.Hour}, {5, 1, 119 * time.Minute}},
			[]eventSpan{{3, 2}, {5, 2}},
		},
	} {
		l := &eventLedger{}
		for _, e := range c.events {
			l.add(e.epoch, e.bytes, g, testTime.Add(e.after))
		}
		if diff := cmp.Diff(c.want, l.spans, cmp.AllowUnexported(eventSpan{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
