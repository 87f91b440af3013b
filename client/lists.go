package client

import (
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
