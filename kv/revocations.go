package kv

import (
	"cmp"
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// revocationPage is how many entries one request reads: etcd counts all that follow for each page, and looks at
	// all that follow for entries after a revision.
	revocationPage = 10_000
	// sweptTogether is how many entries one transaction removes.
	sweptTogether = etcd.MaxOps / 2
)

// putRevocations writes what a change of a license voids. An entry may exist: the new one has a higher revision, since
// all changes of a license come one after the other. Then its growth counts twice until the next recount.
func (sw *swap) putRevocations(record *licensing.Record) {
	for _, r := range record.Revocations {
		sw.create([]byte(keyspace.RevocationKey(record.License.Owner, r.Name)), layout.EncodeRevocation(r))
	}
}

// ReadRevocations reads an owner's list of revocations: the entries that void a receipt, up to one page more than
// wanted. It reads the whole list if the store was restored since the earlier reading.
func (s *views) ReadRevocations(
	ctx context.Context, owner licensing.Owner, want store.RevocationsWanted,
) (list store.Revocations, err error) {
	var options []clientv3.OpOption
	if list.Complete = want.After == 0; !list.Complete {
		options = append(options, clientv3.WithMinModRev(want.After+1))
	}
	from := keyspace.RevocationsOf(owner)
	end := clientv3.GetPrefixRangeEnd(from)
	for more := true; more; {
		page, err := s.etcd.Page(ctx, "read_revocations", from, end, revocationPage, list.Revision, options...)
		if err != nil {
			return store.Revocations{}, etcd.Unavailable(err)
		}
		if list.Revision == 0 {
			list.Revision = page.Header.Revision
			list.Epoch = keyspace.FirstEpoch(list.Revision)
			if !list.Complete && keyspace.Restored(want.After, list.Revision) {
				want.After = 0
				return s.ReadRevocations(ctx, owner, want)
			}
		}
		for _, kv := range page.Kvs {
			list.Epoch = max(list.Epoch, kv.ModRevision)
			if _, entry, ok := s.revocation(kv); ok && entry.Until > want.Today {
				list.Entries = append(list.Entries, entry)
			}
			from = etcd.After(kv.Key)
		}
		list.TooMany = len(list.Entries) > want.Most
		more = page.More && !list.TooMany
	}
	return list, nil
}

// revocation decodes an entry. ok is false if the entry can't be read.
func (s *requests) revocation(kv *mvccpb.KeyValue) (owner licensing.Owner, entry store.Revocation, ok bool) {
	rest, _ := keyspace.CutFamily(string(kv.Key), keyspace.RevocationsFamily)
	owner, name, ok := keyspace.CutRevocation(rest)
	if !ok { // verify reports the key
		return owner, entry, false
	}
	r, err := layout.DecodeRevocation(name, kv.Value)
	if s.etcd.Unreadable(string(kv.Key), "a revocation of "+keyspace.OwnerPath(owner), err) {
		return owner, entry, false
	}
	return owner, store.Revocation{Revocation: r, At: kv.ModRevision}, true
}

// SweepRevocations removes the entries that void no receipt on a day or later, and returns how many it removed. It
// leaves the newest entry of each owner: the revision of that entry is the position of the owner's list.
func (s *Store) SweepRevocations(ctx context.Context, today licensing.ReceiptDay) (removed int, err error) {
	sweep := revocationSweep{store: s}
	err = s.etcd.EachInSlots(ctx, "sweep_revocations", etcd.Family(keyspace.RevocationsFamily), revocationPage, 0,
		func(kv *mvccpb.KeyValue) {
			if owner, entry, ok := s.revocation(kv); ok {
				sweep.add(ctx, owner, sweptEntry{kv, entry.Until <= today})
			}
		})
	sweep.remove(ctx)
	if err = cmp.Or(err, sweep.failed); err != nil {
		return sweep.removed, etcd.Unavailable(err)
	}
	return sweep.removed, nil
}

// revocationSweep removes entries, the owners one after the other.
type revocationSweep struct {
	store   *Store
	owner   licensing.Owner
	newest  sweptEntry         // of the owner, so far; the zero sweptEntry: none
	over    []*mvccpb.KeyValue // to remove
	removed int
	failed  error
}

type sweptEntry struct {
	*mvccpb.KeyValue
	over bool
}

// add notes the next entry. It removes entries once there are enough.
func (w *revocationSweep) add(ctx context.Context, owner licensing.Owner, entry sweptEntry) {
	if owner != w.owner {
		w.remove(ctx)
		w.owner, w.newest = owner, sweptEntry{}
	}
	if entry.ModRevision > w.newest.GetModRevision() {
		entry, w.newest = w.newest, entry
	}
	if !entry.over {
		return
	}
	if w.over = append(w.over, entry.KeyValue); len(w.over) == sweptTogether {
		w.remove(ctx)
	}
}

// remove removes entries that are over. The compares keep an entry that was written since; then all wait for the next
// sweep.
func (w *revocationSweep) remove(ctx context.Context) {
	entries := w.over
	if w.over = nil; len(entries) == 0 || w.failed != nil {
		return
	}
	var size licensing.Size
	compares, deletes := make([]clientv3.Cmp, len(entries)), make([]clientv3.Op, len(entries))
	for i, kv := range entries {
		compares[i] = clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision)
		deletes[i] = clientv3.OpDelete(string(kv.Key))
		size = size.Plus(layout.SizeOf(len(kv.Key), len(kv.Value)))
	}
	response, err := w.store.etcd.Txn(ctx, "sweep_revocations", compares, deletes, nil)
	switch {
	case err != nil:
		w.failed = err
	case response.Succeeded:
		w.removed += len(entries)
		w.store.growth.note(w.owner, response.Header.Revision, licensing.Size{}.Minus(size))
	}
}
