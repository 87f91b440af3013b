package claimwrite

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// Writes is what a transaction of another record, such as an API key or a replay, adds to write claims.
type Writes struct {
	Compares  []clientv3.Cmp
	Puts      []clientv3.Op
	Gets      []clientv3.Op
	Growth    licensing.Size    // how much more the owner of the claims stores afterwards
	revisions []int64           // of the claims as they were read; 0: there was none
	writers   [][]layout.Writer // of the claims as they were read
}

// versioned is the token of a claim that exists.
type versioned interface {
	// Version returns the revision of the claim's key, and the claim's writers.
	Version() (revision int64, writers []layout.Writer)
}

// Of returns what a transaction of the writer me adds to write claims.
func Of(claims []store.Write, me layout.Writer) Writes {
	var along Writes
	for _, w := range claims {
		var revision int64
		var writers []layout.Writer
		if token, ok := w.Token.(versioned); ok {
			revision, writers = token.Version()
		}
		key, claim := keyspace.RecordKey(w.Ref), w.Record.Claim
		along.Compares = append(along.Compares, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
		value := string(layout.EncodeClaim(claim, layout.WithWriter(writers, me)))
		place := keyspace.ClaimAgeKey(claim.CreatedAt, w.Ref.Owner, w.Ref.ID)
		along.Puts = append(along.Puts, clientv3.OpPut(key, value), clientv3.OpPut(place, ""))
		along.Growth = along.Growth.Plus(layout.SizeOf(len(place), 0))
		if revision == 0 { // else the claim replaces an older one of about the same size
			along.Growth = along.Growth.Plus(layout.SizeOf(len(key), len(value)))
		}
		along.Gets = append(along.Gets, clientv3.OpGet(key))
		along.revisions = append(along.revisions, revision)
		along.writers = append(along.writers, writers)
	}
	return along
}

// Lost reports whether another request has written one of the claims, by the answers to the gets.
func (c *Writes) Lost(answers []*etcdserverpb.ResponseOp) bool {
	for i, revision := range c.revisions {
		var now int64
		if kv := etcd.First(answers, i); kv != nil {
			now = kv.ModRevision
		}
		if now != revision {
			return true
		}
	}
	return false
}

// FindSwap reports, by the answers to the gets, whether the transaction of the writer me, which writes the claims, has
// landed. It is for transactions whose other keys do not show this.
func (c *Writes) FindSwap(answers []*etcdserverpb.ResponseOp, me layout.Writer) (layout.Verdict, error) {
	for i, before := range c.writers {
		var now []layout.Writer
		if kv := etcd.First(answers, i); kv != nil {
			var err error
			if _, now, err = layout.DecodeClaim(kv.Value); err != nil {
				return layout.SwapAbsent, layout.Internal(err)
			}
		}
		if verdict := layout.FindSwap(now, before, me); verdict != layout.SwapAbsent {
			return verdict, nil
		}
	}
	return layout.SwapAbsent, nil
}
