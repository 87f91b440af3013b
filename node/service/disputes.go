package service

import (
	"context"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// OrderOfPayment returns the number of the order that was paid with a provider's reference; empty: there is none.
func (o *Orders) OrderOfPayment(
	ctx context.Context, owner licensing.Owner, provider licensing.PaymentProvider, reference string,
) (string, error) {
	loaded, err := o.cfg.Records.Load(ctx, store.Want{Ref: licensing.PaymentRef(owner, provider, reference)})
	if err != nil || loaded[0].Record.Payment == nil {
		return "", err
	}
	return loaded[0].Record.Payment.OrderNo, nil
}

// PlanDisputes plans the next question about the open disputes of an order; see licensing.PlanDisputes. due reports
// that the caller must ask now.
func (o *Orders) PlanDisputes(ctx context.Context, order licensing.Order) (now licensing.Order, due bool, err error) {
	result, err := o.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.PlanDisputes{})
	return result.Order, result.Created, err
}

// NoteDispute records an answer about a dispute of an order's payment; see licensing.NoteDispute. The result is
// ErrDisputeAnswered if another answer was recorded since note.Recorded was read.
//
// With suspend, a new open dispute suspends the licenses of the order. The end of the last one ends their suspension,
// unless the lost dispute leaves nothing of the payment: then the licenses are revoked. The first license changes in
// the transaction that stores the answer, and the others before: so if the node dies, the next answer completes the
// rest.
func (o *Orders) NoteDispute(
	ctx context.Context, order licensing.Order, note licensing.NoteDispute, suspend bool,
) error {
	_, err := admitted(ctx, o.core, order.Owner, func(node.Place) (none struct{}, err error) {
		for {
			result, err := o.noteDispute(ctx, &order, note, suspend)
			if err != nil || result.Refund.Reference != "" {
				return none, err
			}
			if err := o.revokeOthers(ctx, &result.Order, note.Revoked); err != nil {
				return none, err
			}
			note.Revoked = result.Order.Issued()
		}
	})
	return err
}

// noteDispute is NoteDispute, unless licenses of the order must be revoked before: then Result.Refund is zero.
func (o *Orders) noteDispute(
	ctx context.Context, order *licensing.Order, note licensing.NoteDispute, suspend bool,
) (licensing.Result, error) {
	stored, err := o.readOrder(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return licensing.Result{}, err
	}
	hold := holdOf(&stored, note, suspend)
	if hold.Begin || hold.End {
		if err := o.holdOthers(ctx, &stored, hold); err != nil {
			return licensing.Result{}, err
		}
	}
	ref, record := licensing.OrderRef(order.Owner, order.OrderNo), note.Dispute.Ref(order.Owner)
	locks := []licensing.Ref{record, ref}
	steps := []node.Step{{Ref: ref, Cmd: note}, {Ref: record, Then: func(noted licensing.Result) licensing.Command {
		return licensing.PutDispute{Dispute: noted.Refund}
	}}}
	if !stored.LicenseKey.IsZero() {
		license := licensing.LicenseRef(stored.LicenseKey)
		locks, steps = append(locks, license), append(steps, node.Step{
			Ref: license, Then: func(noted licensing.Result) licensing.Command {
				target := licensing.Target{Key: stored.LicenseKey, By: licensing.Provider}
				switch {
				case noted.Refund.Reference == "": // the other licenses must be revoked first
					return licensing.HoldLicense{Target: target}
				case noted.Refund.State == licensing.PaymentLost && !noted.Order.RefundedAt.IsZero():
					return licensing.RevokeLicense{Target: target}
				}
				hold := holdOf(&noted.Order, note, suspend)
				hold.Target = target
				return hold
			},
		})
	}
	return o.engine.WithRecordLocks(ctx, locks, func(ctx context.Context) (licensing.Result, error) {
		return o.engine.SwapTogether(ctx, steps...)
	})
}

// holdOf returns what an answer about a dispute does to the suspension of the order's licenses. An open dispute that is
// recorded already suspends nothing: the shop may have reinstated the licenses since. Each answer that the dispute has
// ended ends the suspension, also if that is recorded already: a node with an older answer may have suspended some
// licenses meanwhile, before its transaction failed.
func holdOf(order *licensing.Order, note licensing.NoteDispute, suspend bool) (hold licensing.HoldLicense) {
	if note.Dispute.State == licensing.PaymentOpen {
		hold.Begin = suspend && (note.Recorded == nil || note.Recorded.State != licensing.PaymentOpen)
		return hold
	}
	hold.End = true
	for _, id := range order.OpenDisputes() {
		hold.End = hold.End && id == note.Dispute.Reference
	}
	return hold
}

// holdOthers suspends the licenses of an order except the first one, or ends their suspension.
func (o *Orders) holdOthers(ctx context.Context, order *licensing.Order, hold licensing.HoldLicense) error {
	commands := make(map[licensing.Ref]licensing.Command)
	var refs []licensing.Ref
	for _, key := range o.firstKeys(order, 1, order.Issued()) {
		ref := licensing.LicenseRef(key)
		hold.Target = licensing.Target{Key: key, By: licensing.Provider}
		refs, commands[ref] = append(refs, ref), hold
	}
	return o.doAll(ctx, refs, commands)
}
