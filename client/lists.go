package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// Page selects a page of a list.
type Page struct {
	Limit  int    // the greatest number of items; 0: the service's default
	Cursor string // the NextCursor of the previous page; empty: the first page
}

// List is a page of a list. A page may be short or empty although more pages follow.
type List[T any] struct {
	Items []T
	// NextCursor is the cursor of the next page, with the same filter; empty on the last page.
	NextCursor string
}

const (
	listPage   = 100
	devicePage = 1000
)

func (p Page) query(filters ...string) url.Values {
	query := url.Values{}
	for i := 0; i < len(filters); i += 2 {
		if filters[i+1] != "" {
			query.Set(filters[i], filters[i+1])
		}
	}
	if p.Limit != 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		query.Set("cursor", p.Cursor)
	}
	return query
}

// allPages yields the items of all pages, with up to limit items each, until the last page or the first error.
func allPages[T any](limit int, read func(Page) (*List[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page := (Page{Limit: limit}); ; {
			list, err := read(page)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range list.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Cursor = list.NextCursor; page.Cursor == "" {
				return
			}
		}
	}
}

// Licenses yields all licenses that match a filter, the newest first.
func (c *Client) Licenses(ctx context.Context, filter LicenseFilter) iter.Seq2[License, error] {
	return allPages(listPage, func(page Page) (*List[License], error) { return c.ListLicenses(ctx, filter, page) })
}

// Devices yields all devices of a license.
func (c *Client) Devices(ctx context.Context, licenseKey string) iter.Seq2[Device, error] {
	return allPages(devicePage, func(page Page) (*List[Device], error) { return c.ListDevices(ctx, licenseKey, page) })
}

// Orders yields all orders that match a filter, the newest first.
func (c *Client) Orders(ctx context.Context, filter OrderFilter) iter.Seq2[Order, error] {
	return allPages(listPage, func(page Page) (*List[Order], error) { return c.ListOrders(ctx, filter, page) })
}

// Products yields all products, the newest first.
func (c *Client) Products(ctx context.Context) iter.Seq2[Product, error] {
	return allPages(listPage, func(page Page) (*List[Product], error) { return c.ListProducts(ctx, page) })
}

// Keys yields all API keys of the account and mode, the newest first.
func (c *Client) Keys(ctx context.Context) iter.Seq2[Key, error] {
	return allPages(listPage, func(page Page) (*List[Key], error) { return c.ListKeys(ctx, page) })
}
