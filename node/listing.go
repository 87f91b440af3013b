package node

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

// LicenseFilter says which licenses are wanted. An empty member lets all through.
type LicenseFilter struct {
	ProductID  string
	Status     licensing.Status
	OrderNo    string
	BuyerEmail string // of the order, in any case
}

// OrderFilter says which orders are wanted. An empty member lets all through.
type OrderFilter struct {
	ProductID  string
	Status     licensing.OrderStatus
	BuyerEmail string // in any case
}

// Licenses lists an owner's licenses.
func (n *Node) Licenses(ctx context.Context, owner licensing.Owner, filter LicenseFilter, page Page) (list List[LicenseView], err error) {
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	if filter.OrderNo != "" {
		return n.licenseOfOrder(ctx, owner, filter)
	}
	return n.cfg.Store.ListLicenses(ctx, owner, filter.BuyerEmail, scanning(page), n.keepLicenses(filter))
}

// keepLicenses is what a filter says of licenses themselves; nil where it says
// nothing.
func (n *Node) keepLicenses(filter LicenseFilter) func(*licensing.License) bool {
	if filter.ProductID == "" && filter.Status == "" {
		return nil
	}
	now := n.Now()
	return func(l *licensing.License) bool {
		return (filter.ProductID == "" || filter.ProductID == l.ProductID) &&
			(filter.Status == "" || filter.Status == l.Status(now))
	}
}

// licenseOfOrder finds the one license that an order has, if the rest of the
// filter lets it through.
func (n *Node) licenseOfOrder(ctx context.Context, owner licensing.Owner, filter LicenseFilter) (list List[LicenseView], err error) {
	order, err := n.readOrder(ctx, owner, filter.OrderNo)
	switch {
	case isAny(err, licensing.ErrOrderNotFound):
		return list, nil
	case err != nil:
		return list, err
	case order.LicenseKey == "", filter.BuyerEmail != "" && licensing.FoldEmail(filter.BuyerEmail) != licensing.FoldEmail(order.BuyerEmail):
		return list, nil
	}
	views, err := n.cfg.Store.ReadLicenses(ctx, []licensing.LicenseKey{order.LicenseKey}, 0)
	if err != nil || visible(views[0], owner, order.LicenseKey) != nil {
		return list, err
	}
	if keep := n.keepLicenses(filter); keep == nil || keep(&views[0].License) {
		list.Items = []LicenseView{*views[0]}
	}
	return list, nil
}

// Orders lists an owner's orders.
func (n *Node) Orders(ctx context.Context, owner licensing.Owner, filter OrderFilter, page Page) (list List[licensing.Order], err error) {
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	var keep func(*licensing.Order) bool
	if filter.ProductID != "" || filter.Status != "" {
		now := n.Now()
		keep = func(o *licensing.Order) bool {
			return (filter.ProductID == "" || filter.ProductID == o.ProductID) &&
				(filter.Status == "" || filter.Status == o.Status(now))
		}
	}
	return n.cfg.Store.ListOrders(ctx, owner, filter.BuyerEmail, scanning(page), keep)
}

// Products lists an owner's products.
func (n *Node) Products(ctx context.Context, owner licensing.Owner, page Page) (list List[licensing.Product], err error) {
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	return n.cfg.Store.ListProducts(ctx, owner, scanning(page))
}

// APIKeys lists an owner's API keys, those that were revoked too.
func (n *Node) APIKeys(ctx context.Context, owner licensing.Owner, page Page) (list List[licensing.APIKey], err error) {
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	return n.cfg.Store.ListAPIKeys(ctx, owner, scanning(page))
}

// scanning bounds what a page may ask for.
func scanning(page Page) Page {
	page.Limit, page.Scan = min(max(page.Limit, 1), MaxListPage), MaxListScan
	return page
}
