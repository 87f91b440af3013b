package service

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// LicenseFilter selects licenses. An empty field matches all.
type LicenseFilter struct {
	ProductID string
	Status    licensing.Status
	OrderNo   string
	Customer  licensing.Customer
	// ExternalKey is as ParseExternalKey of package licensing returned it.
	ExternalKey string
}

// OrderFilter selects orders. An empty field matches all.
type OrderFilter struct {
	ProductID  string
	Status     licensing.OrderStatus
	BuyerEmail string // letter case does not matter
	Provider   licensing.PaymentProvider
	Reference  string // of a payment of the order
	Created    licensing.TimeRange
	Paid       licensing.TimeRange
	Refunded   licensing.TimeRange
}

// ListLicenses lists an owner's licenses.
func (l *Licenses) ListLicenses(
	ctx context.Context, owner licensing.Owner, filter LicenseFilter, page store.Page,
) (list store.List[store.LicenseView], err error) {
	return admittedToList(ctx, l.core, owner, func() (list store.List[store.LicenseView], err error) {
		switch {
		case filter.ExternalKey != "":
			list, err = l.licenseByExternalKey(ctx, owner, filter)
		case filter.OrderNo != "":
			list, err = l.licensesOfOrder(ctx, owner, filter, clamp(page))
		default:
			page.KeyOf = l.cfg.LicenseKeys.OrderKey
			list, err = l.cfg.Queries.ListLicenses(ctx, owner, filter.Customer, clamp(page), l.keepLicenses(filter))
		}
		if err != nil {
			return list, err
		}
		return list, l.showEntitled(ctx, owner, pointers(list.Items)...)
	})
}

// pointers returns pointers to the items of a slice.
func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}

// keepLicenses returns the predicate of a filter on the licenses themselves; nil if the filter has none. The status is
// the status that answers show: leases that have lapsed do not count.
func (l *Licenses) keepLicenses(filter LicenseFilter) func(*store.LicenseView) bool {
	if filter.ProductID == "" && filter.Status == "" {
		return nil
	}
	now, leaseTime := l.engine.Now(), l.engine.LeaseTime()
	return func(v *store.LicenseView) bool {
		v.HideLapsed(leaseTime)
		return (filter.ProductID == "" || filter.ProductID == v.License.ProductID) &&
			(filter.Status == "" || filter.Status == v.License.Status(now))
	}
}

// licensesOfOrder lists the licenses of an order that the rest of the filter matches. A position is the index of a
// license.
func (l *Licenses) licensesOfOrder(
	ctx context.Context, owner licensing.Owner, filter LicenseFilter, page store.Page,
) (list store.List[store.LicenseView], err error) {
	order, err := l.readOrder(ctx, owner, filter.OrderNo)
	switch {
	case errors.Is(err, licensing.ErrOrderNotFound):
		return list, nil
	case err != nil:
		return list, err
	}
	buyer := licensing.Customer{BuyerEmail: filter.Customer.BuyerEmail}
	if order.LicenseKey.IsZero() || !(licensing.Customer{BuyerEmail: order.BuyerEmail}).Has(buyer) {
		return list, nil
	}
	filter.Customer.BuyerEmail = "" // the license of an order does not name the buyer itself
	next, _ := strconv.Atoi(string(page.Before))
	for end := min(order.Issued(), max(next, 0)+page.Scan); next < end; {
		views, err := l.readMatching(ctx, owner, filter,
			l.firstKeys(&order, next, min(next+store.MaxReadLicenses, end))...)
		if err != nil {
			return list, err
		}
		for _, view := range views {
			if len(list.Items) == page.Limit {
				list.Next = store.Position(strconv.Itoa(next))
				return list, nil
			}
			if next++; view != nil {
				list.Items = append(list.Items, *view)
			}
		}
	}
	if next < order.Issued() {
		list.Next = store.Position(strconv.Itoa(next))
	}
	return list, nil
}

// licenseByExternalKey lists the license with an external key, if the rest of the filter matches the license. A license
// with an external key has no order.
func (l *Licenses) licenseByExternalKey(
	ctx context.Context, owner licensing.Owner, filter LicenseFilter,
) (list store.List[store.LicenseView], err error) {
	if filter.OrderNo != "" {
		return list, nil
	}
	key, err := l.aliases.find(ctx, owner, filter.ExternalKey)
	switch licensing.ReasonOf(err) {
	case licensing.ReasonLicenseNotFound, licensing.ReasonInvalidLicenseKey:
		return list, nil
	}
	if err != nil {
		return list, err
	}
	return l.listOne(ctx, owner, filter, key)
}

// listOne lists a license, if the filter matches the license itself.
func (l *Licenses) listOne(
	ctx context.Context, owner licensing.Owner, filter LicenseFilter, key licensing.LicenseKey,
) (list store.List[store.LicenseView], err error) {
	views, err := l.readMatching(ctx, owner, filter, key)
	if err == nil && views[0] != nil {
		list.Items = []store.LicenseView{*views[0]}
	}
	return list, err
}

// readMatching reads up to MaxReadLicenses licenses. It returns nil for a license that the filter does not match.
func (l *Licenses) readMatching(
	ctx context.Context, owner licensing.Owner, filter LicenseFilter, keys ...licensing.LicenseKey,
) ([]*store.LicenseView, error) {
	views, err := l.cfg.Queries.ReadLicenses(ctx, keys, 0)
	keep := l.keepLicenses(filter)
	for i, view := range views {
		if visible(view, owner, keys[i]) != nil || !view.Metadata.Has(filter.Customer) ||
			keep != nil && !keep(view) {
			views[i] = nil
		}
	}
	return views, err
}

// ListOrders lists an owner's orders.
func (o *Orders) ListOrders(
	ctx context.Context, owner licensing.Owner, filter OrderFilter, page store.Page,
) (list store.List[licensing.Order], err error) {
	return admittedToList(ctx, o.core, owner, func() (list store.List[licensing.Order], err error) {
		page = clamp(page)
		page.Created = filter.Created
		if filter.Reference != "" {
			list, err = o.ordersOfPayment(ctx, owner, filter, page)
		} else {
			list, err = o.cfg.Queries.ListOrders(ctx, owner, filter.BuyerEmail, page, filter.keep(o.engine.Now()))
		}
		if err != nil {
			return list, err
		}
		return list, o.showCurrentKeys(ctx, owner, pointers(list.Items)...)
	})
}

// keep returns the predicate of a filter, except for the buyer, the time of creation and the reference; nil if the
// filter has nothing else.
func (f OrderFilter) keep(now time.Time) func(*licensing.Order) bool {
	rest := f
	rest.BuyerEmail, rest.Created, rest.Reference = "", licensing.TimeRange{}, ""
	if rest == (OrderFilter{}) {
		return nil
	}
	return func(o *licensing.Order) bool {
		return (f.ProductID == "" || f.ProductID == o.ProductID) &&
			(f.Status == "" || f.Status == o.Status(now)) &&
			(f.Provider == "" || f.Provider == o.PaidThrough()) &&
			f.Paid.Has(o.PaidAt) && f.Refunded.Has(o.RefundedAt)
	}
}

// ordersOfPayment lists the orders whose payments have the reference of a filter, if the rest of the filter matches
// them: no more than one order for each payment provider. It finds payments that have a record.
func (o *Orders) ordersOfPayment(
	ctx context.Context, owner licensing.Owner, filter OrderFilter, page store.Page,
) (list store.List[licensing.Order], err error) {
	var wants []store.Want
	for _, provider := range licensing.PaymentProviders() {
		wants = append(wants, store.Want{Ref: licensing.PaymentRef(owner, provider, filter.Reference)})
	}
	payments, err := o.cfg.Records.Load(ctx, wants...)
	if err != nil {
		return list, err
	}
	keep := filter.keep(o.engine.Now())
	for _, payment := range payments {
		if payment.Record.Payment == nil {
			continue
		}
		order, err := o.readOrder(ctx, owner, payment.Record.Payment.OrderNo)
		if err != nil {
			return list, err
		}
		if filter.Created.Has(order.CreatedAt) && (keep == nil || keep(&order)) &&
			(licensing.Customer{BuyerEmail: order.BuyerEmail}).Has(licensing.Customer{BuyerEmail: filter.BuyerEmail}) &&
			(page.Before == "" || order.OrderNo < string(page.Before)) {
			list.Items = append(list.Items, order)
		}
	}
	slices.SortFunc(list.Items, func(a, b licensing.Order) int { return strings.Compare(b.OrderNo, a.OrderNo) })
	list.Items = slices.CompactFunc(list.Items, func(a, b licensing.Order) bool { return a.OrderNo == b.OrderNo })
	if len(list.Items) > page.Limit {
		list.Items = list.Items[:page.Limit]
		list.Next = store.Position(list.Items[page.Limit-1].OrderNo)
	}
	return list, nil
}

// ListProducts lists an owner's products.
func (p *Products) ListProducts(
	ctx context.Context, owner licensing.Owner, page store.Page,
) (list store.List[licensing.Product], err error) {
	return admittedToList(ctx, p.core, owner, func() (list store.List[licensing.Product], err error) {
		return p.cfg.Queries.ListProducts(ctx, owner, clamp(page))
	})
}

// ListAPIKeys lists an owner's API keys, including revoked ones.
func (k *Keys) ListAPIKeys(
	ctx context.Context, owner licensing.Owner, page store.Page,
) (list store.List[licensing.APIKey], err error) {
	return admittedToList(ctx, k.core, owner, func() (list store.List[licensing.APIKey], err error) {
		return k.cfg.Keys.ListAPIKeys(ctx, owner, clamp(page))
	})
}

// clamp bounds the limits of a page.
func clamp(page store.Page) store.Page {
	page.Limit, page.Scan = min(max(page.Limit, 1), store.MaxListPage), store.MaxListScan
	return page
}
