package service

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node/store"
)

// Payments offers the use cases of all payments but those through an order's checkout: their records, refunds of
// invoices and of second payments, disputes, and reports.
type Payments struct {
	*core
	orders *Orders

	reports     *fair.Places[licensing.Owner] // see ReportSales
	reportsShed prometheus.Counter            // refusals
}

func newPayments(c *core, orders *Orders) *Payments {
	return &Payments{
		core: c, orders: orders,
		reports:     fair.New[licensing.Owner](fair.Config{Places: reportsAtOnce, Each: 1}),
		reportsShed: c.cfg.Metrics.CommandsShed.WithLabelValues("reports"),
	}
}

// unlistedPayment is the position of the payment of an order that an older build has recorded, without an entry in the
// listing of the order's payments. It comes after all entries, which begin with a time.
const unlistedPayment store.Position = "\x00"

// ListPayments lists the records of an order's payments.
func (p *Payments) ListPayments(
	ctx context.Context, owner licensing.Owner, orderNo string, page store.Page,
) (list store.List[licensing.Payment], err error) {
	if !licensing.ValidOrderNo(orderNo) {
		return list, licensing.ErrOrderNotFound
	}
	return admittedToList(ctx, p.core, owner, func() (list store.List[licensing.Payment], err error) {
		order, err := p.readOrder(ctx, owner, orderNo)
		if err != nil {
			return list, err
		}
		page = clamp(page)
		if page.Before != unlistedPayment {
			list, err = p.cfg.Queries.ListPayments(ctx, owner, orderNo, page)
		}
		if err != nil || list.Next != "" || !order.PaymentUnlisted() {
			return list, err
		}
		if len(list.Items) == page.Limit {
			list.Next = unlistedPayment
			return list, nil
		}
		payment, err := p.readUnlisted(ctx, &order)
		list.Items = append(list.Items, payment)
		return list, err
	})
}

// readUnlisted returns the payment of an order that is not in the listing: its record, or what the order says of it.
func (p *Payments) readUnlisted(ctx context.Context, order *licensing.Order) (licensing.Payment, error) {
	ref := licensing.PaymentRef(order.Owner, order.PaidThrough(), order.Payment)
	loaded, err := p.cfg.Records.Load(ctx, store.Want{Ref: ref})
	if err != nil {
		return licensing.Payment{}, err
	}
	if payment := loaded[0].Record.Payment; payment != nil {
		return *payment, nil
	}
	return licensing.Payment{
		OrderNo: order.OrderNo, Provider: order.PaidThrough(), Reference: order.Payment, Amount: order.Amount,
		Currency: order.Currency, PaidAt: order.PaidAt, RecordedAt: order.PaidAt,
	}, nil
}
