package node

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
	"licet/node/store"
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
	By          licensing.Actor
	Once        *Once // nil: the request came without an Idempotency-Key
}

// CreateOrder makes an order. One of amount 0 is paid at once. In test mode a
// product that does not exist is made along with it; in live mode that is
// ErrProductNotFound, and a live order that costs something needs a provider.
//
// With in.Once it is made once: the same request again answers the order as it is
// now, or the refusal of the first time, and replayed is true.
func (n *Node) CreateOrder(ctx context.Context, owner licensing.Owner, in NewOrder) (order licensing.Order, replayed bool, err error) {
	if err := n.enter(); err != nil {
		return licensing.Order{}, false, err
	}
	defer n.work.Done()
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return licensing.Order{}, false, err
	}
	defer func() { n.admission.leave(who, err) }()
	c, end, err := n.begin(owner, in.Once, nil)
	if err != nil {
		return licensing.Order{}, false, err
	}
	defer end()
	for range createTries {
		product, along, err := n.productToSell(ctx, owner, in.ProductID, c)
		switch {
		case err != nil:
			return licensing.Order{}, c.replayed(), err
		case c.replayed():
			return n.claimedOrder(ctx, owner, c.earlier)
		case product == nil:
			return licensing.Order{}, false, licensing.ErrProductNotFound
		}
		order, err := n.tryOrder(ctx, owner, in, product.Terms, along, c)
		if !errors.Is(err, store.ErrClaimTaken) {
			return order, false, err
		}
	}
	return licensing.Order{}, false, licensing.ErrUnavailable
}

// claimedOrder answers the order that the same request has made or changed before.
// That it can't be read now is not what that came to, and so no replay.
func (n *Node) claimedOrder(ctx context.Context, owner licensing.Owner, claim *licensing.Claim) (order licensing.Order, replayed bool, err error) {
	order, err = n.readOrder(ctx, owner, claim.OrderNo)
	return order, err == nil, err
}

// tryOrder makes an order, and the product along with it where there is none yet. It
// answers ErrClaimTaken where another request was first with either or with the
// Idempotency-Key.
func (n *Node) tryOrder(ctx context.Context, owner licensing.Owner, in NewOrder, terms licensing.Terms, along []store.Write, c *claim) (licensing.Order, error) {
	record, err := n.newOrder(owner, in, terms)
	if err != nil {
		return licensing.Order{}, n.commitClaim(ctx, c, err)
	}
	c.effect.OrderNo = record.Order.OrderNo
	order := store.Write{Ref: licensing.OrderRef(owner, record.Order.OrderNo), Record: record}
	if err := n.commitWithProduct(ctx, c, along, order); err != nil {
		return licensing.Order{}, err
	}
	return *record.Order, nil
}

// newOrder makes the record of a new order; a free one goes through the same
// PayOrder as any other.
func (n *Node) newOrder(owner licensing.Owner, in NewOrder, terms licensing.Terms) (licensing.Record, error) {
	if owner.Mode == licensing.Live && in.Amount > 0 && !n.cfg.LivePayments {
		return licensing.Record{}, licensing.ErrPaymentNotConfigured
	}
	now := n.Now()
	id, err := ulid.New(ulid.Timestamp(now), n.cfg.Entropy)
	if err != nil {
		return licensing.Record{}, fmt.Errorf("make an order number: %w", err)
	}
	var token [16]byte
	if _, err := io.ReadFull(n.cfg.Entropy, token[:]); err != nil {
		return licensing.Record{}, fmt.Errorf("make a pay token: %w", err)
	}
	record := licensing.NewOrder(&licensing.Order{
		OrderNo:     licensing.NewOrderNo(store.Cell, id.String()),
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
		ExpiresAt:   now.Add(n.orderLifetime(owner.Mode)),
	}, in.By)
	if in.Amount > 0 {
		return record, nil
	}
	key, err := n.mint(terms)
	if err != nil {
		return licensing.Record{}, err
	}
	_, err = licensing.Apply(&record, licensing.PayOrder{By: in.By, Terms: terms, Key: key}, now)
	return record, err
}

func (n *Node) orderLifetime(mode licensing.Mode) time.Duration {
	if mode == licensing.Test {
		return n.cfg.TestOrderLifetime
	}
	return n.cfg.OrderLifetime
}

// mint makes a fresh license key for a license of these terms.
func (n *Node) mint(terms licensing.Terms) (licensing.LicenseKey, error) {
	var entropy [licensing.LicenseKeyEntropy]byte
	if _, err := io.ReadFull(n.cfg.Entropy, entropy[:]); err != nil {
		return "", fmt.Errorf("make a license key: %w", err)
	}
	return n.cfg.KeyCheck.Mint(terms.KeyPrefix, store.Cell, entropy), nil
}

// Order looks an order of an owner up, linearizably.
func (n *Node) Order(ctx context.Context, owner licensing.Owner, orderNo string) (order licensing.Order, err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return licensing.Order{}, licensing.ErrOrderNotFound
	}
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return licensing.Order{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	return n.readOrder(ctx, owner, orderNo)
}

// readOrder looks up an order for somebody who was let in.
func (n *Node) readOrder(ctx context.Context, owner licensing.Owner, orderNo string) (licensing.Order, error) {
	loaded, err := n.cfg.Store.Load(ctx, store.Want{Ref: licensing.OrderRef(owner, orderNo)})
	if err != nil {
		return licensing.Order{}, err
	}
	if o := loaded[0].Record.Order; o != nil {
		return *o, nil
	}
	return licensing.Order{}, licensing.ErrOrderNotFound
}

// OrderToPay looks an order up for whoever holds its pay token. A wrong token
// is the same as a wrong number.
func (n *Node) OrderToPay(ctx context.Context, orderNo, token string) (order licensing.Order, err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return licensing.Order{}, licensing.ErrOrderNotFound
	}
	who := unknownOrder
	if err := n.admission.enter(ctx, who); err != nil {
		return licensing.Order{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	owner, found, err := n.cfg.Store.OrderOwner(ctx, orderNo)
	if err != nil {
		return licensing.Order{}, err
	}
	if !found {
		return licensing.Order{}, licensing.ErrOrderNotFound
	}
	if who, err = n.admission.become(who, owner); err != nil {
		return licensing.Order{}, err
	}
	order, err = n.readOrder(ctx, owner, orderNo)
	if err != nil {
		return licensing.Order{}, err
	}
	if subtle.ConstantTimeCompare([]byte(order.PayToken), []byte(token)) != 1 {
		return licensing.Order{}, licensing.ErrOrderNotFound
	}
	return order, nil
}

// PayOrder takes the provider's word that an order was paid. The license is
// issued with the product's terms of this moment. See licensing.PayOrder.
func (n *Node) PayOrder(ctx context.Context, order licensing.Order, payment string) (result licensing.Result, err error) {
	who, err := n.admission.enterFor(ctx, order.Owner)
	if err != nil {
		return licensing.Result{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	terms := order.Terms
	loaded, err := n.cfg.Store.Load(ctx, store.Want{Ref: licensing.ProductRef(order.Owner, order.ProductID)})
	if err != nil {
		return licensing.Result{}, err
	}
	if p := loaded[0].Record.Product; p != nil {
		terms = p.Terms
	}
	key, err := n.mint(terms)
	if err != nil {
		return licensing.Result{}, err
	}
	return n.do(ctx, who, licensing.OrderRef(order.Owner, order.OrderNo),
		licensing.PayOrder{Payment: payment, Terms: terms, Key: key})
}
