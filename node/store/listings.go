package store

import (
	"context"
	"time"

	"licet/licensing"
)

// Limits of a page of a listing.
const (
	// MaxListPage is the most items that a page may ask for.
	MaxListPage = 100
	// MaxListScan is the number of items that a page examines: if a filter matches few items, the page
	// is short or empty, and the next page continues from there.
	MaxListScan = 500
)

// Listings lists an owner's records, the newest first. Following Next from page to page returns every
// record once that existed when the first page was read, whatever is added meanwhile. The cost of a
// page depends neither on its position nor on the length of the list.
//
// keep selects the items of a page; nil selects all.
type Listings interface {
	// ListLicenses reads licenses as ReadLicenses does for 0 devices: all, or those of a customer. A license with an
	// order has the buyer of the order, any other the buyer that it names itself. The licenses of a buyer's orders come
	// first, in the order of the orders.
	ListLicenses(
		ctx context.Context, owner licensing.Owner, of licensing.Customer, page Page,
		keep func(*LicenseView) bool,
	) (List[LicenseView], error)

	// ListOrders reads all orders, or the orders with a buyer's e-mail address, in any case. It reads no orders that
	// were created outside of page.Created.
	ListOrders(
		ctx context.Context, owner licensing.Owner, buyerEmail string, page Page, keep func(*licensing.Order) bool,
	) (List[licensing.Order], error)

	// ReadSales reads a page of the payments and refunds of an owner by time. A page costs the same however many there
	// are. It may refuse a span that surely has more than licensing.MaxReportSales with licensing.TooManySales.
	ReadSales(ctx context.Context, owner licensing.Owner, page SalesPage) (SalesRead, error)

	// ListPayments reads the records of an order's payments, those with a listing entry: older builds have written some
	// without one.
	ListPayments(
		ctx context.Context, owner licensing.Owner, orderNo string, page Page,
	) (List[licensing.Payment], error)

	// ListProducts reads products.
	ListProducts(ctx context.Context, owner licensing.Owner, page Page) (List[licensing.Product], error)

	// ListAPIKeys reads API keys, the newest id first.
	ListAPIKeys(ctx context.Context, owner licensing.Owner, page Page) (List[licensing.APIKey], error)
}

// SalesPage asks for the payments and refunds in a span of time, from a position on. An empty After means the
// beginning.
type SalesPage struct {
	Span licensing.TimeRange // both ends are set
	// Revision is that of the first page, so that all pages show the same moment; 0: this is the first page.
	Revision int64
	After    Position
}

// SalesRead is a page of sales, the earliest first.
type SalesRead struct {
	Sales []licensing.Sale
	// Unreadable is how many more payments and refunds the page has, whose values are damaged or of a newer build.
	Unreadable int
	Next       Position // the After of the next page; empty at the end
	Revision   int64    // at which the page was read
	// Complete is the time from which on all payments are among the sales. Older builds have recorded earlier payments
	// without a sale. Zero: not known.
	Complete time.Time
}

// Position is a position in a list. Only the store that created it can interpret it. Any text is a
// valid position.
type Position string

// Page asks for up to Limit items, at least one, that are older than the item at Before, and examines
// up to Scan items. An empty Before means the beginning, and a Scan of 0 means MaxListScan.
type Page struct {
	Before      Position
	Limit, Scan int
	Created     licensing.TimeRange // only of ListOrders
	// KeyOf returns the first key of the license with index i of an order. In a page of a buyer's licenses, an order
	// has all its licenses; without KeyOf, only its first one.
	KeyOf func(o *licensing.Order, i int) licensing.LicenseKey
}

// List is a page of a list.
type List[T any] struct {
	Items []T
	// Next is the Before of the next page; empty at the end.
	Next Position
}
