package service

import (
	"bytes"
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"licet/licensing"
	"licet/node/store"
)

const (
	// listAge is how old a list of revocations is at most that a node or a cache has answered. A program asks again
	// after half of revocation_max_age, and after max-age: so it never has a list that is too old.
	listAge = 25 * time.Second
	// listRest says for how long a node answers the same list: so many times as long as the reading took. So one
	// account's list does not keep the store busy.
	listRest = 20
	// rememberedLists bounds the bytes of the lists of revocations that a node remembers.
	rememberedLists = 128 << 20
	// entryBytes is what a remembered entry takes, and signedBytes is its share of the signed list. incrementBytes is
	// what a signed increment has besides: the header, the other members and the signature.
	entryBytes, signedBytes, incrementBytes = 40, 43, 600
	// MaxRevocations bounds the entries of a list: programs refuse a longer document.
	MaxRevocations = 390_000
	// maxLater bounds the entries that an increment has: it is signed for the one program that has this position.
	maxLater = 4096
)

// RevocationList is an owner's list of revocations as of a time. Its entries never change.
type RevocationList struct {
	AsOf    time.Time // the list has all that was acknowledged as revoked before
	Epoch   int64     // the position of the list
	Entries []store.Revocation
	Signed  SignedDocuments // the list, by 0, and increments, by the position that they continue

	tooLong  bool          // for programs: the node refuses the list, and remembers no entries
	life     time.Duration // how long a node answers the list
	revision int64         // at which it was read
	day      licensing.ReceiptDay
	newest   []store.Revocation // the newest first, up to maxLater; of one name perhaps several
}

// Continues reports whether an increment can continue a position: the list has had it, and not too many entries came
// later.
func (l *RevocationList) Continues(position int64) bool {
	return position > 0 && position <= l.Epoch && l.later(position) < maxLater
}

// After returns the entries that came after a position that the list continues, in the order of their names; all after
// position 0.
func (l *RevocationList) After(position int64) []store.Revocation {
	if position == 0 {
		return l.Entries
	}
	return byName(l.newest[:l.later(position)])
}

// later returns how many of the newest entries came after a position.
func (l *RevocationList) later(position int64) int {
	n, _ := slices.BinarySearchFunc(l.newest, position, func(e store.Revocation, position int64) int {
		return cmp.Compare(position, e.At)
	})
	return n
}

// byName returns entries in the order of their names; of a name, the latest.
func byName(entries []store.Revocation) []store.Revocation {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b store.Revocation) int {
		return cmp.Or(compareNames(&a, &b), cmp.Compare(b.At, a.At))
	})
	return slices.CompactFunc(entries, func(a, b store.Revocation) bool { return a.Name == b.Name })
}

// MaxAge returns for how long caches may keep the list.
func (l *RevocationList) MaxAge() time.Duration { return listAge - l.life }

// listLife returns how long a node answers the same list, whose reading took a time.
func listLife(took time.Duration) time.Duration {
	for _, life := range []time.Duration{5 * time.Second, 10 * time.Second} {
		if listRest*took <= life {
			return life
		}
	}
	return 20 * time.Second
}

func newRevocationLists() *otter.Cache[licensing.Owner, *RevocationList] {
	return otter.Must(&otter.Options[licensing.Owner, *RevocationList]{
		MaximumWeight: rememberedLists,
		Weigher: func(_ licensing.Owner, l *RevocationList) uint32 {
			increments := maxSignedDocuments * (signedDocument + incrementBytes + signedBytes*len(l.newest))
			return uint32(1000 + (entryBytes+signedBytes)*len(l.Entries) + 2*entryBytes*len(l.newest) +
				min(increments, maxSignedDocuments*signedDocument+maxSignedBytes))
		},
	})
}

// Revocations returns an owner's list of revocations, some seconds old, for a caller who may be anybody. Callers at the
// same time share one reading, which reads what has changed since the last one.
func (r *Receipts) Revocations(
	ctx context.Context, owner licensing.Owner, network netip.Addr,
) (*RevocationList, error) {
	before, known := r.revoked.GetIfPresent(owner)
	if now := r.engine.Now(); known && now.Before(before.AsOf.Add(before.life)) && !now.Before(before.AsOf) {
		if before.tooLong {
			return nil, licensing.ErrUnavailable
		}
		return before, nil
	}
	reading := &listReading{done: make(chan struct{})}
	if other, busy := r.readings.LoadOrStore(owner, reading); busy {
		reading := other.(*listReading)
		select {
		case <-reading.done:
			return reading.list, reading.err
		case <-ctx.Done():
			return nil, licensing.ErrUnavailable
		}
	}
	defer close(reading.done)
	defer r.readings.Delete(owner)
	reading.err = licensing.ErrInternal // unless what follows returns
	reading.list, reading.err = r.readList(ctx, owner, network, before)
	return reading.list, reading.err
}

// listReading is a reading of a list of revocations. list and err are set when done is closed.
type listReading struct {
	done chan struct{}
	list *RevocationList
	err  error
}

// readList reads what was revoked since the list before, which may be nil, and remembers the new list.
func (r *Receipts) readList(
	ctx context.Context, owner licensing.Owner, network netip.Addr, before *RevocationList,
) (list *RevocationList, err error) {
	place, err := r.engine.EnterFrom(ctx, network)
	if err != nil {
		return nil, err
	}
	defer func() { place.Leave(err) }()
	if before == nil {
		before = &RevocationList{}
	}
	list = &RevocationList{AsOf: r.engine.Now()} // before the reading
	read, err := r.cfg.Queries.ReadRevocations(ctx, owner, before.revision)
	if err != nil {
		return nil, err
	}
	if read.Whole {
		before = &RevocationList{}
	}
	list.Epoch, list.revision = max(before.Epoch, read.Epoch), read.Revision
	list.day, list.Entries, list.newest = licensing.ReceiptDayOf(list.AsOf), before.Entries, before.newest
	if len(read.Entries) > 0 || list.day != before.day {
		list.Entries = mergeRevocations(before.Entries, read.Entries, list.day)
		list.newest = slices.Concat(before.newest, read.Entries)
		slices.SortFunc(list.newest, func(a, b store.Revocation) int { return cmp.Compare(b.At, a.At) })
		list.newest = slices.Clip(list.newest[:min(len(list.newest), maxLater)])
	}
	if len(list.Entries) > MaxRevocations {
		r.cfg.Log.Warn().Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).
			Int("revocations", len(list.Entries)).Msg("the list of revocations is too long for programs")
		// The refusal is remembered, too: else each request would read the whole list again.
		took := r.engine.Now().Sub(list.AsOf)
		r.revoked.Set(owner, &RevocationList{AsOf: list.AsOf, tooLong: true, life: max(listLife(took), listRest*took)})
		return nil, licensing.ErrUnavailable
	}
	list.life = listLife(r.engine.Now().Sub(list.AsOf))
	r.revoked.Set(owner, list)
	return list, nil
}

// mergeRevocations returns the entries of both lists in the order of their names; of a name in both, the later one. It
// leaves out entries that void no receipt any more.
func mergeRevocations(before, later []store.Revocation, today licensing.ReceiptDay) []store.Revocation {
	merged := make([]store.Revocation, 0, len(before)+len(later))
	for len(before) > 0 || len(later) > 0 {
		var next store.Revocation
		switch {
		case len(later) == 0, len(before) > 0 && compareNames(&before[0], &later[0]) < 0:
			next, before = before[0], before[1:]
		default:
			if len(before) > 0 && compareNames(&before[0], &later[0]) == 0 {
				before = before[1:]
			}
			next, later = later[0], later[1:]
		}
		if next.Until > today {
			merged = append(merged, next)
		}
	}
	return merged
}

func compareNames(a, b *store.Revocation) int { return bytes.Compare(a.Name[:], b.Name[:]) }

// SweepRevocations removes the entries of lists of revocations that void no receipt any more, once a day on each node.
func (s *Sweeps) SweepRevocations(ctx context.Context) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	today := licensing.ReceiptDayOf(now)
	if s.revocationsSwept.Load() == uint32(today) {
		return nil
	}
	if _, err := s.cfg.Sweeps.SweepRevocations(ctx, today); err != nil {
		return err
	}
	s.revocationsSwept.Store(uint32(today))
	return nil
}
