package store

import "context"

// Reads counts the bytes that the store reads for one request, and refuses further reads once they are too many. Reads
// is safe for concurrent use: a read may continue after its caller has given up. Nil counts and refuses nothing.
type Reads struct {
	note    func(bytes int)
	refusal func() error
}

// readsKey is the key of [Reads] in a context.
type readsKey struct{}

// CountReads returns a context whose reads count. See Note and Refusal for the two functions, which must be safe for
// concurrent use.
func CountReads(ctx context.Context, note func(bytes int), refusal func() error) context.Context {
	return context.WithValue(ctx, readsKey{}, &Reads{note, refusal})
}

// ReadsOf returns what [CountReads] has put into a context, or nil. A store notes there what it reads for the
// caller.
func ReadsOf(ctx context.Context) *Reads {
	reads, _ := ctx.Value(readsKey{}).(*Reads)
	return reads
}

// Note counts bytes that a read has returned. A store may count more than the bytes of a key, for the work that each
// key is, and a use case may count bytes for the work of its changes.
func (r *Reads) Note(bytes int) {
	if r != nil {
		r.note(bytes)
	}
}

// Refusal returns an error while the caller must not begin a large read, because earlier reads were larger than the
// caller's limit allows; else nil.
func (r *Reads) Refusal() error {
	if r == nil {
		return nil
	}
	return r.refusal()
}
