package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
)

// disputes records what providers say about disputes of payments.
type disputes struct {
	*backend
	payments *payments
}

// askDispute asks the provider about a dispute, and records the answer. Answers about disputes can go back, so
// askDispute reads the record before it asks; if another answer was recorded meanwhile, it asks again. It returns nil
// for a dispute of no payment of the owner's orders.
func (d *disputes) askDispute(ctx context.Context, provider Provider, owner licensing.Owner, id string) error {
	leave, err := d.enter(ctx, owner, id)
	if err != nil {
		return err
	}
	defer leave()
	for range maxQuestions {
		recorded, err := d.node.ReadPayment(ctx, owner, licensing.Payment{Provider: provider.Name(), Reference: id})
		if err != nil {
			return err
		}
		state, err := d.look(ctx, provider, Object{Kind: ObjectDispute, ID: id})
		switch {
		case errors.Is(err, ErrUnknownObject) && (recorded == nil || owner.Mode == licensing.Test):
			return nil // a recorded dispute of test mode may be deleted, and is asked about once a day
		case err != nil:
			return lost(Object{Kind: ObjectDispute, ID: id}, err)
		}
		err = d.recordDispute(ctx, provider, owner, recorded, state)
		if !errors.Is(err, licensing.ErrDisputeAnswered) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", licensing.ErrUnavailable, errDisputeRivals)
}

// errDisputeRivals means that other requests changed the record of a dispute between each question to the provider and
// the provider's answer.
var errDisputeRivals = errors.New("other requests keep changing the dispute: try again")

// recordDispute stores what the provider says about a dispute whose record was read before the question.
func (d *disputes) recordDispute(
	ctx context.Context, provider Provider, owner licensing.Owner, recorded *licensing.Payment, state State,
) error {
	order, found, err := d.orderOf(ctx, provider, owner, state)
	if err == nil && found {
		order, err = d.payments.paidBefore(ctx, provider, order, state)
	}
	switch {
	case err != nil || !found:
		return err
	case order.PaidAt.IsZero() && !order.Interval.IsZero():
		return d.payments.unpaid(ctx, provider, order, state)
	case order.PaidAt.IsZero(), order.Currency != state.Currency, state.Live != (owner.Mode == licensing.Live):
		return nil // of no payment that an order keeps
	case recorded != nil && (recorded.Kind != licensing.KindOfDispute || recorded.OrderNo != order.OrderNo):
		return nil
	}
	note := licensing.NoteDispute{Recorded: recorded, Dispute: licensing.Payment{
		Kind: licensing.KindOfDispute, Provider: provider.Name(), Reference: state.ID,
		State:  disputeState(state.Outcome),
		Amount: withoutTax(order.Amount, order.Refunds, state, order.Refundable()), Currency: order.Currency,
		Fee: state.Fee,
	}}
	if order.Payment != state.Payment || order.PaidThrough() != provider.Name() {
		further, err := d.payments.furtherPayment(ctx, provider, order, state)
		if err != nil || !isFurther(further, &order) {
			return err
		}
		note.Further = &licensing.FurtherDisputed{Payment: *further}
		note.Dispute.Amount = withoutTax(further.Amount, order.InvoiceRefunds, state, further.Amount-further.Returned)
	}
	return d.node.NoteDispute(ctx, order, note, provider.SuspendOnDispute())
}

func disputeState(outcome Outcome) licensing.PaymentState {
	switch outcome {
	case OutcomeWon:
		return licensing.PaymentWon
	case OutcomeLost:
		return licensing.PaymentLost
	}
	return licensing.PaymentOpen
}

// orderOf returns the order of a state. Of a dispute the provider may not tell the number: then the payment leads to
// the order.
func (d *disputes) orderOf(
	ctx context.Context, provider Provider, owner licensing.Owner, state State,
) (order licensing.Order, found bool, err error) {
	number := state.OrderNo
	if number == "" && state.Payment != "" && state.Kind == ObjectDispute {
		if number, err = d.node.OrderOfPayment(ctx, owner, provider.Name(), state.Payment); err != nil {
			return licensing.Order{}, false, err
		}
	}
	if !licensing.ValidOrderNo(number) {
		return licensing.Order{}, false, nil
	}
	order, err = d.node.Order(ctx, owner, number)
	if licensing.ReasonOf(err) == licensing.ReasonOrderNotFound {
		return licensing.Order{}, false, nil
	}
	return order, err == nil, err
}

// askDisputesDue asks about the disputes of an order about which a sweep must ask by now. asked is false if there are
// none.
func (d *disputes) askDisputesDue(ctx context.Context, order licensing.Order) (asked bool, err error) {
	if order.DisputeAskAt.IsZero() || order.DisputeAskAt.After(d.node.Now()) {
		return false, nil
	}
	order, due, err := d.node.PlanDisputes(ctx, order)
	if err != nil || !due {
		return true, err
	}
	provider := d.providerNamed(order.PaidThrough(), order.Owner)
	if order.Provider == licensing.ProviderOutside {
		provider = d.providers.Of(order.Owner) // which has taken a second payment
	}
	if provider == nil {
		return true, nil // the provider may be set up again
	}
	ids, err := d.node.DisputesDue(ctx, order)
	for _, id := range ids {
		err = errors.Join(err, d.askDispute(ctx, provider, order.Owner, id))
	}
	return true, err
}
