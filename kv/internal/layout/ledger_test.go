package layout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
)

func goldenLedger() *Ledger {
	spans := []Span{{0x0102030405, 1 << 20}, {0x0102030999, 300}}
	return &Ledger{TrimmedEpoch: 0x0102030405, Begun: kvtest.Time, Spans: spans}
}

func sameLedger(t *testing.T, got, want *Ledger) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Ledger{}, Span{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLedgerRoundTrip(t *testing.T) {
	extremes := &Ledger{Spans: []Span{{1, 0}, {1<<64 - 1, 1<<63 - 1}}}
	for _, l := range []*Ledger{{}, goldenLedger(), {TrimmedEpoch: 1<<64 - 1}, extremes} {
		sameLedger(t, kvtest.Must(DecodeLedger(l.Encode()))(t), l)
	}
	newer := append(goldenLedger().Encode(), appendString(nil, 99, "of a newer build")...)
	sameLedger(t, kvtest.Must(DecodeLedger(newer))(t), goldenLedger())
	for _, value := range []string{
		"", "\x02", "\x01\x1a", "\x01\x1a\x00", "\x01\x1a\x01\x01", "\x01\x1a\x01\x80", // a span is cut off
		"\x01\x1a\x02\x00\x01",                                                     // no epoch
		"\x01\x1a\x03\x01\x01\x01",                                                 // more than a span
		"\x01\x1a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",                 // less than no byte
		"\x01\x1a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x1a\x02\x01\x01", // behind the last epoch
	} {
		if l, err := DecodeLedger([]byte(value)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is read: %+v, %v", value, l, err)
		}
	}
}

// TestLedgerSpans adds events to ledgers.
func TestLedgerSpans(t *testing.T) {
	g := SpanLimit{Bytes: 100, Age: time.Hour}
	type event struct {
		epoch keyspace.Epoch
		bytes int64
		after time.Duration
	}
	for _, c := range []struct {
		name   string
		events []event
		want   []Span
	}{
		{"a little", []event{{3, 5, 0}, {7, 6, time.Minute}}, []Span{{7, 11}}},
		{"just as much", []event{{3, 50, 0}, {7, 50, 0}}, []Span{{7, 100}}},
		{"more", []event{{3, 50, 0}, {7, 51, 0}, {8, 1, 0}}, []Span{{3, 50}, {8, 52}}},
		{"one epoch", []event{{3, 50, 0}, {3, 51, 0}, {3, 500, 0}, {4, 1, 0}}, []Span{{3, 601}, {4, 1}}},
		{"large events", []event{{2, 300, 0}, {3, 400, 0}, {7, 1, 0}}, []Span{{2, 300}, {3, 400}, {7, 1}}},
		{
			"later", []event{{2, 1, 0}, {3, 1, 59 * time.Minute}, {4, 1, time.Hour}, {5, 1, 119 * time.Minute}},
			[]Span{{3, 2}, {5, 2}},
		},
	} {
		l := &Ledger{}
		for _, e := range c.events {
			l.Add(e.epoch, e.bytes, g, kvtest.Time.Add(e.after))
		}
		if diff := cmp.Diff(c.want, l.Spans, cmp.AllowUnexported(Span{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
