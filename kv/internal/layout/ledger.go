package layout

import (
	"time"

	"licet/kv/internal/keyspace"

	"google.golang.org/protobuf/encoding/protowire"
)

// Ledger is the value of a ledger.
type Ledger struct {
	// TrimmedEpoch is the last epoch whose events the owner gave up. The epoch in cell/swept applies to all owners in
	// addition.
	TrimmedEpoch keyspace.Epoch
	// Begun is when the latest span was begun.
	Begun time.Time
	// Spans are in the order of their epochs. A span up to TrimmedEpoch stays until its events are removed.
	Spans []Span
}

// Span says how many bytes an owner's events and their keys have, in the epochs after the previous span up to Last.
type Span struct {
	Last  keyspace.Epoch
	Bytes int64
}

// SpanLimit bounds a span: at either limit another span begins.
type SpanLimit struct {
	Bytes int64
	Age   time.Duration
}

// MeasuredEpoch is the last epoch whose events the ledger counts.
func (l *Ledger) MeasuredEpoch() keyspace.Epoch {
	if n := len(l.Spans); n > 0 {
		return max(l.TrimmedEpoch, l.Spans[n-1].Last)
	}
	return l.TrimmedEpoch
}

// Add counts bytes of events in an epoch. The epoch must not be before an epoch that was added earlier. An epoch is
// in one span.
func (l *Ledger) Add(e keyspace.Epoch, bytes int64, g SpanLimit, now time.Time) {
	n := len(l.Spans)
	if n == 0 || l.Spans[n-1].Last != e && (l.Spans[n-1].Bytes+bytes > g.Bytes || now.Sub(l.Begun) >= g.Age) {
		l.Spans, l.Begun = append(l.Spans, Span{}), now
		n++
	}
	l.Spans[n-1].Last = e
	l.Spans[n-1].Bytes += bytes
}

// Forget drops the spans up to an epoch.
func (l *Ledger) Forget(e keyspace.Epoch) {
	for len(l.Spans) > 0 && l.Spans[0].Last <= e {
		l.Spans = l.Spans[1:]
	}
}

// Unremoved reports whether events that the owner gave up may still be there.
func (l *Ledger) Unremoved() bool { return len(l.Spans) > 0 && l.Spans[0].Last <= l.TrimmedEpoch }

// Field numbers of a ledger.
const (
	ledgerTrimmedEpoch protowire.Number = 1
	ledgerBegun        protowire.Number = 2
	ledgerSpan         protowire.Number = 3 // repeated: the last epoch, less that of the span before, and bytes
)

// Encode returns the ledger's value.
func (l *Ledger) Encode() []byte {
	b := appendUint([]byte{formatVersion}, ledgerTrimmedEpoch, uint64(l.TrimmedEpoch))
	b = appendTime(b, ledgerBegun, l.Begun)
	before := keyspace.Epoch(0)
	for _, s := range l.Spans {
		span := protowire.AppendVarint(nil, uint64(s.Last-before))
		b = appendBytes(b, ledgerSpan, protowire.AppendVarint(span, uint64(s.Bytes)))
		before = s.Last
	}
	return b
}

// DecodeLedger decodes a ledger's value.
func DecodeLedger(value []byte) (*Ledger, error) {
	l := &Ledger{}
	before := keyspace.Epoch(0)
	err := DecodeValue(value, func(f Field) error {
		switch f.Num {
		case ledgerTrimmedEpoch:
			l.TrimmedEpoch = keyspace.Epoch(f.varint)
		case ledgerBegun:
			l.Begun = f.time()
		case ledgerSpan:
			apart, n := protowire.ConsumeVarint(f.Bytes)
			if n < 0 {
				return ErrMalformed
			}
			bytes, m := protowire.ConsumeVarint(f.Bytes[n:])
			if m < 0 || n+m != len(f.Bytes) || apart == 0 || before+keyspace.Epoch(apart) < before || int64(bytes) < 0 {
				return ErrMalformed
			}
			before += keyspace.Epoch(apart)
			l.Spans = append(l.Spans, Span{before, int64(bytes)})
		}
		return nil
	})
	return l, err
}
