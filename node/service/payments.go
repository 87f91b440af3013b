package service

import (
	"context"

	"licet/licensing"
	"licet/node/store"
)

// unlistedPayment is the position of the payment of an order that an older build has recorded, without an entry in the
// listing of the order's payments. It comes after all entries, which begin with a time.
const unlistedPayment store.Position = "\x00"

// ListPayments lists the records of an order's payments.
func (o *Orders) ListPayments(
	ctx context.Context, owner licensing.Owner, orderNo string, page store.Page,
) (list store.List[licensing.Payment], err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return list, licensing.ErrOrderNotFound
	}
	return admittedToList(ctx, o.core, owner, func() (list store.List[licensing.Payment], err error) {
		order, err := o.readOrder(ctx, owner, orderNo)
		if err != nil {
			return list, err
		}
		page = clamp(page)
		if page.Before != unlistedPayment {
			list, err = o.cfg.Queries.ListPayments(ctx, owner, orderNo, page)
		}
		if err != nil || list.Next != "" || !order.PaymentUnlisted() {
			return list, err
		}
		if len(list.Items) == page.Limit {
			list.Next = unlistedPayment
			return list, nil
		}
		payment, err := o.readUnlisted(ctx, &order)
		list.Items = append(list.Items, payment)
		return list, err
	})
}

// readUnlisted returns the payment of an order that is not in the listing: its record, or what the order says of it.
func (o *Orders) readUnlisted(ctx context.Context, order *licensing.Order) (licensing.Payment, error) {
	ref := licensing.PaymentRef(order.Owner, order.PaidThrough(), order.Payment)
	loaded, err := o.cfg.Records.Load(ctx, store.Want{Ref: ref})
	if err != nil {
		return licensing.Payment{}, err
	}
	if p := loaded[0].Record.Payment; p != nil {
		return *p, nil
	}
	return licensing.Payment{
		OrderNo: order.OrderNo, Provider: order.PaidThrough(), Reference: order.Payment, Amount: order.Amount,
		Currency: order.Currency, PaidAt: order.PaidAt, RecordedAt: order.PaidAt,
	}, nil
}
