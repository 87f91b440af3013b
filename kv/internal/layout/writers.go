package layout

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/node/store"
)

// MaxWriters is how many writers a record remembers.
const MaxWriters = 8

// Writer is the last swap that one incarnation made on a record.
type Writer struct {
	By   store.Incarnation
	Swap uint64 // from the incarnation's one counter
}

// WithWriter puts w in front and removes an earlier entry of the same incarnation. If the table is full, the entry of
// the least recent writer is dropped.
func WithWriter(writers []Writer, w Writer) []Writer {
	next := make([]Writer, 1, MaxWriters)
	next[0] = w
	for _, old := range writers {
		if old.By != w.By && len(next) < MaxWriters {
			next = append(next, old)
		}
	}
	return next
}

// LastWriter returns the incarnation that wrote a record last; zero if the table is empty.
func LastWriter(writers []Writer) store.Incarnation {
	if len(writers) == 0 {
		return store.Incarnation{}
	}
	return writers[0].By
}

// Verdict is what a record's writers say about one swap.
type Verdict int

const (
	SwapAbsent  Verdict = iota // it was not made
	SwapLanded                 // it was made
	SwapEvicted                // too many others have written since to tell
)

// ErrEvicted means that eight other writers have written since the swap, so it is unknown whether the swap landed.
var ErrEvicted = errors.New("eight others have written since")

// FindSwap reports whether the swap w landed on a record, by the record's writers now and its writers before w was
// first sent. FindSwap relies on an incarnation having one swap in flight on a record at a time: if w has landed, the
// incarnation's entry still has the number of w, or later writers have pushed the entry out, after all entries
// behind it.
func FindSwap(writers, before []Writer, w Writer) Verdict {
	for _, have := range writers {
		if have.By == w.By {
			if have.Swap == w.Swap {
				return SwapLanded
			}
			return SwapAbsent
		}
	}
	older := func(have Writer) bool { return slices.Contains(before, have) }
	if len(writers) >= MaxWriters && !slices.ContainsFunc(writers, older) {
		return SwapEvicted
	}
	return SwapAbsent
}

func appendWriters(b []byte, num protowire.Number, writers []Writer) []byte {
	for _, w := range writers {
		b = protowire.AppendTag(b, num, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(w.By)+protowire.SizeVarint(w.Swap)))
		b = append(b, w.By[:]...)
		b = protowire.AppendVarint(b, w.Swap)
	}
	return b
}

func decodeWriter(writers []Writer, b []byte) ([]Writer, error) {
	var w Writer
	if len(b) <= len(w.By) {
		return nil, ErrMalformed
	}
	if len(writers) == MaxWriters {
		return writers, nil // a newer format may remember more
	}
	copy(w.By[:], b)
	swap, n := protowire.ConsumeVarint(b[len(w.By):])
	if n != len(b)-len(w.By) {
		return nil, ErrMalformed
	}
	w.Swap = swap
	return append(writers, w), nil
}
