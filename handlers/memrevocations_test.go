package handlers_test

import (
	"bytes"
	"context"
	"slices"

	"licet/licensing"
	"licet/node/store"
)

// memRevocation is an entry of an owner's list.
type memRevocation struct {
	store.Revocation
	owner licensing.Owner
}

func (s *memStore) noteRevocations(record *licensing.Record) {
	for _, r := range record.Revocations {
		s.revocations = slices.DeleteFunc(s.revocations, func(e memRevocation) bool { return e.Name == r.Name })
		s.revocations = append(s.revocations,
			memRevocation{store.Revocation{Revocation: r, At: s.revision}, record.License.Owner})
	}
}

func (s *memStore) ReadRevocations(
	_ context.Context, owner licensing.Owner, want store.RevocationsWanted,
) (store.Revocations, error) {
	defer s.read()()
	s.listReads++
	list := store.Revocations{Revision: max(s.revision, 1), Complete: want.After == 0}
	for _, e := range s.revocations {
		if e.owner != owner {
			continue
		}
		if list.Epoch = max(list.Epoch, e.At); e.At > want.After && e.Until > want.Today {
			list.Entries = append(list.Entries, e.Revocation)
		}
	}
	slices.SortFunc(list.Entries, func(a, b store.Revocation) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	list.TooMany = len(list.Entries) > want.Most
	return list, s.fail
}

func (s *memStore) SweepRevocations(_ context.Context, today licensing.ReceiptDay) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.revocations)
	newest := map[licensing.Owner]int64{}
	for _, e := range s.revocations {
		newest[e.owner] = max(newest[e.owner], e.At)
	}
	s.revocations = slices.DeleteFunc(s.revocations, func(e memRevocation) bool {
		return e.Until <= today && e.At < newest[e.owner]
	})
	return before - len(s.revocations), s.fail
}
