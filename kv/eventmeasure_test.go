package kv

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// countingTxns counts transactions.
type countingTxns struct {
	*counting
	txns atomic.Int64
}

func (c *countingTxns) Txn(ctx context.Context) clientv3.Txn {
	c.txns.Add(1)
	return c.counting.Txn(ctx)
}

// TestQuietOwnersCostLittle measures the events of one owner among hundreds of owners without new events, and sweeps
// when nothing is to be done.
func TestQuietOwnersCostLittle(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	ctx := t.Context()
	const quiet = 400
	var owners []licensing.Owner
	for i := range quiet {
		owners = append(owners, acct(fmt.Sprint("quiet", i)))
		l.license(l.store, owners[i])
	}
	busy := acct("busy")
	l.license(l.store, busy)
	l.closeEpoch()
	seen := &countingTxns{counting: l.observed()}
	l.store.etcd.KV = seen
	const chunks = (quiet + measureOwners) / measureOwners
	const slots = 2 * (quiet/etcd.MaxOps + 1) // transactions that list the owners and their ledgers in all slots
	for _, c := range []struct {
		name         string
		now          time.Duration
		txns, ranges int64 // at most
	}{
		{"all are new", 0, slots + 2*chunks + 1, quiet + 1 + 10},
		{"nothing is new", time.Hour, slots, 10},
		{"one has more", 2 * time.Hour, slots + chunks + 2, 10},
	} {
		if c.name == "one has more" {
			l.license(l.store, busy)
			l.closeEpoch()
		}
		seen.txns.Store(0)
		seen.ranges.Store(0)
		if _, err := l.store.SweepEvents(ctx, kvtest.Time.Add(c.now), keepAll); err != nil {
			t.Fatal(err)
		}
		if txns, ranges := seen.txns.Load(), seen.ranges.Load(); txns > c.txns || ranges > c.ranges {
			t.Errorf("%s: %d transactions and %d ranges", c.name, txns, ranges)
		}
	}
	if n := l.family(keyspace.LedgersFamily); n != quiet+1 {
		t.Errorf("there are %d ledgers", n)
	}
	l.clean()
}

// TestMeasuresAtOnce has nodes measure the same events at once, up to different epochs,
// and again: each event is counted once.
func TestMeasuresAtOnce(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owners := []licensing.Owner{acct("a"), acct("b")}
	const apart, last = 1 << 20, 60 << 20
	for _, owner := range owners {
		l.putEpochs(owner, span{from: 7, epochs: 60, each: 3, apart: apart})
	}
	g := layout.SpanLimit{Bytes: 2000, Age: time.Hour}
	stores := []*Store{l.store, l.open(nil), l.open(nil)}
	for to := keyspace.Epoch(10); to <= last+10; to += 10 * apart {
		var group sync.WaitGroup
		for i, s := range stores {
			group.Go(func() {
				m := measuring{1, to + keyspace.Epoch(i)*apart, 0, g, kvtest.Time}
				if err := s.measureEvents(t.Context(), owners, m); err != nil {
					t.Errorf("node %d: %v", i, err)
				}
			})
		}
		group.Wait()
	}
	for _, owner := range owners {
		sum := int64(0)
		for _, span := range l.ledger(owner).Spans {
			sum += span.Bytes
		}
		if is := l.eventBytes(owner); sum != is {
			t.Errorf("%s has %d bytes, and its ledger %d", owner.AccountID, is, sum)
		}
	}
}
