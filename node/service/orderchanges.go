package service

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// ChangeOrder runs a shop's command on one of its orders.
//
// With once, repeating the request returns the order as it is now, or the refusal of the first
// request, and replayed is true.
func (o *Orders) ChangeOrder(
	ctx context.Context, owner licensing.Owner, orderNo string, cmd licensing.Command, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	order, earlier, err := o.changeOrder(ctx, owner, licensing.Claim{OrderNo: orderNo}, nil, cmd, once)
	return order, earlier != nil, err
}

// changeOrder runs a shop's command on one of its orders. effect is what a request with once leaves behind, unless
// effectOf is set; see node.Claim. If the request was made before, changeOrder returns what that request has left.
func (o *Orders) changeOrder(
	ctx context.Context, owner licensing.Owner, effect licensing.Claim,
	effectOf func(licensing.Result) licensing.Claim, cmd licensing.Command, once *node.Once,
) (order licensing.Order, earlier *licensing.Claim, err error) {
	orderNo := effect.OrderNo
	run := func(place node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
		defer func() {
			if replayed {
				earlier = claim.Earlier
			}
		}()
		if !licensing.ValidOrderNo(orderNo) {
			if _, err := o.engine.LoadWithClaim(ctx, claim); err != nil {
				return licensing.Order{}, claim.Replayed(), err
			}
			return licensing.Order{}, false, licensing.ErrOrderNotFound
		}
		claim.Effect, claim.EffectOf = effect, effectOf
		result, err := place.DoOnce(ctx, licensing.OrderRef(owner, orderNo), cmd, claim)
		if err == nil && claim.Replayed() {
			return o.claimedOrder(ctx, owner, claim.Earlier)
		}
		return result.Order(), claim.Replayed(), err
	}
	order, _, err = idempotent(ctx, o.core, owner, once, nil, run)
	return order, earlier, err
}

// RequestRefund records the shop's request for a refund, under a new number; see licensing.RequestRefund. It returns
// the number: with once, that of the first request.
func (o *Orders) RequestRefund(
	ctx context.Context, owner licensing.Owner, orderNo string, request licensing.RequestRefund, once *node.Once,
) (order licensing.Order, number string, replayed bool, err error) {
	id, err := NewULID(o.engine.Now(), o.cfg.Entropy, "a refund")
	if err != nil {
		return licensing.Order{}, "", false, err
	}
	number = licensing.RefundNumber(id)
	request.Number = number
	effect := licensing.Claim{OrderNo: orderNo, Number: number}
	order, earlier, err := o.changeOrder(ctx, owner, effect, nil, request, once)
	if earlier != nil {
		number = earlier.Number
	}
	return order, number, earlier != nil, err
}

// ReadPayment returns the record of a payment, a refund or a dispute; nil: it has none. Only its kind, its provider and
// its reference count.
func (o *Orders) ReadPayment(
	ctx context.Context, owner licensing.Owner, payment licensing.Payment,
) (*licensing.Payment, error) {
	return admitted(ctx, o.core, owner, func(node.Place) (*licensing.Payment, error) {
		loaded, err := o.cfg.Records.Load(ctx, store.Want{Ref: payment.Ref(owner)})
		if err != nil {
			return nil, err
		}
		return loaded[0].Record.Payment, nil
	})
}

// CancelOrder cancels an unpaid order at the buyer's request.
func (o *Orders) CancelOrder(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	return o.engine.Do(ctx, ref, licensing.CancelOrder{By: licensing.EndUser})
}

// TryRefund records that the service is about to ask the payment provider for a refund; see
// licensing.TryRefund.
func (o *Orders) TryRefund(ctx context.Context, order licensing.Order, waiting bool) (licensing.Result, error) {
	result, err := o.PutOffRefund(ctx, order, waiting)
	if err == nil && result.RefundDue {
		o.cfg.Metrics.Refunds.WithLabelValues("asked").Inc()
	}
	return result, err
}

// PutOffRefund is TryRefund for a refund that the service can't ask for, as the owner does not have the payment
// provider any more.
func (o *Orders) PutOffRefund(ctx context.Context, order licensing.Order, waiting bool) (licensing.Result, error) {
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	return o.engine.Do(ctx, ref, licensing.TryRefund{Waiting: waiting})
}

// WithdrawRefund records that the payment provider has refused a refund, or that the provider's refund with the id
// failed has failed. The order must be as TryRefund returned it; see licensing.WithdrawRefund.
func (o *Orders) WithdrawRefund(
	ctx context.Context, order licensing.Order, failed string,
) (licensing.Result, error) {
	result, err := o.finishRefund(ctx, order,
		licensing.WithdrawRefund{Number: order.RefundNo, Tries: order.RefundTries, Failed: failed})
	if err == nil && !result.RefundDue {
		o.cfg.Metrics.Refunds.WithLabelValues("refused").Inc()
	}
	return result, err
}

// NotePendingRefund records that the payment provider will send the money of an order's open refund later.
func (o *Orders) NotePendingRefund(
	ctx context.Context, order licensing.Order, providerID string,
) (licensing.Result, error) {
	if order.RefundPending {
		return licensing.Result{RefundDue: order.RefundDue}.WithOrder(order), nil
	}
	return o.finishRefund(ctx, order, licensing.NotePendingRefund{Number: order.RefundNo, ProviderID: providerID})
}

// NoteRefund records a refund that was made at the payment provider, as the open refund of an order; see
// licensing.NoteRefund. The result is ErrRefundClosed if the refund has a record and is not open.
func (o *Orders) NoteRefund(
	ctx context.Context, order licensing.Order, note licensing.NoteRefund,
) (licensing.Result, error) {
	opened := order
	opened.RefundNo = note.ProviderID
	return o.changeRefund(ctx, order, opened.Refund(), note)
}

// TakeBackRefund records that a refund has failed after it was made; see licensing.TakeBackRefund. The refund must be
// as recorded. It is a no-op if that is recorded.
func (o *Orders) TakeBackRefund(ctx context.Context, order licensing.Order, refund licensing.Payment) error {
	_, err := o.changeRefund(ctx, order, refund, licensing.TakeBackRefund{Refund: refund})
	switch {
	case errors.Is(err, licensing.ErrRefundClosed):
		return nil
	case err == nil:
		o.cfg.Metrics.Refunds.WithLabelValues("returned").Inc()
	}
	return err
}

// finishRefund stores the outcome of the open refund of an order, along with the refund's record.
func (o *Orders) finishRefund(
	ctx context.Context, order licensing.Order, cmd licensing.Command,
) (licensing.Result, error) {
	return o.changeRefund(ctx, order, order.Refund(), cmd)
}

// changeRefund runs a command on an order, and stores the record of a refund that the command returns.
func (o *Orders) changeRefund(
	ctx context.Context, order licensing.Order, refund licensing.Payment, cmd licensing.Command,
) (licensing.Result, error) {
	return admitted(ctx, o.core, order.Owner, func(node.Place) (licensing.Result, error) {
		return o.withRefund(ctx, &order, refund,
			func(ctx context.Context, record node.Step) (licensing.Result, error) {
				return o.engine.SwapTogether(ctx,
					node.Step{Ref: licensing.OrderRef(order.Owner, order.OrderNo), Cmd: cmd}, record)
			})
	})
}

// withRefund runs a task with the locks of a refund of an order and of the order, and with the step that stores the
// record of the refund.
func (o *Orders) withRefund(
	ctx context.Context, order *licensing.Order, refund licensing.Payment,
	task func(context.Context, node.Step) (licensing.Result, error),
) (licensing.Result, error) {
	record := node.Step{Ref: refund.Ref(order.Owner), Then: func(changed licensing.Result) licensing.Command {
		return licensing.PutRefund{Refund: changed.Refund()}
	}}
	locks := []licensing.Ref{record.Ref, licensing.OrderRef(order.Owner, order.OrderNo)}
	return o.engine.WithRecordLocks(ctx, locks, func(ctx context.Context) (licensing.Result, error) {
		return task(ctx, record)
	})
}

// MadeRefund is what the payment provider says of a refund that it has made.
type MadeRefund struct {
	ProviderID string    // the provider's id of the refund; empty: none
	At         time.Time // zero: now
}

// RecordRefund records that the payment provider has made the open refund of an order. If the refund ends the order,
// RecordRefund revokes the order's license in the same transaction, and then the other licenses of the order: if the
// node dies or the time ends, a sweep completes the rest.
func (o *Orders) RecordRefund(
	ctx context.Context, order licensing.Order, made MadeRefund,
) (result licensing.Result, err error) {
	return admitted(ctx, o.core, order.Owner, func(node.Place) (result licensing.Result, err error) {
		refund := licensing.RefundOrder{Number: order.RefundNo, ProviderID: made.ProviderID, At: made.At}
		for {
			result, err = o.recordRefund(ctx, &order, refund)
			closed := errors.Is(err, licensing.ErrRefundClosed) // by another call
			if closed {
				var now licensing.Order
				now, err = o.readOrder(ctx, order.Owner, order.OrderNo)
				result = result.WithOrder(now)
			}
			if err != nil {
				return result, err
			}
			if now := result.Order(); !closed && now.RefundDue && now.RefundNo == order.RefundNo {
				continue // it has begun to end the order since recordRefund read the order
			}
			o.cfg.Metrics.Refunds.WithLabelValues("made").Inc()
			o.changeOthersNow(ctx, result.Order())
			return result, nil
		}
	})
}

// recordRefund records the open refund of an order. If the refund ends the order, recordRefund also revokes the first
// license of the order, or passes it as swapOrPass does. It returns the order as it is if the refund has begun to end
// the order meanwhile.
func (o *Orders) recordRefund(
	ctx context.Context, order *licensing.Order, cmd licensing.RefundOrder,
) (licensing.Result, error) {
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	return o.withRefund(ctx, order, order.Refund(), func(
		ctx context.Context, record node.Step,
	) (licensing.Result, error) {
		// The order may have been paid since the caller read it.
		now, err := o.readOrder(ctx, ref.Owner, ref.ID)
		if err != nil {
			return licensing.Result{}, err
		}
		refund := node.Step{Ref: ref, Cmd: cmd}
		switch {
		case now.LicenseKey.IsZero() && now.CanceledAt.IsZero():
			// Apply refuses to refund an unpaid order. A swap could find the order paid by then, with a license whose
			// lock this call does not hold.
			return licensing.Apply(&licensing.Record{Order: &now}, cmd, o.engine.Now())
		case now.LicenseKey.IsZero(): // a canceled order never gets a license
			return o.engine.SwapTogether(ctx, refund, record)
		case now.RefundNo != "" && !now.EndsWithRefund():
			cmd.Partial = true
			refund.Cmd = cmd
			return o.engine.SwapTogether(ctx, refund, record)
		}
		license := licensing.LicenseRef(now.LicenseKey)
		revoke := node.Step{Ref: license, Then: func(refunded licensing.Result) licensing.Command {
			if order := refunded.Order(); !order.RefundedAt.IsZero() {
				return order.Revocation(now.LicenseKey)
			}
			// The refund has ceased to end the order: the license stays as it is.
			return licensing.SuspendForDispute{Target: licensing.Target{Key: now.LicenseKey}}
		}}
		return o.engine.WithRecordLock(ctx, license, func(ctx context.Context) (licensing.Result, error) {
			return o.swapOrPass(ctx, o.engine.SwapTogether, refund, record, revoke)
		})
	})
}
