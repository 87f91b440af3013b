package kv

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/node/store"
)

// maxWriters is how many writers a record remembers.
const maxWriters = 8

// writer is the last swap that one incarnation made on a record.
type writer struct {
	by   store.Incarnation
	swap uint64 // from the incarnation's one counter
}

// withWriter puts w in front, in place of an earlier entry of the same
// incarnation; the one that wrote longest ago falls out.
func withWriter(writers []writer, w writer) []writer {
	next := make([]writer, 1, maxWriters)
	next[0] = w
	for _, old := range writers {
		if old.by != w.by && len(next) < maxWriters {
			next = append(next, old)
		}
	}
	return next
}

// lastWriter is who wrote a record last; zero where nobody is named.
func lastWriter(writers []writer) store.Incarnation {
	if len(writers) == 0 {
		return store.Incarnation{}
	}
	return writers[0].by
}

// verdict is what a record's writers say about one swap.
type verdict int

const (
	swapAbsent  verdict = iota // it was not made
	swapLanded                 // it was made
	swapEvicted                // too many others have written since to tell
)

// judge tells whether the swap w was made on a record, by the writers it has
// now and those it had when w was first sent. It relies on an incarnation
// having one swap in flight on a record at a time: were w made, the
// incarnation's entry would still carry its number, or have been pushed out by
// later writers, after all that stood behind it.
func judge(writers, before []writer, w writer) verdict {
	for _, have := range writers {
		if have.by == w.by {
			if have.swap == w.swap {
				return swapLanded
			}
			return swapAbsent
		}
	}
	older := func(have writer) bool { return slices.Contains(before, have) }
	if len(writers) >= maxWriters && !slices.ContainsFunc(writers, older) {
		return swapEvicted
	}
	return swapAbsent
}

func appendWriters(b []byte, num protowire.Number, writers []writer) []byte {
	for _, w := range writers {
		b = protowire.AppendTag(b, num, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(w.by)+protowire.SizeVarint(w.swap)))
		b = append(b, w.by[:]...)
		b = protowire.AppendVarint(b, w.swap)
	}
	return b
}

func decodeWriter(writers []writer, b []byte) ([]writer, error) {
	var w writer
	if len(b) <= len(w.by) {
		return nil, errMalformed
	}
	if len(writers) == maxWriters {
		return writers, nil // a newer format may remember more
	}
	copy(w.by[:], b)
	swap, n := protowire.ConsumeVarint(b[len(w.by):])
	if n != len(b)-len(w.by) {
		return nil, errMalformed
	}
	w.swap = swap
	return append(writers, w), nil
}
