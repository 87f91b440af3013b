package main

import (
	"context"
	"fmt"

	"licet/client"
	"licet/internal/fakestripe"
)

// subscribe lets a buyer pay in the checkout of a subscription. Then a month passes for the buyer, or two. So does
// another one in the end, for buyers whose subscription renews; see scene.catchUp.
func (s *shop) subscribe(ctx context.Context, b *buyer) {
	s.pay(b, fakestripe.CardPays)
	id, err := s.fake.SubscriptionOf(b.checkout)
	if err != nil {
		return // the payment came too late
	}
	s.Did("subscriptions")
	b.subscription = id
	switch b.fate {
	case renewsLate, failsToRenew:
		s.fake.SetCard(id, fakestripe.CardDeclined)
	case endsWithPeriod, resumes, upgrades, upgradesLater:
		if !s.changeSubscription(ctx, b) {
			return
		}
	}
	s.fake.Renew(id)
	switch b.fate {
	case renewsLate:
		s.fake.SetCard(id, fakestripe.CardPays) // Stripe tries again after three days
	case endsEarly:
		s.giveBack(ctx, b, b.amount)
		return
	case endsByDispute, winsRenewal, losesRenewal:
		s.comeBackAndDispute(ctx, b)
		return
	}
	s.comeBack(ctx, b)
}

// changeSubscription changes the subscription of a buyer at the shop's request, notes what the service has promised,
// and reports whether the service has promised everything. The buyer opens the pay page before, so that no callback
// need have come.
func (s *shop) changeSubscription(ctx context.Context, b *buyer) bool {
	if !s.opensPayPage(ctx, b) {
		return false
	}
	ask := func(what string, request func(key client.CallOption) error) bool {
		return s.insist(ctx, b, what, func() error {
			return request(client.IdempotencyKey(fmt.Sprintf("%s-%d", what, b.n)))
		})
	}
	end := func(key client.CallOption) error {
		_, err := s.desk.Subscriptions.Cancel(ctx, b.order, client.EndOfPeriod, key)
		return err
	}
	resume := func(key client.CallOption) error {
		_, err := s.desk.Subscriptions.Resume(ctx, b.order, key)
		return err
	}
	upgrade := func(key client.CallOption) error {
		change := client.SubscriptionChange{ProductID: plusID, Amount: 2 * b.amount, At: client.EndOfPeriod}
		if b.fate == upgrades {
			change.At = client.EndNow
		}
		_, err := s.desk.Subscriptions.Change(ctx, b.order, change, key)
		return err
	}
	switch b.fate {
	case endsWithPeriod, resumes:
		if !ask("subscriptions ended", end) {
			return false
		}
		b.status = "canceled"
		if b.fate == endsWithPeriod {
			return true
		}
		if !ask("subscriptions resumed", resume) {
			return false
		}
		b.status, b.invoiced = "active", b.amount
	default:
		if !ask("subscriptions changed", upgrade) {
			return false
		}
		b.status, b.product, b.invoiced = "active", plusID, 2*b.amount
		if b.fate == upgrades {
			b.invoiced += b.amount // for the rest of the first period
		}
	}
	return true
}
