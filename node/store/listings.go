package store

import (
	"context"
	"licet/licensing"
)

// Limits of a page of a listing.
const (
	// MaxListPage is the most items that a page may ask for.
	MaxListPage = 100
	// MaxListScan is how many items a page looks at: where a filter lets few
	// through, the page is short, or empty, and the next one goes on from there.
	MaxListScan = 500
)

// Listings is what a [Store] lists: an owner's things, the newest first. Whoever
// follows Next from page to page sees everything once that was there when the
// first page was read, whatever is added meanwhile. A page costs the same
// wherever it stands and however long the listing is.
//
// keep decides what goes into a page; nil keeps all.
type Listings interface {
	// ListLicenses reads licenses as ReadLicenses does for 0 devices. With a
	// buyer's e-mail address, in any case, they are those of the buyer's orders,
	// in the order of the orders.
	ListLicenses(ctx context.Context, owner licensing.Owner, buyerEmail string, page Page, keep func(*licensing.License) bool) (List[LicenseView], error)

	// ListOrders reads orders: all, or those with a buyer's e-mail address, in
	// any case.
	ListOrders(ctx context.Context, owner licensing.Owner, buyerEmail string, page Page, keep func(*licensing.Order) bool) (List[licensing.Order], error)

	// ListProducts reads products.
	ListProducts(ctx context.Context, owner licensing.Owner, page Page) (List[licensing.Product], error)

	// ListAPIKeys reads API keys, the newest id first.
	ListAPIKeys(ctx context.Context, owner licensing.Owner, page Page) (List[licensing.APIKey], error)
}

// Position is a place in a listing. Only the store that made it knows what it
// says; any text is a place somewhere.
type Position string

// Page asks for up to Limit items, at least one, that are older than what stands
// at Before, and for no more than Scan to be looked at. An empty Before stands for
// the beginning, and a Scan of 0 for MaxListScan.
type Page struct {
	Before      Position
	Limit, Scan int
}

// List is a page of a listing.
type List[T any] struct {
	Items []T
	// Next is the Before of the following page; empty at the end.
	Next Position
}
