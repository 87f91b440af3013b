package service

import (
	"context"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Subscriptions offers the use cases of subscriptions: what a payment provider says about them, their invoices, and
// changes of what they pay for.
type Subscriptions struct {
	*core
	orders *Orders
}

// checkBilling refuses what an order for a product with billing can't have.
func checkBilling(in NewOrder, billing licensing.Billing) error {
	switch {
	case !billing.Recurs():
		return nil
	case in.Quantity > 1:
		return licensing.InvalidField("quantity",
			"must be 1 for a product with billing: the subscription pays for one license with max_devices devices")
	case in.Amount == 0:
		return licensing.InvalidField("amount", "must be more than 0 for a product with billing")
	case in.Outside:
		return licensing.InvalidField("payment_provider",
			"must be left out for a product with billing: a payment provider must charge the subscription")
	}
	return nil
}

// NoteSubscription records an answer about the subscription of an order. noted is false if another answer was recorded
// since the order was read: then the caller must ask the provider again.
func (s *Subscriptions) NoteSubscription(
	ctx context.Context, order licensing.Order, note licensing.NoteSubscription,
) (now licensing.Order, noted bool, err error) {
	note.After = order.Answers
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	var result licensing.Result
	if note.Made {
		result, err = s.notePlan(ctx, ref, note)
	} else {
		result, err = s.engine.Do(ctx, ref, note)
	}
	return result.Order(), result.Created, err
}

// EndOfRevoked makes a sweep end the subscription of an order if the order's license is revoked, and returns the order
// as it is then.
func (s *Subscriptions) EndOfRevoked(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	if !order.Ends() || order.LicenseKey.IsZero() {
		return order, nil
	}
	view, err := s.cfg.Records.Load(ctx, store.Want{Ref: licensing.LicenseRef(order.LicenseKey)})
	if err != nil {
		return order, err
	}
	if l := view[0].Record.License; l == nil || l.RevokedAt.IsZero() {
		return order, nil
	}
	result, err := s.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.EndSubscription{})
	return result.Order(), err
}

// InvoiceRecorded reports whether the invoice of an owner with a provider's id has a record.
func (s *Subscriptions) InvoiceRecorded(
	ctx context.Context, owner licensing.Owner, provider licensing.PaymentProvider, id string,
) (bool, error) {
	loaded, err := s.cfg.Records.Load(ctx, store.Want{Ref: licensing.PaymentRef(owner, provider, id)})
	return err == nil && loaded[0].Record.Payment != nil, err
}

// RecordInvoice stores the record of a paid invoice, counts the invoice in its order and extends the order's license,
// in one transaction. In the same transaction, a planned change takes effect with the first invoice of its period.
// RecordInvoice is a no-op for an invoice that has a record, and for the invoice that was paid with the payment of the
// order.
//
// In test mode the owner's budget may refuse the record: no money has moved.
func (s *Subscriptions) RecordInvoice(ctx context.Context, order licensing.Order, invoice licensing.Payment) error {
	if order.Owner.Mode == licensing.Test {
		if err := s.budgets.admit(ctx, order.Owner); err != nil {
			return err
		}
	}
	_, err := admitted(ctx, s.core, order.Owner, func(node.Place) (none struct{}, err error) {
		// The key of the license as the order stores it: the caller may have the key that the license has now.
		stored, err := s.readOrder(ctx, order.Owner, order.OrderNo)
		if err != nil || invoice.ProviderID == stored.Payment {
			return none, err
		}
		planned, err := s.plannedProduct(ctx, &stored)
		if err != nil {
			return none, err
		}
		invoice.ProductID = stored.ProductOf(invoice.PeriodStart)
		record := licensing.PaymentRef(order.Owner, invoice.Provider, invoice.Reference)
		ref := licensing.OrderRef(order.Owner, order.OrderNo)
		steps := []node.Step{
			{Ref: record, Cmd: licensing.AddInvoice{Invoice: invoice}},
			{Ref: ref, Then: func(added licensing.Result) licensing.Command {
				return licensing.CountInvoice{New: added.Created, Invoice: invoice, Planned: planned}
			}},
		}
		if !stored.LicenseKey.IsZero() {
			license := licensing.LicenseRef(stored.LicenseKey)
			steps = append(steps, node.Step{
				Ref: license, After: func(counted licensing.Result) licensing.Command {
					if !counted.Created {
						return licensing.ExtendLicense{}
					}
					return licensing.ExtendLicense{End: stored.PaidUntil(invoice.PeriodEnd), Plan: counted.Plan}
				},
			})
		}
		_, err = s.engine.LockAndSwap(ctx, steps...)
		return none, err
	})
	return err
}

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
