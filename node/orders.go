package node

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/oklog/ulid/v2"

	"licet"
)

// createTries bounds how often a creation is tried when another one made the
// same product first.
const createTries = 4

// NewOrder is what a shop says of an order it wants made. Its members have
// been checked.
type NewOrder struct {
	ProductID   string
	Amount      int64
	Currency    string
	Description string
	BuyerEmail  string
	Metadata    string
	SuccessURL  string
}

// CreateOrder makes an order. One of amount 0 is paid at once. In test mode a
// product that does not exist is made along with it; in live mode that is
// ErrProductNotFound, and a live order that costs something needs a provider.
func (n *Node) CreateOrder(ctx context.Context, owner licet.Owner, in NewOrder) (licet.Order, error) {
	if err := n.enter(); err != nil {
		return licet.Order{}, err
	}
	defer n.work.Done()
	for range createTries {
		product, create, err := n.product(ctx, owner, in.ProductID)
		if err != nil {
			return licet.Order{}, err
		}
		if owner.Mode == licet.Live && in.Amount > 0 && !n.cfg.LivePayments {
			return licet.Order{}, licet.ErrPaymentNotConfigured
		}
		record, err := n.newOrder(owner, in, product.Terms)
		if err != nil {
			return licet.Order{}, err
		}
		writes := append([]Write{{Ref: licet.OrderRef(owner, record.Order.OrderNo), Record: record}}, create...)
		outcome, err := n.cfg.Store.Commit(ctx, Change{Writes: writes})
		if err != nil {
			return licet.Order{}, err
		}
		if outcome.Landed {
			return *record.Order, nil
		}
	}
	return licet.Order{}, licet.ErrUnavailable
}

// product finds a product, or says how to create it where it may be made on
// first use.
func (n *Node) product(ctx context.Context, owner licet.Owner, id string) (licet.Product, []Write, error) {
	ref := licet.ProductRef(owner, id)
	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: ref})
	if err != nil {
		return licet.Product{}, nil, err
	}
	if p := loaded[0].Record.Product; p != nil {
		return *p, nil, nil
	}
	if owner.Mode != licet.Test {
		return licet.Product{}, nil, licet.ErrProductNotFound
	}
	product := licet.Product{ID: id, Owner: owner, Terms: licet.DefaultTerms(), CreatedAt: n.Now()}
	return product, []Write{{Ref: ref, Record: licet.Record{Product: &product}}}, nil
}

// newOrder makes the record of a new order; a free one goes through the same
// PayOrder as any other.
func (n *Node) newOrder(owner licet.Owner, in NewOrder, terms licet.Terms) (licet.Record, error) {
	now := n.Now()
	id, err := ulid.New(ulid.Timestamp(now), n.cfg.Entropy)
	if err != nil {
		return licet.Record{}, fmt.Errorf("make an order number: %w", err)
	}
	var token [16]byte
	if _, err := io.ReadFull(n.cfg.Entropy, token[:]); err != nil {
		return licet.Record{}, fmt.Errorf("make a pay token: %w", err)
	}
	record := licet.Record{Changed: true, Order: &licet.Order{
		OrderNo:     licet.NewOrderNo(Cell, id.String()),
		Owner:       owner,
		ProductID:   in.ProductID,
		Amount:      in.Amount,
		Currency:    in.Currency,
		Description: in.Description,
		BuyerEmail:  in.BuyerEmail,
		Metadata:    in.Metadata,
		SuccessURL:  in.SuccessURL,
		PayToken:    hex.EncodeToString(token[:]),
		Terms:       terms,
		CreatedAt:   now,
		ExpiresAt:   now.Add(n.cfg.OrderLifetime),
	}}
	if in.Amount > 0 {
		return record, nil
	}
	key, err := n.mint(terms)
	if err != nil {
		return licet.Record{}, err
	}
	_, err = licet.Apply(&record, licet.PayOrder{Terms: terms, Key: key}, now)
	return record, err
}

// mint makes a fresh license key for a license of these terms.
func (n *Node) mint(terms licet.Terms) (licet.LicenseKey, error) {
	var entropy [licet.LicenseKeyEntropy]byte
	if _, err := io.ReadFull(n.cfg.Entropy, entropy[:]); err != nil {
		return "", fmt.Errorf("make a license key: %w", err)
	}
	return n.cfg.KeyCheck.Mint(terms.KeyPrefix, Cell, entropy), nil
}

// Order looks an order of an owner up, linearizably.
func (n *Node) Order(ctx context.Context, owner licet.Owner, orderNo string) (licet.Order, error) {
	if !licet.ValidOrderNo(orderNo) {
		return licet.Order{}, licet.ErrOrderNotFound
	}
	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: licet.OrderRef(owner, orderNo)})
	if err != nil {
		return licet.Order{}, err
	}
	if o := loaded[0].Record.Order; o != nil {
		return *o, nil
	}
	return licet.Order{}, licet.ErrOrderNotFound
}

// OrderToPay looks an order up for whoever holds its pay token. A wrong token
// is the same as a wrong number.
func (n *Node) OrderToPay(ctx context.Context, orderNo, token string) (licet.Order, error) {
	if !licet.ValidOrderNo(orderNo) {
		return licet.Order{}, licet.ErrOrderNotFound
	}
	owner, found, err := n.cfg.Store.OrderOwner(ctx, orderNo)
	if err != nil {
		return licet.Order{}, err
	}
	if !found {
		return licet.Order{}, licet.ErrOrderNotFound
	}
	order, err := n.Order(ctx, owner, orderNo)
	if err != nil {
		return licet.Order{}, err
	}
	if subtle.ConstantTimeCompare([]byte(order.PayToken), []byte(token)) != 1 {
		return licet.Order{}, licet.ErrOrderNotFound
	}
	return order, nil
}

// PayOrder takes the provider's word that an order was paid. The license is
// issued with the product's terms of this moment. See licet.PayOrder.
func (n *Node) PayOrder(ctx context.Context, order licet.Order, payment string) (licet.Result, error) {
	terms := order.Terms
	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: licet.ProductRef(order.Owner, order.ProductID)})
	if err != nil {
		return licet.Result{}, err
	}
	if p := loaded[0].Record.Product; p != nil {
		terms = p.Terms
	}
	key, err := n.mint(terms)
	if err != nil {
		return licet.Result{}, err
	}
	return n.Do(ctx, licet.OrderRef(order.Owner, order.OrderNo),
		licet.PayOrder{Payment: payment, Terms: terms, Key: key})
}

// CancelOrder gives an unpaid order up.
func (n *Node) CancelOrder(ctx context.Context, order licet.Order) (licet.Result, error) {
	return n.Do(ctx, licet.OrderRef(order.Owner, order.OrderNo), licet.CancelOrder{})
}

// RecordRefund notes that the provider has sent an order's money back.
func (n *Node) RecordRefund(ctx context.Context, order licet.Order) (licet.Result, error) {
	return n.Do(ctx, licet.OrderRef(order.Owner, order.OrderNo), licet.RefundOrder{})
}
