package service

import (
	"cmp"
	"context"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// ChangeCheckout runs StartCheckout, NoteCheckout, NoteAnswer or PutOffAsk on an order.
func (o *Orders) ChangeCheckout(
	ctx context.Context, order licensing.Order, cmd licensing.Command,
) (licensing.Order, error) {
	result, err := o.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), cmd)
	return result.Order(), err
}

// RecordUnmatched stores the record of a payment or an invoice that does not fit its order, so that the shop finds it
// among the payments of the order, and logs the problem. It is a no-op for a payment that has such a record.
func (o *Orders) RecordUnmatched(
	ctx context.Context, order licensing.Order, unmatched licensing.Payment, problem error,
) error {
	o.ReportMisfit(order, unmatched.Reference, problem)
	if unmatched.Reference == "" {
		return nil
	}
	_, err := admitted(ctx, o.core, order.Owner, func(node.Place) (licensing.Result, error) {
		unmatched.Kind, unmatched.OrderNo = licensing.KindOfUnmatched, order.OrderNo
		return o.engine.LockAndSwap(ctx,
			node.Step{Ref: unmatched.Ref(order.Owner), Cmd: licensing.AddUnmatched{Payment: unmatched}})
	})
	return err
}

// ReportMisfit logs that a payment at the payment provider is not the payment that an order asks for. A person must
// look at the payment: the order stays as it is.
func (o *Orders) ReportMisfit(order licensing.Order, payment string, problem error) {
	o.cfg.Log.Error().Err(problem).Str("order_no", order.OrderNo).Str("payment", payment).
		Msg("a payment or a refund at the payment provider does not fit its order, which stays as it is: " +
			"look at it in the provider's dashboard")
}

// ReportMoved logs that the service gives up asking about the checkout or the subscription of an order, as the account
// does not have the payment provider of the order any more.
func (o *Orders) ReportMoved(order licensing.Order) {
	o.cfg.Log.Warn().Str("order_no", order.OrderNo).Str("mode", string(order.Owner.Mode)).
		Str("provider", string(order.PaidThrough())).Str("object", cmp.Or(order.Subscription, order.Checkout)).
		Msg("the account has another payment provider than the order, or none, so the service takes the checkout or " +
			"the subscription of the order for ended: look at it in the dashboard of the earlier provider")
}

// EachCheckoutDue calls ask for each order about whose checkout the payment provider must be asked by now. The order
// has only its number and owner. Calls may run at the same time.
func (s *Sweeps) EachCheckoutDue(ctx context.Context, ask func(context.Context, licensing.Order) error) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	return s.eachDue(ctx, licensing.DueCheckout, store.DueSpan{Until: now},
		func(ctx context.Context, ref licensing.Ref) error {
			return ask(ctx, licensing.Order{OrderNo: ref.ID, Owner: ref.Owner})
		})
}
