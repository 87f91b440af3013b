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

// ChangeSubscription records the shop's request to end a subscription or to let it renew, under a new number; see
// licensing.ChangeSubscription. The caller must then ask the payment provider for the change. It returns the number of
// the change: with once, that of the first request.
func (s *Subscriptions) ChangeSubscription(
	ctx context.Context, owner licensing.Owner, orderNo string, change licensing.ChangeSubscription, once *node.Once,
) (order licensing.Order, number string, replayed bool, err error) {
	if change.Change.Number, err = s.changeNumber(); err != nil {
		return licensing.Order{}, "", false, err
	}
	effect := licensing.Claim{OrderNo: orderNo, Number: change.Change.Number}
	same := sameChange(effect, change.Change.Kind)
	order, earlier, err := s.orders.changeOrder(ctx, owner, effect, same, change, once)
	if earlier != nil {
		return order, earlier.Number, true, err
	}
	return order, change.Change.Number, false, err
}

// sameChange gives a request that repeats the open change of a subscription under another Idempotency-Key the number
// of that change. Otherwise the request, made again, would not know that its change is still open.
func sameChange(effect licensing.Claim, kind licensing.ChangeKind) func(licensing.Result) licensing.Claim {
	return func(result licensing.Result) licensing.Claim {
		remembered := effect
		if open := result.Order().Change; open.Kind == kind {
			remembered.Number = open.Number
		}
		return remembered
	}
}

// changeNumber returns the number of a new change of a subscription.
func (s *Subscriptions) changeNumber() (string, error) {
	id, err := NewULID(s.engine.Now(), s.cfg.Entropy, "a change of a subscription")
	return licensing.ChangeNumber(id), err
}

// ChangePlan records the shop's request to change what a subscription pays for, as ChangeSubscription records other
// requests.
func (s *Subscriptions) ChangePlan(
	ctx context.Context, owner licensing.Owner, orderNo string, in NewPlan, once *node.Once,
) (order licensing.Order, number string, replayed bool, err error) {
	if number, err = s.changeNumber(); err != nil {
		return licensing.Order{}, "", false, err
	}
	ref := licensing.OrderRef(owner, orderNo)
	run := func(place node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
		defer func() {
			if replayed && claim.Earlier != nil {
				number = claim.Earlier.Number
			}
		}()
		var wants []store.Want
		if licensing.ValidOrderNo(orderNo) {
			wants = append(wants, store.Want{Ref: ref})
		}
		loaded, err := s.engine.LoadWithClaim(ctx, claim, wants...)
		switch {
		case err != nil:
			return licensing.Order{}, claim.Replayed(), err
		case claim.Replayed():
			return s.orders.claimedOrder(ctx, owner, claim.Earlier)
		case len(loaded) == 0 || loaded[0].Record.Order == nil:
			return licensing.Order{}, false, licensing.ErrOrderNotFound
		}
		plan, err := s.newPlan(ctx, loaded[0].Record.Order, in)
		if err != nil {
			return licensing.Order{}, false, err
		}
		claim.EffectOf = sameChange(licensing.Claim{OrderNo: orderNo, Number: number}, licensing.ChangePlan)
		result, err := place.DoOnce(ctx, ref, licensing.ChangeSubscription{Change: licensing.SubscriptionChange{
			Kind: licensing.ChangePlan, Number: number, Later: in.Later, Plan: plan,
		}}, claim)
		if err == nil && claim.Replayed() {
			return s.orders.claimedOrder(ctx, owner, claim.Earlier)
		}
		return result.Order(), claim.Replayed(), err
	}
	order, replayed, err = idempotent(ctx, s.core, owner, once, nil, run)
	return order, number, replayed, err
}

// newPlan returns what an order's subscription is to pay for, and refuses what it can't pay for.
func (s *Subscriptions) newPlan(
	ctx context.Context, order *licensing.Order, in NewPlan,
) (*licensing.Plan, error) {
	if !order.Subscribed() {
		return nil, licensing.ErrNotSubscribed
	}
	priced := *order
	priced.Amount = in.Amount
	if err := s.cfg.Accepts(priced); err != nil {
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
	loaded, err := s.cfg.Records.Load(ctx, wants...)
	if err != nil {
		return nil, err
	}
	p, l := loaded[0].Record.Product, loaded[1].Record.License
	if p != nil { // also if the product stays: another change may be recorded before this one
		plan.Terms = p.Terms
	}
	if plan.ProductID != product {
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
func (s *Subscriptions) plannedProduct(ctx context.Context, order *licensing.Order) (*licensing.Product, error) {
	if order.Next == nil {
		return nil, nil
	}
	loaded, err := s.cfg.Records.Load(ctx, store.Want{Ref: licensing.ProductRef(order.Owner, order.Next.ProductID)})
	if err != nil {
		return nil, err
	}
	return loaded[0].Record.Product, nil
}

// notePlan records the answer that the payment provider has made the open change of an order's plan, and gives the
// order's license what it pays for now, in one transaction.
func (s *Subscriptions) notePlan(
	ctx context.Context, ref licensing.Ref, note licensing.NoteSubscription,
) (licensing.Result, error) {
	stored, err := s.readOrder(ctx, ref.Owner, ref.ID) // the caller may have the key that the license has now
	if err != nil {
		return licensing.Result{}, err
	}
	if stored.LicenseKey.IsZero() {
		return s.engine.Do(ctx, ref, note)
	}
	license := licensing.LicenseRef(stored.LicenseKey)
	return s.engine.LockAndSwap(ctx, node.Step{Ref: ref, Cmd: note},
		node.Step{Ref: license, Then: func(noted licensing.Result) licensing.Command {
			return licensing.ExtendLicense{Plan: noted.Plan}
		}})
}
