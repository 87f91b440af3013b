package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"licet/client"
	"licet/loadtest/stage"
)

// giveBack refunds an order as planned, and then tries operations that must fail after a refund.
func (s *sales) giveBack(ctx context.Context, o *orderEntry) {
	about, l := o.plan.String(), s.ledger.find(o)
	if l == nil {
		return // the reason is recorded
	}
	o.reason = fmt.Sprintf("It does not run on machine %d.", o.plan.n)
	switch o.plan.refund {
	case refundAtOnce:
		s.giveBackAtOnce(ctx, o)
	case refundRaced:
		s.giveBackInUse(ctx, o, l)
	default:
		key := client.IdempotencyKey(fmt.Sprintf("refund-%d", o.plan.n))
		now, err := s.desk.RefundOrder(ctx, o.number, o.reason, key)
		if !s.done("refunds", about, err) {
			return
		}
		s.check(now.Status == stateRefunded && !now.RefundDue, "%s is %s after its refund", o.plan, now.Status)
		if o.plan.refund == refundReplayed {
			s.replayRefund(ctx, o, key)
		}
		if o.plan.refund != refundOnce {
			again, err := s.desk.RefundOrder(ctx, o.number, "another reason")
			if s.done("refunds asked for again", about, err) {
				s.check(again.RefundedAt.Equal(now.RefundedAt) && again.StateReason == o.reason,
					"%s was refunded twice", o.plan)
			}
		}
	}
	o.refunded, l.revoked, l.reason = true, true, o.reason
	s.support.validate(ctx, l, device(0))
	s.refused("activating a refunded license", about, 40301, errorOf(s.support.tryActivate(ctx, l, device(0))))
	s.refused("suspending a refunded license", about, 40903, errorOf(s.desk.SuspendLicense(ctx, l.key, "")))
	if o.payURL == "" {
		return // it cost nothing
	}
	if _, err := s.push(ctx, o, "pay"); s.done("payments of refunded orders", about, err) {
		now, err := s.desk.Order(ctx, o.number)
		s.check(err == nil && now.Status == stateRefunded && now.LicenseKey == o.license,
			"%s is no longer refunded after it was paid again: %v", o.plan, err)
	}
}

// replayRefund sends the same request again to each node, and another request under the
// same key.
func (s *sales) replayRefund(ctx context.Context, o *orderEntry, key client.CallOption) {
	for node := range nodeCount {
		var response client.Response
		now, err := s.desk.RefundOrder(stage.Toward(ctx, node), o.number, o.reason, key, client.Record(&response))
		if s.done("refunds replayed", o.plan.String(), err) {
			s.check(response.Replayed && now.Status == stateRefunded, "%s: the replay of its refund is %s, replayed %v",
				o.plan, now.Status, response.Replayed)
		}
	}
	s.refused("another refund under the same Idempotency-Key", o.plan.String(), 42201,
		errorOf(s.desk.RefundOrder(ctx, o.number, "another reason", key)))
}

// giveBackAtOnce sends many refunds of one order at once, each with its own reason. One
// reason is kept.
func (s *sales) giveBackAtOnce(ctx context.Context, o *orderEntry) {
	const times = 6
	reasons, errs := make([]string, times), make([]error, times)
	atOnce(ctx, times, func(ctx context.Context, i int) {
		reasons[i] = fmt.Sprintf("%s (%d)", o.reason, i)
		_, errs[i] = s.desk.RefundOrder(ctx, o.number, reasons[i])
	})
	for _, err := range errs {
		s.done("refunds asked for at once", o.plan.String(), err)
	}
	now, err := s.desk.Order(ctx, o.number)
	if s.done("refunds", o.plan.String(), err) {
		s.check(now.Status == stateRefunded && slices.Contains(reasons, now.StateReason),
			"%s: after many refunds it is %s (%s)", o.plan, now.Status, now.StateReason)
		o.reason = now.StateReason
	}
}

// giveBackInUse refunds an order while devices are activated with its license. Devices
// that are bound in time stay bound to the revoked license.
func (s *sales) giveBackInUse(ctx context.Context, o *orderEntry, l *licenseEntry) {
	var group sync.WaitGroup
	var failed error
	group.Go(func() { _, failed = s.desk.RefundOrder(stage.Toward(ctx, 0), o.number, o.reason) })
	for i := len(l.devices); i < l.maxDevices; i++ {
		a, err := s.support.tryActivate(ctx, l, device(i))
		if codeOf(err) == 40301 {
			s.ledger.Did("refused: activating a refunded license")
		} else if s.done("activations", l.key, err) {
			l.bound(device(i), nameOf(device(i)), a.ActivatedAt)
		}
	}
	group.Wait()
	s.done("refunds", o.plan.String(), failed)
}
