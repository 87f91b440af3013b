package service

import (
	"context"
	"errors"
	"slices"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// OrderOfPayment returns the number of the order that was paid with a provider's reference; empty: there is none.
func (p *Payments) OrderOfPayment(
	ctx context.Context, owner licensing.Owner, provider licensing.PaymentProvider, reference string,
) (string, error) {
	loaded, err := p.cfg.Records.Load(ctx, store.Want{Ref: licensing.PaymentRef(owner, provider, reference)})
	if err != nil || loaded[0].Record.Payment == nil {
		return "", err
	}
	return loaded[0].Record.Payment.OrderNo, nil
}

// PlanDisputes plans the next question about the open disputes of an order; see licensing.PlanDisputes. due reports
// that the caller must ask now.
func (p *Payments) PlanDisputes(ctx context.Context, order licensing.Order) (now licensing.Order, due bool, err error) {
	result, err := p.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.PlanDisputes{})
	return result.Order(), result.Created, err
}

// NoteDispute records an answer about a dispute of a payment of an order; see licensing.NoteDispute. The result is
// ErrDisputeAnswered if another answer was recorded since note.Recorded was read. NoteDispute reads note.Further again:
// only the payment's reference counts.
//
// With suspend, a new open dispute suspends the licenses of the order, unless it is of a second payment. Licenses that
// are still to be issued are issued before, whatever refund is open: otherwise they would be valid. The end of the last
// dispute ends the suspension, unless the lost dispute leaves nothing of the payment: then the licenses are revoked.
// The first license changes in the transaction that stores the answer, and the others after that: if the node dies or
// the time ends, the next answer or a sweep completes the rest. A revocation has the actor and the reason of the end of
// the order, as that of the other licenses has.
func (p *Payments) NoteDispute(
	ctx context.Context, order licensing.Order, note licensing.NoteDispute, suspend bool,
) error {
	if note.Further != nil && note.Further.Payment.Kind == licensing.KindOfSecond {
		suspend = false // the order is paid with another payment
	}
	note.Suspend = suspend
	_, err := admitted(ctx, p.core, order.Owner, func(node.Place) (none struct{}, err error) {
		for range invoiceRefundTries {
			result, err := p.noteDispute(ctx, &order, note)
			switch {
			case errors.Is(err, licensing.ErrInvoicesChanged):
				continue
			case err != nil:
				return none, err
			}
			p.changeOthersNow(ctx, result.Order())
			return none, nil
		}
		return none, licensing.ErrUnavailable
	})
	return err
}

// noteDispute is NoteDispute for the first license of the order. It passes the license as swapOrPass does.
func (p *Payments) noteDispute(
	ctx context.Context, order *licensing.Order, note licensing.NoteDispute,
) (licensing.Result, error) {
	stored, err := p.readOrder(ctx, order.Owner, order.OrderNo)
	if err == nil && note.Further != nil {
		note.Further, err = p.furtherDisputed(ctx, &stored, note.Further.Payment.Reference)
	}
	if err != nil {
		return licensing.Result{}, err
	}
	if note.Dispute.State != licensing.PaymentOpen {
		note.Sequence = stored.Sequence
		note.Open, note.Seconds, err = p.openDisputes(ctx, &stored, note.Dispute.Reference)
	} else if note.Suspension(&stored).Begin {
		stored, err = p.issueRest(ctx, stored, true, p.engine.Do)
	}
	if err != nil {
		return licensing.Result{}, err
	}
	ref, record := licensing.OrderRef(order.Owner, order.OrderNo), note.Dispute.Ref(order.Owner)
	locks := []licensing.Ref{record, ref}
	steps := []node.Step{{Ref: ref, Cmd: note}, {Ref: record, Then: func(noted licensing.Result) licensing.Command {
		return licensing.PutDispute{Dispute: noted.Refund()}
	}}}
	if f := note.Further; f != nil {
		further := f.Payment.Ref(order.Owner)
		locks = []licensing.Ref{record, further, ref} // payments before orders, as for refunds
		steps = append(steps, node.Step{
			Ref: further, Then: func(noted licensing.Result) licensing.Command {
				return note.CountFurther(noted.Refund())
			},
		})
	}
	swap := p.engine.SwapTogether
	if !stored.LicenseKey.IsZero() {
		swap = func(ctx context.Context, steps ...node.Step) (licensing.Result, error) {
			return p.swapOrPass(ctx, p.engine.SwapTogether, steps...)
		}
		license := licensing.LicenseRef(stored.LicenseKey)
		locks, steps = append(locks, license), append(steps, node.Step{
			Ref: license, Then: func(noted licensing.Result) licensing.Command {
				target := licensing.Target{Key: stored.LicenseKey, By: licensing.Provider}
				now, dispute := noted.Order(), noted.Refund()
				if dispute.State == licensing.PaymentLost && !now.RefundedAt.IsZero() {
					return now.Revocation(stored.LicenseKey)
				}
				suspension := note.Suspension(&now)
				suspension.Target = target
				if note.Further != nil {
					suspension.Period = licensing.ReturnPeriod{
						From: stored.PaidUntil(stored.PaidEnd), To: now.PaidUntil(now.PaidEnd),
					}
				}
				return suspension
			},
		})
	}
	return p.engine.WithRecordLocks(ctx, locks, func(ctx context.Context) (licensing.Result, error) {
		return swap(ctx, steps...)
	})
}

// DisputesDue returns the provider's ids of the disputes of an order about which a sweep must ask: open disputes, and
// lost disputes of which more may count. If it returns none, it also ends the sweep's questions about the order, until
// a dispute needs one. order must be as PlanDisputes has returned it.
func (p *Payments) DisputesDue(ctx context.Context, order licensing.Order) ([]string, error) {
	ids := order.OpenDisputes()
	if order.Uncounted == 0 && order.Invoices == 0 {
		return ids, nil
	}
	records, err := p.paymentsOf(ctx, &order)
	if err != nil {
		return ids, err
	}
	for i := range records {
		if order.Recounts(&records[i], records) {
			ids = append(ids, records[i].Reference)
		}
	}
	if len(ids) == 0 {
		_, err = p.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo),
			licensing.EndDisputes{Planned: order.DisputeAskAt})
	}
	return ids, err
}

// furtherDisputed reads the further payment of an order that a buyer disputes.
func (p *Payments) furtherDisputed(
	ctx context.Context, order *licensing.Order, reference string,
) (*licensing.FurtherDisputed, error) {
	records, err := p.paymentsOf(ctx, order)
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		if record.Reference == reference &&
			(record.Kind == licensing.KindOfInvoice || record.Kind == licensing.KindOfSecond) {
			return &licensing.FurtherDisputed{
				Payment: record, Invoices: order.Invoices, Refunds: order.InvoiceRefunds,
				PaidEnd: order.PaidEndOf(records, reference),
			}, nil
		}
	}
	return nil, licensing.ErrInvoicesChanged
}

// openDisputes returns the provider's ids of the open disputes of an order besides one that ends, from their records,
// and which of them are of second payments. Both are nil if the order names all other open disputes, and none of them
// is of a second payment.
func (p *Payments) openDisputes(
	ctx context.Context, order *licensing.Order, ends string,
) (all, seconds []string, err error) {
	other := func(id string) bool { return id != ends }
	named := order.OpenDisputes()
	if len(named) < licensing.MaxOpenDisputes && (order.Invoices == 0 || !slices.ContainsFunc(named, other)) {
		return nil, nil, nil
	}
	records, err := p.paymentsOf(ctx, order)
	if err != nil {
		return nil, nil, err
	}
	ofSecond := func(d *licensing.Payment) bool {
		return slices.ContainsFunc(records, func(paid licensing.Payment) bool {
			return paid.Kind == licensing.KindOfSecond && paid.Reference == d.Refunds
		})
	}
	for i := range records {
		d := &records[i]
		if d.Kind != licensing.KindOfDispute || d.State != licensing.PaymentOpen || !other(d.Reference) {
			continue
		}
		if all = append(all, d.Reference); ofSecond(d) {
			seconds = append(seconds, d.Reference)
		}
	}
	return all, seconds, nil
}
