package service

import (
	"context"
	"errors"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

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
			return licensing.RefundInvoice{Back: noted.Back}
		}},
		{Ref: ref, After: func(returned licensing.Result) licensing.Command {
			end, paid := stored.PaidEndOf(records, refund.Refunds), returned.Refund()
			switch {
			case of == licensing.KindOfSecond: // which pays for no period
				end = stored.PaidEnd
			case !paid.Whole() && paid.PeriodEnd.After(end):
				end = paid.PeriodEnd
			}
			return licensing.CountInvoiceRefund{
				Back: returned.Back, Invoices: stored.Invoices, Refunds: stored.InvoiceRefunds, PaidEnd: end,
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
