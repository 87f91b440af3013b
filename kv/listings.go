package kv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// licensePosition is how many bytes of a license's place in the listing a cursor shows. The whole place has the
	// license's id, which opens the license like its key, so it must not be part of a URL. The bytes shown still
	// distinguish licenses that were created in the same millisecond.
	licensePosition = keyspace.TimeSize + 8
	// listBatch is how many records of a listing are read at a time: a license
	// takes two operations of a request's 128.
	listBatch = 50
)

// views reads licenses as a look-up shows them, and listings.
type views struct {
	*requests
	keys   *apiKeys
	memory *memory
}

// collect reads a page of a listing. read returns the records of positions, in their order, and nil for a record that
// was deleted meanwhile.
func collect[T any](ctx context.Context, w *walk, page store.Page, read func(context.Context, []string) ([]*T, error),
	keep func(*T) bool) (list store.List[T], err error) {
	scan := cmp.Or(page.Scan, store.MaxListScan)
	for scanned := 0; len(list.Items) < page.Limit && scanned < scan; {
		size := min(listBatch, scan-scanned)
		if keep == nil {
			size = min(size, page.Limit-len(list.Items))
		}
		positions, err := w.next(ctx, size)
		if err != nil {
			return store.List[T]{}, err
		}
		records, err := read(ctx, positions)
		if err != nil {
			return store.List[T]{}, err
		}
		for i, record := range records {
			if len(list.Items) == page.Limit {
				return list, nil // the rest of the batch comes after Next
			}
			list.Next = store.Position(positions[i])
			if record != nil && (keep == nil || keep(record)) {
				list.Items = append(list.Items, *record)
			}
		}
		if w.stopped {
			return list, nil
		}
		if len(positions) < size {
			break
		}
		scanned += size
	}
	more, err := w.more(ctx)
	if err != nil {
		return store.List[T]{}, err
	}
	if !more {
		list.Next = ""
	}
	return list, nil
}

// ListLicenses reads a page of an owner's licenses, or of the licenses of a customer. Those of a buyer are in two
// listings: the buyer's orders, which older builds list too, and then the licenses that name the buyer themselves.
func (s *views) ListLicenses(
	ctx context.Context, owner licensing.Owner, of licensing.Customer, page store.Page,
	keep func(*store.LicenseView) bool,
) (store.List[store.LicenseView], error) {
	if orderNo, from := cutIndex(page.Before); from > 0 {
		return s.continueOrder(ctx, owner, of, page, keep, orderNo, from)
	}
	var w *walk
	switch {
	case of.BuyerEmail != "":
		named := keyspace.LicensesOfBuyer(owner, of.BuyerEmail)
		if page.Before != "" && !isOrder(string(page.Before)) {
			w = s.walkFrom(owner, named, page.Before)
			break
		}
		w = s.walkFrom(owner, keyspace.OrdersOfBuyer(owner, of.BuyerEmail), page.Before)
		w.then = s.walkFrom(owner, named, "")
	case of.Reference != "":
		w = s.walkFrom(owner, keyspace.LicensesOfReference(owner, of.Reference), page.Before)
	default:
		w = s.walkFrom(owner, keyspace.LicensesOf(owner), page.Before)
	}
	many := "" // an order with several licenses
	read := func(ctx context.Context, positions []string) ([]*store.LicenseView, error) {
		orders := slices.IndexFunc(positions, func(position string) bool { return !isOrder(position) })
		if orders < 0 {
			orders = len(positions)
		}
		sold, err := s.licensesOfOrders(ctx, owner, of.BuyerEmail, positions[:orders], page.KeyOf != nil)
		if err != nil {
			return nil, err
		}
		if sold.many {
			many, w.stopped = positions[len(sold.first)-1], true
			return sold.first, nil
		}
		listed, err := s.listedLicenses(ctx, licensing.SlotOf(owner), positions[orders:])
		return append(sold.first, listed...), err
	}
	list, err := collect(ctx, w, page, read, keepOf(of, keep))
	if !isOrder(string(list.Next)) {
		list.Next = list.Next[:min(len(list.Next), licensePosition)]
	} else if string(list.Next) == many {
		list.Next = indexPosition(many, 1)
	}
	return list, err
}

// indexPosition returns the position of the license with index i of an order, in the list of its buyer's licenses.
func indexPosition(orderNo string, i int) store.Position {
	return store.Position(orderNo + indexMark + strconv.Itoa(i))
}

// indexMark is in no order number.
const indexMark = "#"

// cutIndex is the inverse of indexPosition; i is 0 for any other position.
func cutIndex(position store.Position) (orderNo string, i int) {
	orderNo, index, _ := strings.Cut(string(position), indexMark)
	if i, _ = strconv.Atoi(index); !isOrder(orderNo) {
		return "", 0
	}
	return orderNo, i
}

// continueOrder reads a page of a buyer's licenses that begins with the license with index from of an order.
func (s *views) continueOrder(
	ctx context.Context, owner licensing.Owner, of licensing.Customer, page store.Page,
	keep func(*store.LicenseView) bool, orderNo string, from int,
) (list store.List[store.LicenseView], err error) {
	orders, err := s.readOrders(ctx, owner, of.BuyerEmail, []string{orderNo})
	if err != nil {
		return list, err
	}
	scan, kept := cmp.Or(page.Scan, store.MaxListScan), keepOf(of, keep)
	for to := 0; orders[0] != nil && page.KeyOf != nil && from < orders[0].Issued(); {
		if scan -= to; scan <= 0 {
			list.Next = indexPosition(orderNo, from)
			return list, nil
		}
		var ids []licensing.LicenseID
		for to = 0; to < listBatch && from+to < orders[0].Issued(); to++ {
			ids = append(ids, page.KeyOf(orders[0], from+to).ID())
		}
		views, err := s.viewLicenses(ctx, ids)
		if err != nil {
			return list, err
		}
		for _, view := range views {
			if len(list.Items) == page.Limit {
				list.Next = indexPosition(orderNo, from)
				return list, nil
			}
			if from++; view != nil && (kept == nil || kept(view)) {
				list.Items = append(list.Items, *view)
			}
		}
	}
	page.Before, page.Limit = store.Position(orderNo), page.Limit-len(list.Items)
	if page.Limit == 0 {
		list.Next = page.Before // perhaps of an empty page
		return list, nil
	}
	rest, err := s.ListLicenses(ctx, owner, of, page, keep)
	list.Items, list.Next = append(list.Items, rest.Items...), rest.Next
	return list, err
}

// keepOf returns which of the licenses in a customer's listings a page has. The customer of a license may have changed
// since the license was listed.
func keepOf(of licensing.Customer, keep func(*store.LicenseView) bool) func(*store.LicenseView) bool {
	if keep == nil && of == (licensing.Customer{}) {
		return nil
	}
	return func(v *store.LicenseView) bool {
		wants := of
		if v.License.OrderNo != "" {
			wants.BuyerEmail = "" // the order names the buyer, as readOrders found
		}
		return v.Metadata.Has(wants) && (keep == nil || keep(v))
	}
}

// isOrder reports whether a position in a list of licenses is an order number. All others begin with a time, and so
// with a zero.
func isOrder(position string) bool { return position != "" && position[0] != 0 }

// listedLicenses reads the licenses at positions in an owner's listing.
func (s *views) listedLicenses(
	ctx context.Context, slot licensing.Slot, positions []string,
) ([]*store.LicenseView, error) {
	ids := make([]licensing.LicenseID, len(positions))
	for i, position := range positions {
		var ok bool
		if ids[i], ok = keyspace.LicenseIDOf(slot, position[min(len(position), keyspace.TimeSize):]); !ok {
			return nil, layout.Internal(fmt.Errorf("the listing of licenses: %w", layout.ErrMalformed))
		}
	}
	return s.viewLicenses(ctx, ids)
}

// soldLicenses are the first licenses of orders; nil for an order without a license. many: the last of the orders has
// more licenses, and orders may have been left out after it.
type soldLicenses struct {
	first []*store.LicenseView
	many  bool
}

// licensesOfOrders reads the first licenses of a buyer's orders. With stop set, it stops after the first order that has
// more licenses.
func (s *views) licensesOfOrders(
	ctx context.Context, owner licensing.Owner, buyerEmail string, orderNos []string, stop bool,
) (sold soldLicenses, err error) {
	orders, err := s.readOrders(ctx, owner, buyerEmail, orderNos)
	if err != nil {
		return sold, err
	}
	for i, order := range orders {
		if stop && order != nil && order.Issued() > 1 {
			orders, sold.many = orders[:i+1], true
			break
		}
	}
	var ids []licensing.LicenseID
	for _, order := range orders {
		if order != nil && !order.LicenseKey.IsZero() {
			ids = append(ids, order.LicenseKey.ID())
		}
	}
	found, err := s.viewLicenses(ctx, ids)
	if err != nil {
		return sold, err
	}
	sold.first = make([]*store.LicenseView, len(orders))
	for i, order := range orders {
		if order != nil && !order.LicenseKey.IsZero() {
			sold.first[i], found = found[0], found[1:]
		}
	}
	return sold, nil
}

// viewLicenses reads licenses as a list shows them, in one request.
func (s *views) viewLicenses(ctx context.Context, ids []licensing.LicenseID) ([]*store.LicenseView, error) {
	keys := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		keys = append(keys, keyspace.LicenseKey(id), keyspace.MetadataKey(id))
	}
	found, err := s.etcd.GetAll(ctx, "list_licenses", keys)
	if err != nil {
		return nil, err
	}
	views := make([]*store.LicenseView, len(ids))
	for i, id := range ids {
		// The page is empty, so viewStored reads no device and needs no revision. All its errors concern the value.
		views[i], err = s.viewStored(ctx, id, found[2*i], found[2*i+1], store.DevicePage{}, 0)
		if err != nil {
			s.unreadableView(keys[2*i], keys[2*i+1], found[2*i+1], err)
		}
	}
	return views, nil
}

// ListOrders reads a page of an owner's orders, or of those of one buyer.
func (s *views) ListOrders(
	ctx context.Context, owner licensing.Owner, buyerEmail string, page store.Page, keep func(*licensing.Order) bool,
) (store.List[licensing.Order], error) {
	listing := keyspace.OrdersOf(owner)
	if buyerEmail != "" {
		listing = keyspace.OrdersOfBuyer(owner, buyerEmail)
	}
	read := func(ctx context.Context, orderNos []string) ([]*licensing.Order, error) {
		return s.readOrders(ctx, owner, buyerEmail, orderNos)
	}
	w := s.walkFrom(owner, listing, page.Before)
	w.within(firstOrderNo(owner, page.Created.From), firstOrderNo(owner, page.Created.To))
	return collect(ctx, w, page, read, keep)
}

// firstOrderNo returns the position of the first order from a time on; empty for the zero time.
func firstOrderNo(owner licensing.Owner, from time.Time) string {
	if from.IsZero() {
		return ""
	}
	return licensing.FirstOrderNo(owner, from)
}

// readOrders reads orders in one request. It returns nil for an order that does not exist, or that is not the given
// buyer's: the address may have been removed from the order since it was listed.
func (s *views) readOrders(
	ctx context.Context, owner licensing.Owner, buyerEmail string, orderNos []string,
) ([]*licensing.Order, error) {
	keys := make([]string, len(orderNos))
	for i, orderNo := range orderNos {
		keys[i] = keyspace.OrderKey(owner, orderNo)
	}
	found, err := s.etcd.GetAll(ctx, "list_orders", keys)
	if err != nil {
		return nil, err
	}
	orders := make([]*licensing.Order, len(orderNos))
	for i, kv := range found {
		if kv == nil {
			continue
		}
		stored, err := layout.DecodeOrder(licensing.OrderRef(owner, orderNos[i]), kv.Value)
		if s.etcd.Unreadable(keys[i], keys[i], err) {
			continue
		}
		if buyerEmail == "" || licensing.FoldEmail(stored.Order.BuyerEmail) == licensing.FoldEmail(buyerEmail) {
			orders[i] = &stored.Order
		}
	}
	return orders, nil
}

// ListProducts reads a page of an owner's products.
func (s *views) ListProducts(
	ctx context.Context, owner licensing.Owner, page store.Page,
) (store.List[licensing.Product], error) {
	read := func(ctx context.Context, positions []string) ([]*licensing.Product, error) {
		keys := make([]string, len(positions))
		for i, position := range positions {
			if len(position) <= keyspace.TimeSize {
				return nil, layout.Internal(fmt.Errorf("the listing of products: %w", layout.ErrMalformed))
			}
			keys[i] = keyspace.ProductKey(owner, position[keyspace.TimeSize:])
		}
		found, err := s.etcd.GetAll(ctx, "list_products", keys)
		if err != nil {
			return nil, err
		}
		products := make([]*licensing.Product, len(positions))
		for i, kv := range found {
			if kv == nil {
				continue
			}
			stored, err := layout.DecodeProduct(licensing.ProductRef(owner, positions[i][keyspace.TimeSize:]), kv.Value)
			if s.etcd.Unreadable(keys[i], keys[i], err) {
				continue
			}
			products[i] = &stored.Product
		}
		return products, nil
	}
	return collect(ctx, s.walkFrom(owner, keyspace.ProductsOf(owner), page.Before), page, read, nil)
}

// ListAPIKeys reads a page of an owner's API keys, the newest id first.
func (s *views) ListAPIKeys(
	ctx context.Context, owner licensing.Owner, page store.Page,
) (store.List[licensing.APIKey], error) {
	read := func(ctx context.Context, ids []string) ([]*licensing.APIKey, error) {
		entries := make([]string, len(ids))
		for i, id := range ids {
			entries[i] = keyspace.APIKeyIndexKey(owner, id)
		}
		found, err := s.etcd.GetAll(ctx, "list_api_keys", entries)
		if err != nil {
			return nil, err
		}
		hashes := make([][]byte, len(found))
		for i, kv := range found {
			hashes[i] = kv.GetValue()
		}
		stored, _, err := s.keys.readAPIKeys(ctx, hashes)
		if err != nil {
			return nil, err
		}
		keys := make([]*licensing.APIKey, len(ids))
		for i := range stored {
			if stored[i] != nil {
				keys[i] = &stored[i].Key
			}
		}
		return keys, nil
	}
	return collect(ctx, s.walkFrom(owner, keyspace.APIKeysOf(owner), page.Before), page, read, nil)
}
