package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"licet/client"
	"licet/loadtest/stage"
)

// make makes an order, some of them twice under one Idempotency-Key.
func (s *sales) make(ctx context.Context, p *orderPlan) *orderEntry {
	in := client.NewOrder{
		ProductID: s.ledger.products[p.product].id, Amount: p.amount, Currency: strings.ToLower(p.currency),
		Description: p.description, BuyerEmail: p.email, SuccessURL: p.successURL,
	}
	if p.metadata != nil {
		in.Metadata = p.metadata
	}
	key := client.IdempotencyKey(fmt.Sprintf("order-%d", p.n))
	from := time.Now()
	made, err := s.till.CreateOrder(ctx, in, key)
	if !s.done("orders made", p.String(), err) {
		return nil
	}
	life := longLife
	if p.made == morning {
		life = shortLife
	}
	o := &orderEntry{
		plan: p, number: made.OrderNo, payURL: made.PayURL, made: made.CreatedAt, ends: made.ExpiresAt,
		email: p.email, description: p.description, metadata: p.metadata,
	}
	s.ledger.ordered(o)
	s.check(within(made.CreatedAt, from, time.Now()), "%s was made at %v", p, made.CreatedAt)
	s.check(made.ExpiresAt.Sub(made.CreatedAt) == life, "%s can be paid for %v, not %v", p,
		made.ExpiresAt.Sub(made.CreatedAt), life)
	if p.fate == free {
		s.check(made.Status == statePaid && made.PayURL == "" && made.LicenseKey != "", "%s costs nothing, and is %s",
			p, made.Status)
		s.ledger.issued(o, made.LicenseKey, made.PaidAt)
	} else if made.PayURL == "" && p.made == morning && !time.Now().Before(made.ExpiresAt) {
		s.ledger.Did("orders that expired before the buyer had the pay page's address")
	} else {
		s.check(made.Status == stateUnpaid && strings.HasPrefix(made.PayURL, stage.PublicURL+"/pay/"),
			"%s is %s at first, to be paid at %q", p, made.Status, made.PayURL)
	}
	if p.n%7 == 0 {
		var response client.Response
		again, err := s.till.CreateOrder(ctx, in, key, client.Record(&response))
		if s.done("orders made again under the same Idempotency-Key", p.String(), err) {
			s.check(again.OrderNo == made.OrderNo && response.Replayed, "%s was made twice: %s and %s", p, made.OrderNo,
				again.OrderNo)
		}
	}
	return o
}

// carryOut does what was planned for an order, up to the activation of its license.
func (s *sales) carryOut(ctx context.Context, o *orderEntry) {
	if o.payURL == "" && o.plan.fate != free {
		return // the service was too busy to show the address in time
	}
	switch o.plan.fate {
	case free:
		// It is paid.
	case paidOnce, late:
		s.pay(ctx, o, 1)
	case paidTwice:
		s.pay(ctx, o, 1)
		s.payAgain(ctx, o)
	case paidAtOnce, lateAtOnce:
		s.pay(ctx, o, 10)
	case ranOut:
		s.letRunOut(ctx, o)
	case canceled:
		s.cancel(ctx, o)
		s.cancelAgain(ctx, o)
	case canceledPage:
		s.cancelOnPage(ctx, o)
	case canceledPaid:
		s.cancel(ctx, o)
		s.payCanceled(ctx, o)
	case raced:
		s.race(ctx, o)
	case leftUnpaid:
		s.stillPayable(ctx, o)
	}
	if license := s.ledger.find(o); license != nil && o.plan.licensed() {
		s.use(ctx, o, license)
	}
}

// stillPayable opens the pay page of an unpaid order.
func (s *sales) stillPayable(ctx context.Context, o *orderEntry) {
	page, err := s.browser.Open(ctx, o.payURL)
	s.check(err == nil && strings.Contains(page, "Complete your order"), "%s: its page is not to be paid on: %v",
		o.plan, err)
}

// awaitEnd waits until an order has expired at every node.
func (s *sales) awaitEnd(ctx context.Context, o *orderEntry) {
	for node := range nodeCount {
		s.check(await(stage.AtNode(ctx, node), func(ctx context.Context) bool {
			now, err := s.till.Order(ctx, o.number)
			return err == nil && now.Status == stateExpired
		}), "%s does not run out", o.plan)
	}
}

func (s *sales) letRunOut(ctx context.Context, o *orderEntry) {
	page, err := s.browser.Open(ctx, o.payURL)
	s.check(err == nil && strings.Contains(page, "Order expired"), "%s: its page does not tell that it has run out: %v",
		o.plan, err)
	s.refused("canceling an order that has run out", o.plan.String(), 40902,
		errorOf(s.till.CancelOrder(ctx, o.number, "too late")))
	s.refused("refunding an order that has run out", o.plan.String(), 40902,
		errorOf(s.desk.RefundOrder(ctx, o.number, "too late")))
}

func (s *sales) cancel(ctx context.Context, o *orderEntry) {
	o.reason = fmt.Sprintf("No wish %d", o.plan.n)
	now, err := s.till.CancelOrder(ctx, o.number, o.reason)
	if s.done("orders canceled", o.plan.String(), err) {
		o.canceled = true
		s.check(now.Status == stateCanceled && now.PayURL == "", "%s is %s after it was canceled", o.plan, now.Status)
	}
}

func (s *sales) cancelAgain(ctx context.Context, o *orderEntry) {
	now, err := s.till.CancelOrder(ctx, o.number, "another reason")
	if s.done("orders canceled again", o.plan.String(), err) {
		s.check(now.Status == stateCanceled && now.StateReason == o.reason, "%s is %s (%s) after it was canceled again",
			o.plan, now.Status, now.StateReason)
	}
	s.refused("refunding a canceled order", o.plan.String(), 40902, errorOf(s.desk.RefundOrder(ctx, o.number, "")))
}

// cancelOnPage cancels an order on the pay page.
func (s *sales) cancelOnPage(ctx context.Context, o *orderEntry) {
	page, err := s.push(ctx, o, "cancel")
	if s.done("orders canceled by their buyers", o.plan.String(), err) {
		o.canceled = true
		s.check(strings.Contains(page, "Order canceled"), "%s: the page after canceling does not say so", o.plan)
	}
}

// race pays and cancels an order at once, at two nodes. Either may come first; the answer
// to the shop tells which.
func (s *sales) race(ctx context.Context, o *orderEntry) {
	var refusal, failed error
	reason := fmt.Sprintf("No wish %d", o.plan.n)
	to, err := s.approach(ctx, o, "pay")
	if !s.worked("opening the pay page", o.plan.String(), err) {
		return
	}
	from := time.Now()
	atOnce(ctx, 2, func(ctx context.Context, i int) {
		if i == 0 {
			_, refusal = s.till.CancelOrder(ctx, o.number, reason)
		} else {
			_, failed = s.browser.Press(ctx, to, "pay")
		}
	})
	if !s.done("orders paid and canceled at once", o.plan.String(), failed) {
		return
	}
	switch codeOf(refusal) {
	case 0:
		s.ledger.Did("… of which canceled first")
		o.canceled, o.paid, o.refunded, o.reason = true, true, true, reason
	case 40902:
		s.ledger.Did("… of which paid first")
		s.notePaid(ctx, o, from)
	default:
		s.ledger.Problem("%s: canceling was answered %v", o.plan, refusal)
	}
}
