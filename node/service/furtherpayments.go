package service

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// RecordSecond stores the record of a second payment of an order, and makes its refund due, in one transaction; see
// licensing.AddSecond. It is a no-op for a payment that has a record.
func (p *Payments) RecordSecond(ctx context.Context, order licensing.Order, second licensing.Payment) error {
	_, err := admitted(ctx, p.core, order.Owner, func(node.Place) (licensing.Result, error) {
		second.Kind, second.OrderNo, second.ProductID = licensing.KindOfSecond, order.OrderNo, order.ProductID
		return p.engine.LockAndSwap(ctx,
			node.Step{Ref: second.Ref(order.Owner), Cmd: licensing.AddSecond{Payment: second}},
			node.Step{Ref: licensing.OrderRef(order.Owner, order.OrderNo),
				Then: func(added licensing.Result) licensing.Command {
					return licensing.CountSecond{New: added.Created, Payment: second}
				}})
	})
	if errors.Is(err, licensing.ErrReturnsFull) {
		err = fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	return err
}

// RecordFee stores the fee of a recorded payment of an order, and counts it in the order, in one transaction: the
// provider may know the fee only after the payment. Of the payment, only its provider, its reference and the fee count.
// RecordFee is a no-op if the fee is recorded already, or if the order has no record of the payment; see
// licensing.AddFee.
func (p *Payments) RecordFee(ctx context.Context, order licensing.Order, paid licensing.Payment) error {
	if paid.Fee == nil {
		return nil
	}
	fee := *paid.Fee
	_, err := admitted(ctx, p.core, order.Owner, func(node.Place) (licensing.Result, error) {
		return p.engine.LockAndSwap(ctx,
			node.Step{
				Ref: licensing.PaymentRef(order.Owner, paid.Provider, paid.Reference),
				Cmd: licensing.AddFee{OrderNo: order.OrderNo, Fee: fee},
			},
			node.Step{Ref: licensing.OrderRef(order.Owner, order.OrderNo),
				Then: func(added licensing.Result) licensing.Command {
					return licensing.CountFee{New: added.Created, Fee: fee}
				}})
	})
	return err
}

// RequestReturn records the shop's request to refund an invoice of an order's subscription, under a new number; see
// licensing.RequestReturn. It returns the number: with once, that of the first request.
func (p *Payments) RequestReturn(
	ctx context.Context, owner licensing.Owner, orderNo, invoice string, request licensing.RequestReturn,
	once *node.Once,
) (order licensing.Order, number string, replayed bool, err error) {
	id, err := NewULID(p.engine.Now(), p.cfg.Entropy, "a refund")
	if err != nil {
		return licensing.Order{}, "", false, err
	}
	request.Number = licensing.RefundNumber(id)
	for range invoiceRefundTries {
		if request.Refunds, request.Invoice, err = p.readInvoice(ctx, owner, orderNo, invoice); err != nil {
			return licensing.Order{}, "", false, err
		}
		var earlier *licensing.Claim
		effect := licensing.Claim{OrderNo: orderNo, Number: request.Number}
		order, earlier, err = p.orders.changeOrder(ctx, owner, effect, nil, request, once)
		switch {
		case errors.Is(err, licensing.ErrInvoicesChanged):
			continue
		case earlier != nil:
			return order, earlier.Number, true, err
		}
		return order, request.Number, false, err
	}
	return licensing.Order{}, "", false, licensing.ErrUnavailable
}

// readInvoice returns the record of an invoice of an order, and how often refunds of the order's invoices had changed
// before it was read.
func (p *Payments) readInvoice(
	ctx context.Context, owner licensing.Owner, orderNo, reference string,
) (refunds int, invoice licensing.Payment, err error) {
	order, err := p.orders.Order(ctx, owner, orderNo)
	if err != nil {
		return 0, invoice, err
	}
	loaded, err := p.cfg.Records.Load(ctx, store.Want{
		Ref: licensing.PaymentRef(owner, order.PaidThrough(), reference),
	})
	if err != nil {
		return 0, invoice, err
	}
	found := loaded[0].Record.Payment
	if found == nil || found.Kind != licensing.KindOfInvoice || found.OrderNo != orderNo {
		return 0, invoice, licensing.InvalidField("invoice",
			"must be the reference of an invoice among the payments of this order; "+
				"leave it out to refund the first payment")
	}
	return order.InvoiceRefunds, *found, nil
}

// TryReturn records that the service is about to ask the payment provider for the refund of a further payment; see
// licensing.TryReturn.
func (p *Payments) TryReturn(
	ctx context.Context, order licensing.Order, try licensing.TryReturn,
) (licensing.Result, error) {
	result, err := p.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), try)
	if err == nil && result.Return().Number != "" {
		p.cfg.Metrics.Refunds.WithLabelValues("asked").Inc()
	}
	return result, err
}

// WithdrawReturn records that the payment provider has refused the refund of a further payment; see
// licensing.WithdrawReturn.
func (p *Payments) WithdrawReturn(
	ctx context.Context, order licensing.Order, further licensing.Payment, refused licensing.Return,
) error {
	_, err := admitted(ctx, p.core, order.Owner, func(node.Place) (licensing.Result, error) {
		return p.engine.LockAndSwap(ctx,
			// What does not count of its lost disputes must be current at the moment of the swap.
			node.Step{Ref: further.Ref(order.Owner), Cmd: licensing.RefundInvoice{}, Guarded: true},
			node.Step{Ref: licensing.OrderRef(order.Owner, order.OrderNo),
				After: func(read licensing.Result) licensing.Command {
					return licensing.WithdrawReturn{Return: refused, Further: read.Refund()}
				}})
	})
	if err == nil {
		p.cfg.Metrics.Refunds.WithLabelValues("refused").Inc()
	}
	return err
}

// invoiceRefundTries bounds how often RecordInvoiceRefund reads the invoices of an order that others change meanwhile.
const invoiceRefundTries = 10

// RecordInvoiceRefund stores what has become of a refund of a further payment of a kind, and takes back the period that
// an invoice paid for once all of the invoice has gone back. refund.Refunds is the reference of the payment, which must
// have a record. It is a no-op if that is stored.
func (p *Payments) RecordInvoiceRefund(
	ctx context.Context, order licensing.Order, of licensing.PaymentKind, refund licensing.Payment,
) error {
	_, err := admitted(ctx, p.core, order.Owner, func(node.Place) (none struct{}, err error) {
		for range invoiceRefundTries {
			if err = p.recordInvoiceRefund(ctx, order, of, refund); !errors.Is(err, licensing.ErrInvoicesChanged) {
				break
			}
		}
		switch {
		case errors.Is(err, licensing.ErrRefundClosed):
			return none, nil
		case errors.Is(err, licensing.ErrInvoicesChanged):
			err = licensing.ErrUnavailable
		}
		return none, err
	})
	return err
}

func (p *Payments) recordInvoiceRefund(
	ctx context.Context, order licensing.Order, of licensing.PaymentKind, refund licensing.Payment,
) error {
	stored, err := p.readOrder(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return err
	}
	records, err := p.paymentsOf(ctx, &stored)
	if err != nil {
		return err
	}
	ref := licensing.OrderRef(stored.Owner, stored.OrderNo)
	invoice := licensing.PaymentRef(stored.Owner, refund.Provider, refund.Refunds)
	var noted licensing.Result
	steps := []node.Step{
		{Ref: refund.Ref(stored.Owner), Cmd: licensing.NoteInvoiceRefund{Refund: refund}},
		{Ref: invoice, After: func(before licensing.Result) licensing.Command {
			noted = before
			return licensing.RefundInvoice{Back: noted.Back()}
		}},
		{Ref: ref, After: func(returned licensing.Result) licensing.Command {
			end, paid := stored.PaidEndOf(records, refund.Refunds), returned.Refund()
			switch {
			case of == licensing.KindOfSecond: // which pays for no period
				end = stored.PaidEnd
			case !paid.FullyReturned() && paid.PeriodEnd.After(end):
				end = paid.PeriodEnd
			}
			return licensing.CountInvoiceRefund{
				Back: returned.Back(), Invoices: stored.Invoices, Refunds: stored.InvoiceRefunds, PaidEnd: end,
				Refund: noted.Refund(), Invoice: paid,
			}
		}},
	}
	if !stored.LicenseKey.IsZero() && of == licensing.KindOfInvoice {
		steps = append(steps, node.Step{Ref: licensing.LicenseRef(stored.LicenseKey),
			After: func(counted licensing.Result) licensing.Command {
				return licensing.ReturnPeriod{
					From: stored.PaidUntil(stored.PaidEnd), To: stored.PaidUntil(counted.Order().PaidEnd),
				}
			}})
	}
	_, err = p.engine.LockAndSwap(ctx, steps...)
	return err
}

// paymentsOf returns all records of an order's payments.
func (p *Payments) paymentsOf(ctx context.Context, order *licensing.Order) (all []licensing.Payment, err error) {
	for page := clamp(store.Page{Limit: store.MaxListPage}); ; {
		list, err := p.cfg.Queries.ListPayments(ctx, order.Owner, order.OrderNo, page)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if page.Before = list.Next; list.Next == "" {
			return all, nil
		}
	}
}
