package handlers_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestMemStoreLists runs the conformance tests for listings with the store of these tests.
func TestMemStoreLists(t *testing.T) {
	storetest.RunListings(t, func(*testing.T) store.Store { return newMemStore() })
}

// place is an item of a listing, with its position.
type placed[T any] struct {
	at   store.Position
	item T
}

// page cuts a page out of a listing.
func page[T any](all []placed[T], p store.Page, keep func(*T) bool) (list store.List[T]) {
	all = slices.DeleteFunc(all, func(i placed[T]) bool { return p.Before != "" && i.at >= p.Before })
	slices.SortFunc(all, func(a, b placed[T]) int { return cmp.Compare(b.at, a.at) })
	scan := cmp.Or(p.Scan, store.MaxListScan)
	for i := range all {
		if i == scan || len(list.Items) == p.Limit {
			return list
		}
		list.Next = all[i].at
		if keep == nil || keep(&all[i].item) {
			list.Items = append(list.Items, all[i].item)
		}
	}
	list.Next = ""
	return list
}

func timed(at time.Time, id string) store.Position {
	return store.Position(string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))) + id)
}

// buys reports whether an order is of a buyer. An empty buyer matches all orders.
func buys(email string, o *licensing.Order) bool {
	return email == "" || strings.EqualFold(email, o.BuyerEmail)
}

func (s *memStore) ListLicenses(
	_ context.Context, owner licensing.Owner, of licensing.Customer, p store.Page, keep func(*store.LicenseView) bool,
) (store.List[store.LicenseView], error) {
	defer s.read()()
	var all []placed[store.LicenseView]
	for _, stored := range s.records {
		l := stored.record.License
		if l == nil || l.Owner != owner {
			continue
		}
		id := l.Key.ID()
		at := timed(l.CreatedAt, string(id[:8]))
		customer := stored.metadata.Customer
		if order := s.records[licensing.OrderRef(owner, l.OrderNo)]; order != nil {
			customer.BuyerEmail = order.record.Order.BuyerEmail
			if of.BuyerEmail != "" {
				at = store.Position(l.OrderNo)
			}
		}
		if !customer.Has(of) {
			continue
		}
		all = append(all, placed[store.LicenseView]{at, *stored.view(store.DevicePage{})})
	}
	return page(all, p, keep), s.fail
}

func (s *memStore) ListOrders(
	_ context.Context, owner licensing.Owner, buyerEmail string, p store.Page, keep func(*licensing.Order) bool,
) (store.List[licensing.Order], error) {
	defer s.read()()
	var all []placed[licensing.Order]
	for ref, stored := range s.records {
		if ref.Kind == licensing.KindOrder && ref.Owner == owner && buys(buyerEmail, stored.record.Order) &&
			p.Created.Has(stored.record.Order.CreatedAt) {
			all = append(all, placed[licensing.Order]{store.Position(ref.ID), *stored.record.Order})
		}
	}
	return page(all, p, keep), s.fail
}

func (s *memStore) ReadSales(
	_ context.Context, owner licensing.Owner, page store.SalesPage,
) (read store.SalesRead, err error) {
	defer s.read()()
	for ref, stored := range s.records {
		if ref.Kind != licensing.KindPayment || ref.Owner != owner {
			continue
		}
		if sale, ok := stored.record.Payment.Sale(); ok && page.Span.Has(sale.At) {
			read.Sales = append(read.Sales, sale)
		}
	}
	read.Revision, read.Complete = s.revision, salesComplete
	return read, s.fail
}

// salesComplete is the time from which on a memStore has all payments in reports.
var salesComplete = time.Date(2029, 12, 31, 0, 0, 0, 0, time.UTC)

func (s *memStore) ListPayments(
	_ context.Context, owner licensing.Owner, orderNo string, p store.Page,
) (store.List[licensing.Payment], error) {
	defer s.read()()
	var all []placed[licensing.Payment]
	for ref, stored := range s.records {
		if payment := stored.record.Payment; ref.Owner == owner && payment != nil && payment.OrderNo == orderNo {
			all = append(all, placed[licensing.Payment]{timed(payment.RecordedAt, ref.ID), *payment})
		}
	}
	return page(all, p, nil), s.fail
}

func (s *memStore) ListProducts(
	_ context.Context, owner licensing.Owner, p store.Page,
) (store.List[licensing.Product], error) {
	defer s.read()()
	var all []placed[licensing.Product]
	for ref, stored := range s.records {
		if ref.Kind == licensing.KindProduct && ref.Owner == owner {
			all = append(all,
				placed[licensing.Product]{timed(stored.record.Product.CreatedAt, ref.ID), *stored.record.Product})
		}
	}
	return page(all, p, nil), s.fail
}

// listedKey is how many bytes ListAPIKeys reads for each API key.
const listedKey = 1 << 10

func (s *memStore) ListAPIKeys(
	ctx context.Context, owner licensing.Owner, p store.Page,
) (store.List[licensing.APIKey], error) {
	if s.listingKeys != nil {
		s.listingKeys()
	}
	defer s.read()()
	var all []placed[licensing.APIKey]
	for _, key := range s.keys {
		if key.Owner == owner {
			key.LastUsedAt = s.keyUses[key.Hash]
			all = append(all, placed[licensing.APIKey]{store.Position(key.ID), key})
		}
	}
	list := page(all, p, nil)
	store.ReadsOf(ctx).Note(listedKey * len(list.Items))
	return list, s.fail
}
