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
