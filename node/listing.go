package node

import (
	"context"

	"licet/licensing"
	"licet/node/store"
)

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
func (n *Node) Licenses(ctx context.Context, owner licensing.Owner, filter LicenseFilter, page store.Page) (list store.List[store.LicenseView], err error) {
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
func (n *Node) licenseOfOrder(ctx context.Context, owner licensing.Owner, filter LicenseFilter) (list store.List[store.LicenseView], err error) {
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
		list.Items = []store.LicenseView{*views[0]}
	}
	return list, nil
}

// Orders lists an owner's orders.
func (n *Node) Orders(ctx context.Context, owner licensing.Owner, filter OrderFilter, page store.Page) (list store.List[licensing.Order], err error) {
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
func (n *Node) Products(ctx context.Context, owner licensing.Owner, page store.Page) (list store.List[licensing.Product], err error) {
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	return n.cfg.Store.ListProducts(ctx, owner, scanning(page))
}

// APIKeys lists an owner's API keys, those that were revoked too.
func (n *Node) APIKeys(ctx context.Context, owner licensing.Owner, page store.Page) (list store.List[licensing.APIKey], err error) {
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	return n.cfg.Store.ListAPIKeys(ctx, owner, scanning(page))
}

// scanning bounds what a page may ask for.
func scanning(page store.Page) store.Page {
	page.Limit, page.Scan = min(max(page.Limit, 1), store.MaxListPage), store.MaxListScan
	return page
}
