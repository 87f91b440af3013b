package service

import (
	"bytes"
	"cmp"
	"context"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"licet/licensing"
	"licet/node"
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
	// entryBytes is what a remembered entry takes along with its place in newest, and signedBytes is its share of a
	// signed document. documentBytes is what a signed document has besides: the header, the other members, the
	// signature and its place in SignedDocuments.
	entryBytes, signedBytes, documentBytes = 44, 43, 800
	// MaxRevocations bounds the entries of a list: programs refuse a longer document.
	MaxRevocations = 390_000
	// listsSigned bounds the lists and increments that a node signs at the same time. The longest takes about a
	// quarter of a second and 200 MB.
	listsSigned = 2
)

// RevocationList is an owner's list of revocations as of a time. Its entries never change.
type RevocationList struct {
	AsOf    time.Time // the list has all that was acknowledged as revoked before
	Epoch   int64     // the position of the list
	Entries []store.Revocation
	Signed  SignedDocuments // the list and its increments, by the positions that they continue

	tooLong  bool                 // for programs: the node refuses the list, and remembers no entries
	life     time.Duration        // how long a node answers the list
	revision int64                // at which it was read
	day      licensing.ReceiptDay // the list has no entries that are over by this day
	newest   []uint32             // places in Entries, the newest first
}

// Increment returns the position that the answer continues to a client whose list has a position: that position or one
// before, so that some entries come again. 0: the answer is the whole list.
//
// An increment has 0, 1, 2, 4, 8 and so on entries; fewer, if several entries have one position. So a list has few
// increments, whatever positions are asked for, and together they have fewer than twice the entries of the list.
func (l *RevocationList) Increment(position int64) (after int64) {
	if position <= 0 || position > l.Epoch {
		return 0
	}
	length, later := 0, l.later(position)
	for length < later {
		length = max(2*length, 1)
	}
	if length >= len(l.newest) {
		return 0
	}
	return l.Entries[l.newest[length]].At
}

// After returns the entries that came after a position, in the order of their names; all after position 0.
func (l *RevocationList) After(position int64) []store.Revocation {
	if position == 0 {
		return l.Entries
	}
	places := slices.Sorted(slices.Values(l.newest[:l.later(position)]))
	found := make([]store.Revocation, len(places))
	for i, place := range places {
		found[i] = l.Entries[place]
	}
	return found
}

// later returns how many entries came after a position.
func (l *RevocationList) later(position int64) int {
	n, _ := slices.BinarySearchFunc(l.newest, position, func(place uint32, position int64) int {
		return cmp.Compare(position, l.Entries[place].At)
	})
	return n
}

// byAge returns the places of entries in a list, the newest first.
func byAge(entries []store.Revocation) []uint32 {
	places := make([]uint32, len(entries))
	for i := range places {
		places[i] = uint32(i)
	}
	slices.SortFunc(places, func(a, b uint32) int { return cmp.Compare(entries[b].At, entries[a].At) })
	return places
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
			documents := 2 + bits.Len(uint(len(l.Entries)))
			return uint32(1000 + documentBytes*documents + (entryBytes+3*signedBytes)*len(l.Entries))
		},
	})
}

// SignList returns the list that continues a position, as sign makes it: once for all callers, and an owner's lists one
// after the other. Owners who wait take turns.
func (r *Receipts) SignList(
	ctx context.Context, owner licensing.Owner, list *RevocationList, after int64,
	sign func() (SignedDocument, error),
) (SignedDocument, error) {
	if made, ok := list.Signed.recall(after); ok {
		return made, nil
	}
	if r.signing.Enter(ctx, owner) != nil {
		return SignedDocument{}, licensing.ErrUnavailable
	}
	defer r.signing.Leave(owner)
	return list.Signed.Of(after, sign)
}

// Revocations returns an owner's list of revocations, some seconds old, for any caller, without an API key. Callers at
// the same time share one reading, which reads what has changed since the last one. If it has failed for a reason of
// the caller who reads, such as the deadline, the others try again.
func (r *Receipts) Revocations(
	ctx context.Context, owner licensing.Owner, network netip.Addr,
) (*RevocationList, error) {
	for {
		list, again, err := r.latestList(ctx, owner, network)
		if !again || ctx.Err() != nil {
			return list, err
		}
	}
}

// latestList returns the list that the node remembers, or a reading, perhaps another caller's. again reports that the
// reading has failed for a reason of the other caller.
func (r *Receipts) latestList(
	ctx context.Context, owner licensing.Owner, network netip.Addr,
) (list *RevocationList, again bool, err error) {
	before, known := r.revoked.GetIfPresent(owner)
	if now := r.engine.Now(); known && now.Before(before.AsOf.Add(before.life)) && !now.Before(before.AsOf) {
		if before.tooLong {
			return nil, false, licensing.ErrUnavailable
		}
		return before, false, nil
	}
	reading := &listReading{done: make(chan struct{})}
	if other, busy := r.readings.LoadOrStore(owner, reading); busy {
		reading := other.(*listReading)
		select {
		case <-reading.done:
			return reading.list, reading.own, reading.err
		case <-ctx.Done():
			return nil, false, licensing.ErrUnavailable
		}
	}
	defer close(reading.done)
	defer r.readings.Delete(owner)
	reading.err = licensing.ErrInternal // unless what follows returns
	admitted := false
	reading.list, reading.err = admittedFor(ctx, r.engine, r.engine.EndUserShare(network),
		func(*node.Place) (*RevocationList, error) {
			admitted = true
			return r.readList(ctx, owner, before)
		})
	reading.own = reading.err != nil && (!admitted || ctx.Err() != nil)
	return reading.list, false, reading.err
}

// listReading is a reading of a list of revocations. list, err and own are set when done is closed.
type listReading struct {
	done chan struct{}
	list *RevocationList
	err  error
	own  bool // it has failed for a reason of its caller: the node did not admit it, or its time was over
}

// readList reads what was revoked since the list before, which may be nil, and remembers the new list. A node that must
// not act by its clock reads none: if the clock is ahead, programs would trust the list for too long.
func (r *Receipts) readList(
	ctx context.Context, owner licensing.Owner, before *RevocationList,
) (list *RevocationList, err error) {
	now := r.engine.Now() // before the reading
	if err := r.engine.ActsByTime(); err != nil {
		return nil, err
	}
	list = &RevocationList{AsOf: now, day: licensing.ReceiptDayOf(now)}
	if before == nil || before.day > list.day { // a clock that was ahead has left entries out
		before = &RevocationList{}
	}
	read, err := r.cfg.Queries.ReadRevocations(ctx, owner,
		store.RevocationsWanted{After: before.revision, Today: list.day, Most: MaxRevocations})
	if err != nil {
		return nil, err
	}
	if read.Complete {
		before = &RevocationList{}
	}
	list.Epoch, list.revision = max(before.Epoch, read.Epoch), read.Revision
	list.Entries, list.newest = before.Entries, before.newest
	if len(read.Entries) > 0 || list.day != before.day {
		list.Entries = mergeRevocations(before.Entries, read.Entries, list.day)
		list.newest = byAge(list.Entries)
	}
	if read.TooMany || len(list.Entries) > MaxRevocations {
		r.cfg.Log.Warn().Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).
			Int("most", MaxRevocations).Msg("the list of revocations is too long for programs")
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
