package store

import (
	"context"
	"sync/atomic"
)

// Reads counts the bytes that a caller reads from the store. A store may count more than the bytes of a key, for the
// work that each key is. Reads is safe for concurrent use: a read may go on after its caller has given up. Nil counts
// nothing.
type Reads struct{ bytes atomic.Int64 }

// readsKey is the key of [Reads] in a context.
type readsKey struct{}

// CountReads returns a context whose reads count.
func CountReads(ctx context.Context) (context.Context, *Reads) {
	reads := new(Reads)
	return context.WithValue(ctx, readsKey{}, reads), reads
}

// ReadsOf returns the count that [CountReads] has put into a context, or nil. A store notes there what it reads for
// the caller.
func ReadsOf(ctx context.Context) *Reads {
	reads, _ := ctx.Value(readsKey{}).(*Reads)
	return reads
}

// Note counts bytes that a read has returned.
func (r *Reads) Note(bytes int) {
	if r != nil {
		r.bytes.Add(int64(bytes))
	}
}

// Bytes returns how many bytes the reads have returned so far.
func (r *Reads) Bytes() int64 {
	if r == nil {
		return 0
	}
	return r.bytes.Load()
}
