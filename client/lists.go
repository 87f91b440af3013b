package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// Page says which part of a list to read.
type Page struct {
	Limit  int    // how many at most; 0: as many as the service thinks fit
	Cursor string // the NextCursor of the page before; empty: the first page
}

// List is one page of a list. It may be short, or empty, while more follows.
type List[T any] struct {
	Items []T
	// NextCursor leads to the next page, with the same filter; empty at the end.
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

// every reads page after page, with up to limit items each, until the end or
// the first error.
func every[T any](limit int, read func(Page) (*List[T], error)) iter.Seq2[T, error] {
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

// Licenses reads all licenses that match a filter, the newest first.
func (c *Client) Licenses(ctx context.Context, filter LicenseFilter) iter.Seq2[License, error] {
	return every(listPage, func(page Page) (*List[License], error) { return c.ListLicenses(ctx, filter, page) })
}

// Devices reads all devices of a license.
func (c *Client) Devices(ctx context.Context, licenseKey string) iter.Seq2[Device, error] {
	return every(devicePage, func(page Page) (*List[Device], error) { return c.ListDevices(ctx, licenseKey, page) })
}

// Orders reads all orders that match a filter, the newest first.
func (c *Client) Orders(ctx context.Context, filter OrderFilter) iter.Seq2[Order, error] {
	return every(listPage, func(page Page) (*List[Order], error) { return c.ListOrders(ctx, filter, page) })
}

// Products reads all products, the newest first.
func (c *Client) Products(ctx context.Context) iter.Seq2[Product, error] {
	return every(listPage, func(page Page) (*List[Product], error) { return c.ListProducts(ctx, page) })
}

// Keys reads all API keys of the account and mode, the newest first.
func (c *Client) Keys(ctx context.Context) iter.Seq2[Key, error] {
	return every(listPage, func(page Page) (*List[Key], error) { return c.ListKeys(ctx, page) })
}
