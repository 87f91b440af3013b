package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// salesPage is how many sales a page has at most. etcd counts all keys up to the end of a range, so a page ends at
	// the salesStops-th entry on level 1, which on average is as far.
	salesPage  = 1024
	salesStops = 8
	// A span with more than salesSure entries on level 1 has far too many sales: the store refuses the span before it
	// reads the sales.
	salesSure = 4 * licensing.MaxReportSales / 128
)

// moveSale replaces the entry of a payment among the sales of its owner. Either may be none.
func (sw *swap) moveSale(from, to layout.Entry) {
	switch {
	case from == to:
	case from.Key == to.Key:
		sw.replace([]byte(to.Key), []byte(to.Value), len(from.Value))
	default:
		if from.Key != "" {
			sw.remove([]byte(from.Key), len(from.Value))
			for _, key := range keyspace.SkipKeys(from.Key) {
				sw.remove([]byte(key), 0)
			}
		}
		if to.Key != "" {
			sw.create([]byte(to.Key), []byte(to.Value))
			sw.listAbove(to.Key)
		}
	}
}

// ReadSales reads a page of an owner's sales.
func (s *views) ReadSales(
	ctx context.Context, owner licensing.Owner, page store.SalesPage,
) (read store.SalesRead, err error) {
	listing := keyspace.InSlot(licensing.SlotOf(owner), keyspace.SalesOf(owner))
	if err := s.slots.checkHere([]byte(listing)); err != nil {
		return read, err
	}
	from, to := keyspace.TimeInKey(page.Span.From), listing+keyspace.TimeInKey(page.Span.To)
	if page.After != "" {
		from = string(page.After)
	}
	level := keyspace.SkipKey(1, listing)
	stops, err := s.salesRange(ctx, level+from, keyspace.SkipKey(1, to), salesStops, page.Revision,
		clientv3.WithKeysOnly())
	if err != nil {
		return read, err
	}
	if stops.Count > salesSure {
		return read, licensing.TooManySales()
	}
	if read.Revision = page.Revision; read.Revision == 0 {
		read.Revision = stops.Header.Revision
		books, err := s.etcd.List(ctx, "read_books", keyspace.BooksKey, clientv3.WithRev(read.Revision))
		if err != nil {
			return read, err
		}
		if len(books.Kvs) > 0 {
			read.Complete, err = layout.ReadBooks(books.Kvs[0].Value)
			s.etcd.Unreadable(keyspace.BooksKey, keyspace.BooksKey, err)
		}
	}
	end := to
	if len(stops.Kvs) == salesStops {
		read.Next = store.Position(stops.Kvs[salesStops-1].Key[len(level):])
		end = listing + string(read.Next)
	}
	found, err := s.salesRange(ctx, listing+from, end, salesPage, read.Revision)
	if err != nil {
		return read, err
	}
	if found.Count > licensing.MaxReportSales {
		return read, licensing.TooManySales()
	}
	for _, kv := range found.Kvs {
		key := string(kv.Key)
		sale, err := layout.DecodeSale(key[len(listing):], kv.Value)
		if s.etcd.Unreadable(key, "a sale", err) {
			read.Unreadable++
		} else {
			read.Sales = append(read.Sales, sale)
		}
		if found.More {
			read.Next = store.Position(etcd.After(key)[len(listing):])
		}
	}
	return read, nil
}

// salesRange reads a range at a revision; at revision 0, linearizably.
func (s *views) salesRange(
	ctx context.Context, from, to string, limit, revision int64, opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	if from >= to {
		return nil, layout.Internal(errors.New("a page of sales ends before it begins"))
	}
	found, err := s.etcd.Page(ctx, "read_sales", from, to, limit, revision, opts...)
	if errors.Is(err, rpctypes.ErrCompacted) {
		// The report took longer than the history is kept, or the store is short of space.
		return nil, fmt.Errorf("%w: the history of the store was compacted during the report", licensing.ErrUnavailable)
	}
	return found, err
}

// NoteBooks stores since when each payment has its entry among the sales of its owner, unless the store has that time.
func (s *Store) NoteBooks(ctx context.Context, now time.Time) error {
	if stored, err := s.etcd.Get(ctx, "read_books", keyspace.BooksKey); err != nil || stored != nil {
		return err
	}
	_, err := s.etcd.Txn(ctx, "note_books", []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(keyspace.BooksKey),
		"=", 0)}, []clientv3.Op{clientv3.OpPut(keyspace.BooksKey, keyspace.TimeInKey(now))}, nil)
	return err
}

// ListPayments reads a page of the records of an order's payments.
func (s *views) ListPayments(
	ctx context.Context, owner licensing.Owner, orderNo string, page store.Page,
) (store.List[licensing.Payment], error) {
	read := func(ctx context.Context, positions []string) ([]*licensing.Payment, error) {
		keys := make([]string, len(positions))
		for i, position := range positions {
			if len(position) <= keyspace.TimeSize {
				return nil, layout.Internal(fmt.Errorf("the listing of payments: %w", layout.ErrMalformed))
			}
			keys[i] = keyspace.PaymentKey(licensing.Ref{Owner: owner, ID: position[keyspace.TimeSize:]})
		}
		found, err := s.etcd.GetAll(ctx, "list_payments", keys)
		if err != nil {
			return nil, err
		}
		payments := make([]*licensing.Payment, len(positions))
		for i, kv := range found {
			if kv == nil {
				continue
			}
			stored, err := layout.DecodePayment(kv.Value)
			if s.etcd.Unreadable(keys[i], "a payment", err) {
				continue
			}
			payments[i] = &stored.Payment
		}
		return payments, nil
	}
	return collect(ctx, s.walkFrom(owner, keyspace.PaymentsOf(owner, orderNo), page.Before), page, read, nil)
}

// ReadProviderEvents reads how far the events of an account at a payment provider are read, and the revision for
// PutProviderEvents. A value that can't be read counts as none: the events are read again.
func (s *Store) ReadProviderEvents(
	ctx context.Context, owner licensing.Owner,
) (read store.ProviderEvents, revision int64, err error) {
	key := keyspace.ProviderEventsKey(owner)
	found, err := s.etcd.GetAll(ctx, "read_provider_events", []string{key})
	if err != nil || found[0] == nil {
		return read, 0, err
	}
	read, err = layout.DecodeProviderEvents(found[0].Value)
	if s.etcd.Unreadable(key, "cell/pe/"+keyspace.OwnerPath(owner), err) {
		read = store.ProviderEvents{}
	}
	return read, found[0].ModRevision, nil
}

// PutProviderEvents stores how far the events of an account at a payment provider are read, unless another node has
// stored it since the revision. It returns the new revision, or 0 if another node has, or if the answer was lost: then
// the node may have stored it.
func (s *Store) PutProviderEvents(
	ctx context.Context, owner licensing.Owner, read store.ProviderEvents, revision int64,
) (stored int64, err error) {
	key := keyspace.ProviderEventsKey(owner)
	response, err := s.etcd.Txn(ctx, "put_provider_events",
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", revision)},
		[]clientv3.Op{clientv3.OpPut(key, string(layout.EncodeProviderEvents(read)))}, nil)
	if err != nil || !response.Succeeded {
		return 0, err
	}
	return response.Header.Revision, nil
}
