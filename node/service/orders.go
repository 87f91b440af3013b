package service

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/store"
)

// Orders offers the use cases of orders.
type Orders struct {
	*core
	ringUsed atomic.Bool // see useRing
}

// NewOrder describes an order to create. The caller has validated the fields.
type NewOrder struct {
	ProductID   string
	Amount      int64
	Currency    string
	Description string
	BuyerEmail  string
	Metadata    string
	SuccessURL  string
	UpgradeOf   licensing.LicenseKey // of a trial; zero: none
	Quantity    int                  // of licenses; at most 1 along with UpgradeOf; 0: one
	// Outside: the shop records the payment itself; see RecordPayment. The order has no pay page.
	Outside bool
	By      licensing.Actor
	Once    *node.Once // nil: the request came without an Idempotency-Key
}

// CreateOrder creates an order. An order with amount 0 is paid at once. In test mode, CreateOrder also
// creates a missing product. In live mode, a missing product is ErrProductNotFound, and an order with
// an amount needs a payment provider.
//
// With in.Once, repeating the request returns the order as it is now, or the refusal of the first
// request, and replayed is true.
func (o *Orders) CreateOrder(
	ctx context.Context, owner licensing.Owner, in NewOrder,
) (order licensing.Order, replayed bool, err error) {
	run := func(_ node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
		err = retryConflicts(maxClaimTries, func() error {
			product, newProduct, err := o.loadProduct(ctx, owner, in.ProductID, claim)
			switch {
			case err != nil:
				replayed = claim.Replayed()
				return err
			case claim.Replayed():
				order, replayed, err = o.claimedOrder(ctx, owner, claim.Earlier)
				return err
			case product == nil:
				return licensing.ErrProductNotFound
			}
			order, err = o.tryOrder(ctx, owner, in, product, newProduct, claim)
			return err
		})
		return order, replayed, err
	}
	return idempotent(ctx, o.core, owner, in.Once, o.budgets.admitLicenses(ctx, owner, in.Quantity), run)
}

// claimedOrder returns the order that the first request with the claim has created or changed. If the
// order can't be read now, replayed is false: the error is not the outcome of the first request.
func (o *Orders) claimedOrder(
	ctx context.Context, owner licensing.Owner, claim *licensing.Claim,
) (order licensing.Order, replayed bool, err error) {
	order, err = o.readOrder(ctx, owner, claim.OrderNo)
	if err == nil {
		order = o.issueNow(ctx, order)
		err = o.showCurrentKeys(ctx, owner, &order)
	}
	return order, err == nil, err
}

// showCurrentKeys puts the keys that licenses have now in place of their first keys, which orders store. An order whose
// license can't be read keeps the first key.
func (c *core) showCurrentKeys(ctx context.Context, owner licensing.Owner, orders ...*licensing.Order) error {
	var keys []licensing.LicenseKey
	var paid []*licensing.Order
	for _, o := range orders {
		if !o.LicenseKey.IsZero() {
			keys, paid = append(keys, o.LicenseKey), append(paid, o)
		}
	}
	err := c.readCurrentKeys(ctx, owner, keys)
	for i, o := range paid {
		o.LicenseKey = keys[i]
	}
	return err
}

// readCurrentKeys puts the keys that licenses have now in place of other keys of theirs. The key of a license that
// can't be read stays.
func (c *core) readCurrentKeys(ctx context.Context, owner licensing.Owner, keys []licensing.LicenseKey) error {
	current := make(map[licensing.LicenseKey]licensing.LicenseKey, len(keys))
	err := eachReadable(c, keys, func(some []licensing.LicenseKey) error {
		views, err := c.cfg.Queries.ReadLicenses(ctx, some, 0)
		for i, view := range views {
			if visible(view, owner, some[i]) == nil {
				current[some[i]] = view.License.CurrentKey()
			}
		}
		return err
	})
	for i, key := range keys {
		if now, found := current[key]; found {
			keys[i] = now
		}
	}
	return err
}

// ShowCurrentKey puts the key that an order's license has now in place of its first key, after a change of the order.
// If the license can't be read, the order keeps the first key: an error would say that the change did not happen.
func (o *Orders) ShowCurrentKey(ctx context.Context, order *licensing.Order) {
	_ = o.showCurrentKeys(ctx, order.Owner, order)
}

// tryOrder creates an order, and the product if newProduct is not empty. It returns ErrClaimTaken if
// another request has created the product or stored the Idempotency-Key first.
func (o *Orders) tryOrder(
	ctx context.Context, owner licensing.Owner, in NewOrder, product *licensing.Product,
	newProduct []store.Write, claim *node.Claim,
) (licensing.Order, error) {
	if err := o.useRing(ctx); err != nil {
		return licensing.Order{}, err
	}
	if err := o.checkUpgrade(ctx, owner, &in); err != nil {
		return licensing.Order{}, err
	}
	record, err := o.newOrder(owner, in, product)
	if err != nil {
		return licensing.Order{}, o.engine.CommitClaim(ctx, claim, err)
	}
	claim.Effect.OrderNo = record.Order.OrderNo
	order := store.Write{Ref: licensing.OrderRef(owner, record.Order.OrderNo), Record: record}
	// Once the order is stored, a sweep may issue its other licenses, before this node knows that it is stored.
	_, err = o.engine.WithRecordLock(ctx, order.Ref, func(ctx context.Context) (none licensing.Result, err error) {
		return none, o.commitWithProduct(ctx, claim, newProduct, order)
	})
	if err != nil {
		return licensing.Order{}, err
	}
	return o.issueNow(ctx, *record.Order), nil
}

// newOrder returns the record of a new order. An order with amount 0 is paid by the same command as
// any other.
func (o *Orders) newOrder(
	owner licensing.Owner, in NewOrder, product *licensing.Product,
) (licensing.Record, error) {
	if err := checkBilling(in, product.Billing); err != nil {
		return licensing.Record{}, err
	}
	now := o.engine.Now()
	id, err := NewULID(now, o.cfg.Entropy, "an order")
	if err != nil {
		return licensing.Record{}, err
	}
	order := &licensing.Order{
		OrderNo:      licensing.NewOrderNo(owner, id),
		Owner:        owner,
		ProductID:    in.ProductID,
		Description:  in.Description,
		BuyerEmail:   in.BuyerEmail,
		Metadata:     in.Metadata,
		SuccessURL:   in.SuccessURL,
		UpgradeOf:    in.UpgradeOf,
		Quantity:     in.Quantity,
		Terms:        product.Terms,
		OrderPayment: licensing.OrderPayment{Amount: in.Amount, Currency: in.Currency},
		OrderSubscription: licensing.OrderSubscription{
			Interval: product.Billing.Interval, BillingGrace: product.Billing.Grace,
		},
		CreatedAt: now,
		ExpiresAt: now.Add(o.orderLifetime(owner.Mode)),
	}
	if in.Amount > 0 && !in.Outside {
		if err := o.cfg.Accepts(*order); err != nil {
			return licensing.Record{}, err
		}
	}
	var salt [16]byte
	if _, err := io.ReadFull(o.cfg.Entropy, salt[:]); err != nil {
		return licensing.Record{}, fmt.Errorf("make a pay token: %w", err)
	}
	if err := o.cfg.Ring.NewPayToken(order, salt); err != nil {
		return licensing.Record{}, err
	}
	if in.Outside {
		order.Provider, order.PaySeed = licensing.ProviderOutside, licensing.PaySeed{}
	}
	if order.Quantity == 1 {
		order.Quantity = 0
	}
	record := licensing.NewOrder(order, in.By)
	if in.Amount > 0 {
		return record, nil
	}
	pay := licensing.PayOrder{By: in.By, Terms: product.Terms}
	if err := o.newKeys(&pay, order); err != nil {
		return licensing.Record{}, err
	}
	_, err = licensing.Apply(&record, pay, now)
	return record, err
}

// acceptTestOrders accepts the orders of test mode.
func acceptTestOrders(order licensing.Order) error {
	if order.Owner.Mode == licensing.Live {
		return licensing.ErrNoLivePayments
	}
	return nil
}

func (o *Orders) orderLifetime(mode licensing.Mode) time.Duration {
	if mode == licensing.Test {
		return o.cfg.TestOrderLifetime
	}
	return o.cfg.OrderLifetime
}

// mint returns a new license key for an owner's license with these terms.
func (c *core) mint(owner licensing.Owner, terms licensing.Terms) (licensing.LicenseKey, error) {
	var entropy [keyring.LicenseKeyEntropy]byte
	if _, err := io.ReadFull(c.cfg.Entropy, entropy[:]); err != nil {
		return licensing.LicenseKey{}, fmt.Errorf("make a license key: %w", err)
	}
	return c.cfg.LicenseKeys.Mint(terms.KeyPrefix, owner, entropy), nil
}

// Order returns an order of an owner. The read is linearizable.
func (o *Orders) Order(ctx context.Context, owner licensing.Owner, orderNo string) (order licensing.Order, err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return licensing.Order{}, licensing.ErrOrderNotFound
	}
	return admitted(ctx, o.core, owner, func(node.Place) (order licensing.Order, err error) {
		if order, err = o.readOrder(ctx, owner, orderNo); err == nil {
			err = o.showCurrentKeys(ctx, owner, &order)
		}
		return order, err
	})
}

// readOrder returns an order. The caller holds an admission place.
func (c *core) readOrder(ctx context.Context, owner licensing.Owner, orderNo string) (licensing.Order, error) {
	loaded, err := c.cfg.Records.Load(ctx, store.Want{Ref: licensing.OrderRef(owner, orderNo)})
	if err != nil {
		return licensing.Order{}, err
	}
	if o := loaded[0].Record.Order; o != nil {
		return *o, nil
	}
	return licensing.Order{}, licensing.ErrOrderNotFound
}

// OwnerOfOrder returns the owner of the order with a number; found is false if there is no such order.
func (o *Orders) OwnerOfOrder(ctx context.Context, orderNo string) (owner licensing.Owner, found bool, err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return licensing.Owner{}, false, nil
	}
	return o.cfg.Queries.OrderOwner(ctx, orderNo)
}

// OrderToPay returns an order to a caller with its pay token. A wrong token and a wrong order number
// both return ErrOrderNotFound.
func (o *Orders) OrderToPay(ctx context.Context, orderNo, token string) (order licensing.Order, err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return licensing.Order{}, licensing.ErrOrderNotFound
	}
	presented := keyring.HashPayToken(token)
	return admittedFor(ctx, o.engine, node.UnknownOrder, func(place *node.Place) (order licensing.Order, err error) {
		owner, _, err := o.cfg.Queries.OrderOwner(ctx, orderNo)
		if err != nil {
			return licensing.Order{}, err
		}
		// An unknown order is read too, of no owner: so the time of the answer does not show which orders exist.
		order, err = o.readOrder(ctx, owner, orderNo)
		if err != nil {
			return licensing.Order{}, err
		}
		if subtle.ConstantTimeCompare(order.PayHash[:], presented[:]) != 1 {
			return licensing.Order{}, licensing.ErrOrderNotFound
		}
		// Only a caller with the token may learn that the order's owner has no place left.
		if err = place.Become(owner); err != nil {
			return licensing.Order{}, err
		}
		return order, o.showCurrentKeys(ctx, owner, &order)
	})
}

// PayOrder records a payment that the payment provider has confirmed. The license gets the current
// terms of the product. See licensing.PayOrder.
func (o *Orders) PayOrder(
	ctx context.Context, order licensing.Order, payment licensing.Payment,
) (result licensing.Result, err error) {
	return admitted(ctx, o.core, order.Owner, func(node.Place) (result licensing.Result, err error) {
		pay, err := o.newPayment(ctx, &order)
		if err != nil {
			return licensing.Result{}, err
		}
		pay.Provider, pay.Payment, pay.PaidAt = payment.Provider, payment.Reference, payment.PaidAt
		pay.Fee = payment.Fee
		pay.Subscription, pay.PaidEnd = payment.Subscription, payment.PeriodEnd
		result, err = o.payRecorded(ctx, &node.Claim{}, &order, pay,
			func(pay licensing.PayOrder) licensing.Command { return pay })
		return result.WithOrder(o.issueNow(ctx, result.Order())), err
	})
}

// newPayment returns a payment of an order, with new keys and the current terms of the product.
func (o *Orders) newPayment(ctx context.Context, order *licensing.Order) (licensing.PayOrder, error) {
	terms := order.Terms
	loaded, err := o.cfg.Records.Load(ctx, store.Want{Ref: licensing.ProductRef(order.Owner, order.ProductID)})
	if err != nil {
		return licensing.PayOrder{}, err
	}
	if p := loaded[0].Record.Product; p != nil {
		terms = p.Terms
	}
	pay := licensing.PayOrder{Terms: terms}
	return pay, o.newKeys(&pay, order)
}

// payTogether records the payment of an order in one transaction with other steps, once for the request of a claim.
// paying makes the command of the payment. If the order names a trial, the transaction makes the trial's license that
// of the order; if that license can't be upgraded any more, the payment issues a license like any other. The caller
// holds the locks of the other steps.
func (o *Orders) payTogether(
	ctx context.Context, claim *node.Claim, order *licensing.Order, pay licensing.PayOrder,
	paying func(licensing.PayOrder) licensing.Command, others ...node.Step,
) (licensing.Result, error) {
	ref, trial := licensing.OrderRef(order.Owner, order.OrderNo), order.UpgradeOf
	issue := func(ctx context.Context) (licensing.Result, error) {
		return o.engine.SwapTogetherOnce(ctx, claim, append([]node.Step{{Ref: ref, Cmd: paying(pay)}}, others...)...)
	}
	if trial.IsZero() {
		return o.engine.WithRecordLock(ctx, ref, issue)
	}
	license := licensing.LicenseRef(trial)
	upgrade := pay
	upgrade.Key, upgrade.Upgrades = trial, true
	upgraded := func(paid licensing.Result) licensing.Command {
		return licensing.UpgradeTrial{Key: trial, Order: paid.Order(), Terms: pay.Terms, By: upgrade.PaidBy()}
	}
	steps := append([]node.Step{{Ref: ref, Cmd: paying(upgrade)}, {Ref: license, Then: upgraded}}, others...)
	locks := []licensing.Ref{ref, license}
	return o.engine.WithRecordLocks(ctx, locks, func(ctx context.Context) (licensing.Result, error) {
		result, err := o.engine.SwapTogetherOnce(ctx, claim, steps...)
		if errors.Is(err, licensing.ErrTrialGone) {
			return issue(ctx)
		}
		return result, err
	})
}

// checkUpgrade resolves the key of the trial that an order names to the trial's first key. It refuses a license that is
// not of a trial of the order's product.
func (o *Orders) checkUpgrade(ctx context.Context, owner licensing.Owner, in *NewOrder) error {
	if in.UpgradeOf.IsZero() {
		return nil
	}
	view, err := o.cfg.Queries.ReadLicense(ctx, in.UpgradeOf, store.DevicePage{Owner: owner})
	if err == nil {
		err = visible(view, owner, in.UpgradeOf)
	}
	if err != nil {
		return err
	}
	in.UpgradeOf = view.License.Key
	return view.License.CheckUpgrade(in.ProductID)
}
