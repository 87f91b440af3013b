package service

import (
	"context"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// NewPlan is what a subscription is to pay for. The caller has validated the fields.
type NewPlan struct {
	ProductID  string // empty: the product stays
	Amount     int64
	MaxDevices *int // nil: that of the new product, or of the license if the product stays
	Later      bool // from the next period on; otherwise at once
}

// ChangePlan records the shop's request to change what a subscription pays for, under a new number; see
// licensing.ChangeSubscription. The caller must then ask the payment provider for the change.
//
// With once, repeating the request returns the order as it is now, or the refusal of the first request, and replayed is
// true.
func (o *Orders) ChangePlan(
	ctx context.Context, owner licensing.Owner, orderNo string, in NewPlan, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	id, err := NewULID(o.engine.Now(), o.cfg.Entropy, "a change of a subscription")
	if err != nil {
		return licensing.Order{}, false, err
	}
	ref := licensing.OrderRef(owner, orderNo)
	run := func(place node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
		var wants []store.Want
		if licensing.ValidOrderNo(orderNo) {
			wants = append(wants, store.Want{Ref: ref})
		}
		loaded, err := o.engine.LoadWithClaim(ctx, claim, wants...)
		switch {
		case err != nil:
			return licensing.Order{}, claim.Replayed(), err
		case claim.Replayed():
			return o.claimedOrder(ctx, owner, claim.Earlier)
		case len(loaded) == 0 || loaded[0].Record.Order == nil:
			return licensing.Order{}, false, licensing.ErrOrderNotFound
		}
		plan, err := o.newPlan(ctx, loaded[0].Record.Order, in)
		if err != nil {
			return licensing.Order{}, false, err
		}
		claim.Effect.OrderNo = orderNo
		result, err := place.DoOnce(ctx, ref, licensing.ChangeSubscription{Change: licensing.SubscriptionChange{
			Kind: licensing.ChangePlan, Number: licensing.ChangeNumber(id), Later: in.Later, Plan: plan,
		}}, claim)
		if err == nil && claim.Replayed() {
			return o.claimedOrder(ctx, owner, claim.Earlier)
		}
		return result.Order, claim.Replayed(), err
	}
	return idempotent(ctx, o.core, owner, once, nil, run)
}

// newPlan returns what an order's subscription is to pay for, and refuses what it can't pay for.
func (o *Orders) newPlan(
	ctx context.Context, order *licensing.Order, in NewPlan,
) (*licensing.Plan, error) {
	if !order.Subscribed() {
		return nil, licensing.ErrNotSubscribed
	}
	priced := *order
	priced.Amount = in.Amount
	if err := o.cfg.Accepts(priced); err != nil {
		return nil, err
	}
	plan := &licensing.Plan{Amount: in.Amount}
	product, _ := order.Pays()
	if plan.ProductID = in.ProductID; in.ProductID == "" {
		plan.ProductID = product
	}
	wants := []store.Want{
		{Ref: licensing.ProductRef(order.Owner, plan.ProductID)}, {Ref: licensing.LicenseRef(order.LicenseKey)},
	}
	loaded, err := o.cfg.Records.Load(ctx, wants...)
	if err != nil {
		return nil, err
	}
	l := loaded[1].Record.License
	if plan.ProductID != product {
		p := loaded[0].Record.Product
		switch {
		case p == nil:
			return nil, licensing.ErrProductNotFound
		case p.Billing.Interval != order.Interval:
			return nil, licensing.InvalidField("product_id", "must be a product that is billed each "+
				order.Interval.String()+", as the subscription is: for another interval, create another order")
		case l != nil && l.Lease.Leased() != p.Terms.Lease.Leased():
			return nil, licensing.InvalidField("product_id",
				"must be a product whose devices are leased if the license's are, and are not otherwise")
		}
		plan.Terms = p.Terms
	}
	if in.MaxDevices != nil {
		plan.SetMaximum, plan.MaxDevices = true, *in.MaxDevices
		if l != nil {
			return plan, l.Lease.CheckDevices(plan.MaxDevices)
		}
	}
	return plan, nil
}

// plannedProduct returns the product of an order's planned change as it is now; nil: it does not exist any more, or no
// change is planned.
func (o *Orders) plannedProduct(ctx context.Context, order *licensing.Order) (*licensing.Product, error) {
	if order.Next == nil {
		return nil, nil
	}
	loaded, err := o.cfg.Records.Load(ctx, store.Want{Ref: licensing.ProductRef(order.Owner, order.Next.ProductID)})
	if err != nil {
		return nil, err
	}
	return loaded[0].Record.Product, nil
}

// notePlan records the answer that the payment provider has made the open change of an order's plan, and gives the
// order's license what it pays for now, in one transaction.
func (o *Orders) notePlan(
	ctx context.Context, ref licensing.Ref, note licensing.NoteSubscription,
) (licensing.Result, error) {
	stored, err := o.readOrder(ctx, ref.Owner, ref.ID) // the caller may have the key that the license has now
	if err != nil {
		return licensing.Result{}, err
	}
	if stored.LicenseKey.IsZero() {
		return o.engine.Do(ctx, ref, note)
	}
	license := licensing.LicenseRef(stored.LicenseKey)
	return o.engine.LockAndSwap(ctx, node.Step{Ref: ref, Cmd: note},
		node.Step{Ref: license, Then: func(noted licensing.Result) licensing.Command {
			return licensing.ExtendLicense{Plan: noted.Plan}
		}})
}
