package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"licet/client"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
)

// books are what the service lists at the end of the day.
type books struct {
	orders   []client.Order
	licenses []client.License
	products []client.Product
	keys     []client.Key

	// What filters answer: numbers of orders, and keys of licenses.
	ordersBy   map[client.OrderFilter][]string
	licensesBy map[client.LicenseFilter][]string
	// details are lookups of the licenses one by one, with all their devices.
	details map[string]*client.License
}

// pageSize is of pages that do not end where the service's own pages do.
const pageSize = 37

// pages reads a list page after page, each page from another node than the page before.
func pages[T any](ctx context.Context, read func(context.Context, client.Page) (*client.List[T], error)) ([]T, error) {
	var all []T
	page := client.Page{Limit: pageSize}
	for node := rand.IntN(nodeCount); ; node++ {
		list, err := read(stage.Toward(ctx, node), page)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return all, nil
		}
	}
}

func (s *shop) ordersOf(ctx context.Context, filter client.OrderFilter) ([]client.Order, error) {
	list, err := pages(ctx, func(ctx context.Context, p client.Page) (*client.List[client.Order], error) {
		return s.reader.ListOrders(ctx, filter, p)
	})
	if err != nil {
		return nil, fmt.Errorf("list orders by %+v: %w", filter, err)
	}
	return list, nil
}

func (s *shop) licensesOf(ctx context.Context, filter client.LicenseFilter) ([]client.License, error) {
	list, err := pages(ctx, func(ctx context.Context, p client.Page) (*client.List[client.License], error) {
		return s.reader.ListLicenses(ctx, filter, p)
	})
	if err != nil {
		return nil, fmt.Errorf("list licenses by %+v: %w", filter, err)
	}
	return list, nil
}

// readBooks reads everything back.
func (s *shop) readBooks(ctx context.Context) (*books, error) {
	b := &books{details: map[string]*client.License{}}
	var errs [6]error
	b.orders, errs[0] = s.ordersOf(ctx, client.OrderFilter{})
	b.licenses, errs[1] = s.licensesOf(ctx, client.LicenseFilter{})
	b.products, errs[2] = pages(ctx, func(ctx context.Context, p client.Page) (*client.List[client.Product], error) {
		return s.reader.ListProducts(ctx, p)
	})
	b.keys, errs[3] = pages(ctx, func(ctx context.Context, p client.Page) (*client.List[client.Key], error) {
		return s.reader.ListKeys(ctx, p)
	})
	b.ordersBy, errs[4] = filtered(ctx, s.ledger.orderFilters(), s.ordersOf,
		func(o *client.Order) string { return o.OrderNo })
	b.licensesBy, errs[5] = filtered(ctx, s.ledger.licenseFilters(), s.licensesOf,
		func(l *client.License) string { return l.LicenseKey })
	return b, errors.Join(append(errs[:], s.readDetails(ctx, b))...)
}

// filtered reads what each filter returns, as ids.
func filtered[F comparable, T any](ctx context.Context, filters []F, list func(context.Context, F) ([]T, error),
	id func(*T) string) (map[F][]string, error) {
	by := map[F][]string{}
	var mu sync.Mutex
	var failed error
	trial.Each(ctx, filters, func(ctx context.Context, f F) {
		items, err := list(ctx, f)
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
		by[f] = []string{}
		for i := range items {
			by[f] = append(by[f], id(&items[i]))
		}
	})
	return by, errors.Join(failed, ctx.Err())
}

// readDetails looks each license up, and lists its devices if it has many.
func (s *shop) readDetails(ctx context.Context, b *books) error {
	var mu sync.Mutex
	var failed error
	trial.Each(ctx, s.ledger.allLicenses(), func(ctx context.Context, entry *licenseEntry) {
		l, err := s.reader.License(ctx, entry.key)
		if err == nil && l.DevicesNextCursor == "" && len(l.Devices) > 16 {
			l.Devices, err = nil, nil // the listing has them too
			for device, failed := range s.reader.Devices(ctx, entry.key) {
				l.Devices, err = append(l.Devices, device), errors.Join(err, failed)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if codeOf(err) == 40401 {
			return // the audit finds what is missing
		}
		failed = errors.Join(failed, err)
		b.details[entry.key] = l
	})
	return errors.Join(failed, ctx.Err())
}

// orderFilters returns the filters that orders are listed with.
func (l *ledger) orderFilters() []client.OrderFilter {
	var list []client.OrderFilter
	for _, status := range []string{stateUnpaid, statePaid, stateExpired, stateCanceled, stateRefunded} {
		list = append(list, client.OrderFilter{Status: status})
	}
	for _, p := range l.products {
		list = append(list, client.OrderFilter{ProductID: p.id}, client.OrderFilter{ProductID: p.id, Status: statePaid})
	}
	for _, email := range l.emails() {
		list = append(list, client.OrderFilter{BuyerEmail: email},
			client.OrderFilter{BuyerEmail: email, Status: stateRefunded})
	}
	return list
}

// licenseFilters returns the filters that licenses are listed with.
func (l *ledger) licenseFilters() []client.LicenseFilter {
	var list []client.LicenseFilter
	for _, status := range []string{stateNotActivated, stateActivated, stateSuspended, stateRevoked, stateExpired} {
		list = append(list, client.LicenseFilter{Status: status})
	}
	for _, p := range l.products {
		list = append(list, client.LicenseFilter{ProductID: p.id},
			client.LicenseFilter{ProductID: p.id, Status: stateActivated})
	}
	for _, email := range l.emails() {
		list = append(list, client.LicenseFilter{BuyerEmail: email})
	}
	for _, o := range l.allOrders() { // also of orders without a license
		list = append(list, client.LicenseFilter{OrderNo: o.number})
	}
	return list
}

// emails returns the addresses of the buyers, each in one of the spellings that it was
// given in.
func (l *ledger) emails() []string {
	forms := map[string]string{}
	for _, o := range l.allOrders() {
		if o.plan.email != "" {
			forms[strings.ToLower(o.plan.email)] = o.plan.email
		}
	}
	return slices.Sorted(maps.Values(forms))
}
