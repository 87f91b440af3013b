package service

import (
	"context"

	"licet/licensing"
	"licet/node/store"
)

// ChangeCheckout runs StartCheckout, NoteCheckout or NoteAnswer on an order.
func (o *Orders) ChangeCheckout(
	ctx context.Context, order licensing.Order, cmd licensing.Command,
) (licensing.Order, error) {
	result, err := o.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), cmd)
	return result.Order, err
}

// ReportMisfit logs that a payment at the payment provider is not the payment that an order asks for. A person must
// look at the payment: the order stays as it is.
func (o *Orders) ReportMisfit(order licensing.Order, payment string, problem error) {
	o.cfg.Log.Error().Err(problem).Str("order_no", order.OrderNo).Str("payment", payment).
		Msg("a payment at the payment provider does not fit its order, which stays unpaid: " +
			"look at the payment in the provider's dashboard")
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
