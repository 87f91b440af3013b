package kv

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// ledgersPrefix begins the keys of ledgers. A ledger holds how many bytes of events an
// owner has, and up to which epoch the owner gave up events because the store was over its
// budget. An owner without a ledger has no measured events, and gave up none.
//
// A ledger is not part of the owner's h/ key: older builds write that key anew, empty.
const ledgersPrefix = layout + "s/ledger/"

func ledgerKey(owner licensing.Owner) string { return ledgersPrefix + ownerPath(owner) }

// eventLedger is the value of a ledger.
type eventLedger struct {
	// swept is the last epoch whose events the owner gave up. s/swept holds for all owners
	// besides.
	swept epoch
	// begun is when the latest span was begun.
	begun time.Time
	// spans are in the order of their epochs. Spans up to swept are there until their
	// events are removed.
	spans []eventSpan
}

// eventSpan holds the bytes of an owner's events, with their keys, in the epochs after
// the span before it up to the last one.
type eventSpan struct {
	last  epoch
	bytes int64
}

// grain bounds a span: another begins at either.
type grain struct {
	bytes int64
	age   time.Duration
}

// measured is the last epoch whose events the ledger counts.
func (l *eventLedger) measured() epoch {
	if n := len(l.spans); n > 0 {
		return max(l.swept, l.spans[n-1].last)
	}
	return l.swept
}

// add counts bytes of events in an epoch, which must not be before one that was added.
// An epoch is in one span.
func (l *eventLedger) add(e epoch, bytes int64, g grain, now time.Time) {
	n := len(l.spans)
	if n == 0 || l.spans[n-1].last != e && (l.spans[n-1].bytes+bytes > g.bytes || now.Sub(l.begun) >= g.age) {
		l.spans, l.begun = append(l.spans, eventSpan{}), now
		n++
	}
	l.spans[n-1].last = e
	l.spans[n-1].bytes += bytes
}

// forget drops the spans up to an epoch.
func (l *eventLedger) forget(e epoch) {
	for len(l.spans) > 0 && l.spans[0].last <= e {
		l.spans = l.spans[1:]
	}
}

// unremoved reports whether events that the owner gave up may still be there.
func (l *eventLedger) unremoved() bool { return len(l.spans) > 0 && l.spans[0].last <= l.swept }

// Field numbers of a ledger.
const (
	ledgerSwept protowire.Number = 1
	ledgerBegun protowire.Number = 2
	ledgerSpan  protowire.Number = 3 // repeated: the last epoch, less that of the span before, and bytes
)

func (l *eventLedger) encode() []byte {
	b := appendUint([]byte{formatVersion}, ledgerSwept, uint64(l.swept))
	b = appendTime(b, ledgerBegun, l.begun)
	before := epoch(0)
	for _, s := range l.spans {
		span := protowire.AppendVarint(nil, uint64(s.last-before))
		b = appendBytes(b, ledgerSpan, protowire.AppendVarint(span, uint64(s.bytes)))
		before = s.last
	}
	return b
}

func readLedger(value []byte) (*eventLedger, error) {
	l := &eventLedger{}
	before := epoch(0)
	err := decodeValue(value, func(f field) error {
		switch f.num {
		case ledgerSwept:
			l.swept = epoch(f.varint)
		case ledgerBegun:
			l.begun = f.time()
		case ledgerSpan:
			apart, n := protowire.ConsumeVarint(f.bytes)
			if n < 0 {
				return errMalformed
			}
			bytes, m := protowire.ConsumeVarint(f.bytes[n:])
			if m < 0 || n+m != len(f.bytes) || apart == 0 || before+epoch(apart) < before || int64(bytes) < 0 {
				return errMalformed
			}
			before += epoch(apart)
			l.spans = append(l.spans, eventSpan{before, int64(bytes)})
		}
		return nil
	})
	return l, err
}
