package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// ChangeSubscription changes the subscription of an order at the shop's request. It stores the request before it asks
// the provider. So if the node dies at any moment, the same call again or a pass of AskCheckoutsDue completes the
// change on any node. If the provider does not respond, the request stays.
//
// Calls with the same once make one change. replayed reports that an earlier call has made the change. A change that
// the provider has refused stays refused for its once.
func (s *subscriptions) ChangeSubscription(
	ctx context.Context, owner licensing.Owner, orderNo string, change licensing.ChangeSubscription, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	if change.Change.Kind != licensing.ChangeEndNow { // which nothing undoes
		if err := s.completeOpen(ctx, owner, orderNo, change.Change.Kind); err != nil {
			return licensing.Order{}, false, err
		}
	}
	order, number, replayed, err := s.node.ChangeSubscription(ctx, owner, orderNo, change, once)
	return s.completeChange(ctx, order, number, replayed, err)
}

// completeOpen completes an open request to end the subscription of an order or to let it renew, unless the request is
// of a kind: the provider may still get the request, and must not get it after another change.
func (s *subscriptions) completeOpen(
	ctx context.Context, owner licensing.Owner, orderNo string, kind licensing.ChangeKind,
) error {
	order, err := s.node.Order(ctx, owner, orderNo)
	switch open := order.Change.Kind; {
	case licensing.ReasonOf(err) == licensing.ReasonOrderNotFound:
		return nil // unless the request is repeated, it gets this answer
	case err != nil:
		return err
	case open != licensing.ChangeEnd && open != licensing.ChangeResume || open == kind:
		return nil
	}
	provider := s.checkoutProvider(order)
	if provider == nil {
		return licensing.ErrPaymentNotConfigured
	}
	_, err = s.askSubscription(ctx, provider, order)
	return err
}

// ChangePlan changes what the subscription of an order pays for, as ChangeSubscription makes other changes.
func (s *subscriptions) ChangePlan(
	ctx context.Context, owner licensing.Owner, orderNo string, in service.NewPlan, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	if err := s.completeOpen(ctx, owner, orderNo, licensing.ChangePlan); err != nil {
		return licensing.Order{}, false, err
	}
	order, number, replayed, err := s.node.ChangePlan(ctx, owner, orderNo, in, once)
	return s.completeChange(ctx, order, number, replayed, err)
}

// completeChange asks the provider for the open change of an order's subscription, and returns the order after that.
// The shop's request for the change with a number has returned the other parameters. A repeated request asks only for
// its own change.
func (s *subscriptions) completeChange(
	ctx context.Context, order licensing.Order, number string, repeated bool, failed error,
) (now licensing.Order, replayed bool, err error) {
	switch {
	case failed != nil:
		return order, repeated, failed
	case repeated && order.RefusedChange(number):
		return licensing.Order{}, false, changeRefused(ErrRefused)
	case !order.ChangeDue(), repeated && order.Change.Number != number && !order.EndDue:
		return order, repeated, nil
	}
	open := order.Change.Number // another request for the same change may have opened it
	provider := s.checkoutProvider(order)
	if provider == nil {
		return licensing.Order{}, false, licensing.ErrPaymentNotConfigured
	}
	refused, err := s.askSubscription(ctx, provider, order)
	switch {
	case err != nil:
		return licensing.Order{}, false, stillDue(err)
	case refused != nil:
		return licensing.Order{}, false, changeRefused(refused)
	}
	now, err = s.node.Order(ctx, order.Owner, order.OrderNo)
	switch {
	case err != nil:
		return licensing.Order{}, false, stillDue(err)
	case now.RefusedChange(open): // as another call has recorded
		return licensing.Order{}, false, changeRefused(ErrRefused)
	}
	return now, false, nil
}

// changeRefused returns the error for a client when the provider has refused a change of a subscription.
func changeRefused(err error) error {
	return fmt.Errorf("%w: %w", &licensing.Error{
		Reason: licensing.ReasonProviderFailed,
		Message: "the payment provider refused to change the subscription, for example because a card was declined; " +
			"nothing has changed",
	}, err)
}

// sendChange asks the provider for the open change of a subscription, and then for its end if that is due. It returns
// the state after that, or a state without an outcome if it has changed nothing. refused is the error of a provider
// that refuses the open change.
func (s *subscriptions) sendChange(
	ctx context.Context, provider Provider, order licensing.Order,
) (state State, refused, err error) {
	var changes []Change
	switch order.Change.Kind {
	case licensing.ChangeEnd:
		changes = append(changes, Change{End: EndOfPeriod, Once: order.Change.Number})
	case licensing.ChangeResume:
		changes = append(changes, Change{Resume: true, Once: order.Change.Number})
	case licensing.ChangePlan:
		// A buyer whose subscription is to end now is charged no more. State.Changed says whether an earlier call has
		// made the change.
		if plan := order.Change.Plan; !order.EndDue {
			changes = append(changes,
				Change{Amount: plan.Amount, Prorate: !order.Change.Later, Once: order.Change.Number})
		}
	}
	if order.EndDue {
		changes = append(changes, Change{End: EndNow})
	}
	for _, change := range changes {
		changed, err := s.change(ctx, provider, order, change)
		switch {
		case err == nil:
			state = changed
		case !errors.Is(err, ErrRefused):
			return State{}, nil, lost(Object{Kind: ObjectSubscription, ID: order.Subscription}, err)
		case change.End != EndNow:
			refused = err
		default: // the provider has no such subscription any more
			state = State{}
		}
	}
	return state, refused, nil
}

// change asks the provider to change the subscription of an order.
func (s *subscriptions) change(
	ctx context.Context, provider Provider, order licensing.Order, change Change,
) (State, error) {
	span := startSpan(ctx, operationChange)
	state, err := provider.Change(ctx, order, change)
	endSpan(span, err)
	if gone(&order, order.AskFailures, err) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return state, err
}

// Portal returns the URL of the provider's page where the buyer changes the card of an order's subscription. It asks
// about one order at a time, as askSubscription does.
func (s *subscriptions) Portal(ctx context.Context, owner licensing.Owner, orderNo string) (string, error) {
	order, err := s.node.Order(ctx, owner, orderNo)
	switch {
	case err != nil:
		return "", err
	case !order.Subscribed():
		return "", licensing.ErrNotSubscribed
	}
	provider := s.checkoutProvider(order)
	if provider == nil {
		return "", licensing.ErrPaymentNotConfigured
	}
	leave, err := s.enter(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return "", err
	}
	defer leave()
	span := startSpan(ctx, operationPortal)
	url, err := provider.Portal(ctx, order)
	endSpan(span, err)
	if errors.Is(err, ErrRefused) {
		return "", fmt.Errorf("%w: %w", licensing.ErrNoPortal, err)
	}
	if err != nil {
		return "", lost(Object{Kind: ObjectSubscription, ID: order.Subscription}, err)
	}
	return url, nil
}
