package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet"
	"licet/node"
)

// reissuePause is the longest pause before a swap is issued again; it doubles.
const (
	reissuePause    = 10 * time.Millisecond
	reissuePauseMax = 200 * time.Millisecond
)

// Commit makes a change, and settles it: an attempt whose answer is lost is
// issued again, under the same number, until one is answered or ctx ends.
func (s *Store) Commit(ctx context.Context, change node.Change) (node.Outcome, error) {
	me := writer{by: s.incarnation, swap: s.swaps.Add(1)}
	swap, err := s.newSwap(change, me)
	if err != nil {
		return node.Outcome{}, broken(err)
	}
	inDoubt := false // an earlier attempt may have been made, or may yet be
	settled := false
	defer func() {
		if inDoubt && !settled {
			s.forget(swap)
		}
	}()
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return node.Outcome{}, gaveUp(inDoubt, ctx.Err())
		}
		r, sent := s.writes.do(ctx, &part{
			compares: swap.compares, then: swap.then, reads: swap.reads,
			bytes: swap.bytes, doubted: inDoubt,
		})
		if !sent {
			return node.Outcome{}, gaveUp(inDoubt, r.err)
		}
		switch classify(r.err) {
		case succeeded:
			settled = true
			if r.succeeded {
				s.landed(swap, r.revision)
				return node.Outcome{Landed: true}, nil
			}
			return s.lost(swap, r, me, inDoubt)
		case refused:
			return node.Outcome{}, gaveUp(inDoubt, r.err)
		case rejected:
			s.log.Error().Err(r.err).Int("compares", len(swap.compares)).Int("operations", len(swap.then)).
				Msg("etcd rejects a transaction's form")
			if inDoubt {
				return node.Outcome{}, gaveUp(inDoubt, r.err)
			}
			return node.Outcome{}, broken(r.err)
		case unknown:
			inDoubt = true
			s.metrics.SwapsReissued.Inc()
			pauseBeforeReissue(ctx, attempt)
		}
	}
}

// gaveUp is the error of a swap that will not be tried again. Doubt is sticky:
// that a later attempt was refused says nothing of an earlier one.
func gaveUp(inDoubt bool, cause error) error {
	if inDoubt {
		return fmt.Errorf("%w: %w", licet.ErrOutcomeUnknown, cause)
	}
	return unavailable(cause)
}

// landed remembers what a swap wrote.
func (s *Store) landed(sw *swap, revision int64) {
	for i := range sw.fresh {
		f := &sw.fresh[i]
		f.slot.note(seen{revision: revision, value: f.value, spilled: f.spilled})
		for _, entry := range f.entries {
			s.memory.devices.note(f.id, entry.Device.ID, entry.Bound)
		}
		if f.spilled {
			if due := s.memory.rosters.follow(f, revision); due != nil {
				s.startSurvey(f.id, due)
			}
		}
	}
	for i := range sw.touches {
		t := &sw.touches[i]
		s.memory.rosters.touched(t.id, t.device, t.from, revision)
	}
}

// lost tells what a swap that did not go through was lost to.
func (s *Store) lost(sw *swap, r reply, me writer, inDoubt bool) (node.Outcome, error) {
	rivals, err := s.readSnapshots(sw.queries, r.responses, true)
	if err != nil {
		// What it lost to can't be read, so not even whether it lost.
		return node.Outcome{}, broken(err)
	}
	s.watchSnapshots(rivals)
	outcome, err := sw.judgeLoss(rivals, me, inDoubt)
	for i := range rivals {
		if q := &sw.queries[i]; q.incomplete(rivals[i]) {
			outcome.Rivals = nil
			s.memory.rosters.forgetBefore(licet.LicenseKey(q.Ref.ID).ID(), rivals[i].Token.(*stored).revision)
		}
	}
	return outcome, err
}

// forget forgets the devices of the licenses that a swap may have changed.
func (s *Store) forget(sw *swap) {
	for i := range sw.fresh {
		s.memory.rosters.forget(sw.fresh[i].id)
	}
}

var errEvicted = errors.New("eight others have written since")

// judgeLoss tells of a swap that did not go through whether an earlier copy of
// it did, by its first record. It is asked even where no attempt was in doubt: the
// client may have sent one twice by itself.
func (sw *swap) judgeLoss(rivals []node.Snapshot, me writer, inDoubt bool) (node.Outcome, error) {
	token, exists := rivals[0].Token.(*stored)
	if sw.removes && !exists && inDoubt {
		// Whoever removed it, what was asked for is so.
		return node.Outcome{Landed: true}, nil
	}
	if exists {
		switch verdict := judge(token.writers, sw.before, me); {
		case verdict == swapLanded:
			return node.Outcome{Landed: true}, nil
		case verdict == swapEvicted && inDoubt:
			return node.Outcome{}, gaveUp(inDoubt, errEvicted)
		}
	}
	return node.Outcome{Rivals: rivals}, nil
}

func pauseBeforeReissue(ctx context.Context, attempt int) {
	longest := min(reissuePause<<min(attempt, 10), reissuePauseMax)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// swap is a change as one etcd transaction.
type swap struct {
	compares []*etcdserverpb.Compare
	then     []*etcdserverpb.RequestOp
	reads    [][]byte // of queries
	bytes    int      // of what it puts, and about of the rest
	queries  []query
	fresh    []fresh // the licenses as they will be
	touches  []touch
	before   []writer // those that the first record had when it was read
	removes  bool     // the first record is to be removed
	broken   string   // the rule that a license breaks which it writes; normally empty
}

// fresh is what a swap makes of a license that was there before.
type fresh struct {
	id      licet.LicenseID
	slot    *slot
	from    int64 // the revision that it is made of
	value   []byte
	spilled bool
	moved   bool                 // the devices get keys of their own: entries are all of them
	entries []*licet.DeviceEntry // those with keys of their own that it writes
	guesses int                  // devices that are compared, since they were taken for absent
	devices int                  // how many the license will have
}

// touch is a device with a key of its own of which only is stored when it was
// seen.
type touch struct {
	id     licet.LicenseID
	device licet.Device
	from   int64 // the revision of the device's key that is replaced
}

// newSwap builds the transaction of a change. Every record carries the number by
// which the swap is known again, and the first of the writes tells. A record that
// is removed tells by not being there.
func (s *Store) newSwap(change node.Change, me writer) (*swap, error) {
	sw := &swap{}
	for i, write := range change.Writes {
		token, _ := write.Token.(*stored)
		if token == nil {
			token = &stored{}
		}
		if i == 0 {
			sw.before, sw.removes = token.writers, removes(&write)
		}
		if err := sw.add(write, token, withWriter(token.writers, me)); err != nil {
			return nil, err
		}
	}
	if sw.broken != "" {
		s.countBroken(sw.broken, "write")
	}
	return sw, nil
}

func (sw *swap) add(write node.Write, token *stored, writers []writer) error {
	key := []byte(recordKey(write.Ref))
	// Where all devices are known nobody else writes, and a loss is not to be
	// expected; then the devices are not asked for along with it.
	record := &write.Record
	q := query{Want: node.Want{Ref: write.Ref, Metadata: record.Metadata != nil}, devices: token.spilled && !token.whole}
	if write.Ref.Kind != licet.KindLicense || token.revision == 0 {
		sw.compare(key, token.revision)
	}
	switch write.Ref.Kind {
	case licet.KindProduct:
		sw.putProduct(key, &write, token, writers)
	case licet.KindClaim:
		sw.put(key, encodeClaim(record.Claim, writers))
		sw.put([]byte(claimAgeKey(record.Claim.CreatedAt, write.Ref.Owner, write.Ref.ID)), nil)
	case licet.KindOrder:
		if err := sw.putOrder(key, write, token, writers); err != nil {
			return err
		}
	case licet.KindLicense:
		for id := range record.Devices {
			q.Devices = append(q.Devices, id)
		}
		if token.revision == 0 {
			sw.putNewLicense(record.License, writers)
		} else if err := sw.putLicense(key, record, token, writers); err != nil {
			return err
		}
		sw.putMetadata(record)
	}
	sw.queries = append(sw.queries, q)
	sw.reads = appendKeys(sw.reads, &q, key)
	return nil
}

// compare demands that a key is as it was at a revision; at 0, that it does not
// exist.
func (sw *swap) compare(key []byte, revision int64) {
	sw.compares = append(sw.compares, unchanged(key, revision))
	sw.bytes += 2*len(key) + operationBytes // the same key is read in Else
}

// operationBytes is about what an operation takes besides its key and value.
const operationBytes = 24

func (sw *swap) put(key, value []byte) {
	sw.then = append(sw.then, put(key, value))
	sw.bytes += len(key) + len(value) + operationBytes
}

func (sw *swap) remove(key []byte) {
	sw.then = append(sw.then, remove(key))
	sw.bytes += len(key) + operationBytes
}

// putProduct writes a product, or removes it, along with its place in the listing.
func (sw *swap) putProduct(key []byte, write *node.Write, token *stored, writers []writer) {
	if removes(write) {
		sw.remove(key)
	} else {
		product := storedProduct{product: *write.Record.Product, writers: writers, unknown: token.unknown}
		sw.put(key, product.encode())
	}
	sw.relist(token.listed, placeOfProduct(write.Ref, write.Record.Product))
}

func (sw *swap) putOrder(key []byte, write node.Write, token *stored, writers []writer) error {
	order := write.Record.Order
	value, err := (&storedOrder{order: *order, writers: writers, unknown: token.unknown}).encode()
	if err != nil {
		return err
	}
	sw.put(key, value)
	sw.reschedule(string(key), token.due, dueOf(order.Due()), nil)
	if token.revision == 0 {
		sw.put([]byte(orderOwnerKey(order.OrderNo)), encodeOwner(order.Owner))
		sw.listAbove(string(key))
	}
	sw.relist(token.listed, placeOfOrder(order))
	if issued := write.Record.Issued; issued != nil {
		sw.compare([]byte(licenseKey(issued.Key.ID())), 0)
		sw.putNewLicense(issued, writers[:1])
	}
	return nil
}

func (sw *swap) putNewLicense(l *licet.License, writers []writer) {
	id := l.Key.ID()
	fresh := storedLicense{license: *l, writers: writers}
	sw.broken = cmp.Or(sw.broken, fresh.broken())
	key := licenseKey(id)
	sw.put([]byte(key), fresh.encode())
	sw.reschedule(key, 0, dueOf(l.Due()), []byte(l.Key.Prefix()))
	sw.list(listingKey(l.Owner, l.CreatedAt, id))
}

// putMetadata writes a license's metadata where it has changed. The license's
// revision guards it, so that the license is written along with it.
func (sw *swap) putMetadata(record *licet.Record) {
	if record.Metadata == nil || !record.Metadata.Changed {
		return
	}
	key := []byte(metadataKey(record.License.Key.ID()))
	if record.Metadata.Object == "" {
		sw.remove(key)
	} else {
		sw.put(key, []byte(record.Metadata.Object))
	}
}

// removes tells whether a write removes its record. Only products are removed.
func removes(write *node.Write) bool {
	return write.Ref.Kind == licet.KindProduct && write.Record.Product == nil
}
