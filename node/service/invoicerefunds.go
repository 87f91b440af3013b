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

// RecordInvoiceRefund stores what has become of a refund of an invoice, and takes back the period that the invoice paid
// for once all of the invoice has gone back. refund.Refunds is the reference of the invoice, which must have a record.
// It is a no-op if that is stored.
func (o *Orders) RecordInvoiceRefund(ctx context.Context, order licensing.Order, refund licensing.Payment) error {
	_, err := admitted(ctx, o.core, order.Owner, func(node.Place) (none struct{}, err error) {
		for range invoiceRefundTries {
			if err = o.recordInvoiceRefund(ctx, order, refund); !errors.Is(err, licensing.ErrInvoicesChanged) {
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

func (o *Orders) recordInvoiceRefund(ctx context.Context, order licensing.Order, refund licensing.Payment) error {
	stored, err := o.readOrder(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return err
	}
	records, err := o.paymentsOf(ctx, &stored)
	if err != nil {
		return err
	}
	ref := licensing.OrderRef(stored.Owner, stored.OrderNo)
	invoice := licensing.PaymentRef(stored.Owner, refund.Provider, refund.Refunds)
	steps := []node.Step{
		{Ref: refund.Ref(stored.Owner), Cmd: licensing.NoteInvoiceRefund{Refund: refund}},
		{Ref: invoice, After: func(noted licensing.Result) licensing.Command {
			return licensing.RefundInvoice{Back: noted.Back}
		}},
		{Ref: ref, After: func(returned licensing.Result) licensing.Command {
			end, paid := stored.PaidEndOf(records, refund.Refunds), returned.Refund
			if !paid.Whole() && paid.PeriodEnd.After(end) {
				end = paid.PeriodEnd
			}
			return licensing.CountInvoiceRefund{
				Back: returned.Back, Invoices: stored.Invoices, Refunds: stored.InvoiceRefunds, PaidEnd: end,
			}
		}},
	}
	if !stored.LicenseKey.IsZero() {
		steps = append(steps, node.Step{Ref: licensing.LicenseRef(stored.LicenseKey),
			After: func(counted licensing.Result) licensing.Command {
				return licensing.ReturnPeriod{
					From: stored.PaidUntil(stored.PaidEnd), To: stored.PaidUntil(counted.Order.PaidEnd),
				}
			}})
	}
	_, err = o.engine.LockAndSwap(ctx, steps...)
	return err
}

// paymentsOf returns all records of an order's payments.
func (o *Orders) paymentsOf(ctx context.Context, order *licensing.Order) (all []licensing.Payment, err error) {
	for page := clamp(store.Page{Limit: store.MaxListPage}); ; {
		list, err := o.cfg.Queries.ListPayments(ctx, order.Owner, order.OrderNo, page)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if page.Before = list.Next; list.Next == "" {
			return all, nil
		}
	}
}
