package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node"
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

// OutsidePayment is a payment that a shop has received itself. The caller has validated the fields.
type OutsidePayment struct {
	Reference string    // the shop's own; no two orders of an owner have the same
	Amount    *int64    // nil: the order's amount
	PaidAt    time.Time // zero: now
	By        licensing.Actor
	Once      *node.Once // nil: the request came without an Idempotency-Key
}

// RecordPayment records that a shop has received the payment of an order, and issues the license like any payment.
// Recording the same payment again is a no-op.
//
// With in.Once, repeating the request returns the order as it is now, or the refusal of the first request, and replayed
// is true.
func (p *Payments) RecordPayment(
	ctx context.Context, owner licensing.Owner, orderNo string, in OutsidePayment,
) (order licensing.Order, replayed bool, err error) {
	ref := licensing.OrderRef(owner, orderNo)
	run := func(_ node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
		var wants []store.Want
		if licensing.ValidOrderNo(orderNo) {
			wants = append(wants, store.Want{Ref: ref})
		}
		loaded, err := p.engine.LoadWithClaim(ctx, claim, wants...)
		switch {
		case err != nil:
			return licensing.Order{}, claim.Replayed(), err
		case claim.Replayed():
			return p.orders.claimedOrder(ctx, owner, claim.Earlier)
		case len(loaded) == 0 || loaded[0].Record.Order == nil:
			return licensing.Order{}, false, licensing.ErrOrderNotFound
		}
		if err := p.orders.RefuseLicenses(ctx, loaded[0].Record.Order); err != nil {
			return licensing.Order{}, false, err
		}
		claim.Effect.OrderNo = orderNo
		result, err := p.recordOutside(ctx, claim, loaded[0].Record.Order, in)
		if err == nil && claim.Replayed() {
			return p.orders.claimedOrder(ctx, owner, claim.Earlier)
		}
		return p.issueNow(ctx, result.Order()), claim.Replayed(), err
	}
	return idempotent(ctx, p.core, owner, in.Once, nil, run)
}

// recordOutside stores the payment of an order, its record and the license in one transaction.
func (p *Payments) recordOutside(
	ctx context.Context, claim *node.Claim, order *licensing.Order, in OutsidePayment,
) (licensing.Result, error) {
	pay, err := p.orders.newPayment(ctx, order)
	if err != nil {
		return licensing.Result{}, err
	}
	pay.Provider, pay.Payment = licensing.ProviderOutside, in.Reference
	pay.PaidAt, pay.By = in.PaidAt, in.By
	paying := func(pay licensing.PayOrder) licensing.Command {
		return licensing.PayOutside{PayOrder: pay, Amount: in.Amount}
	}
	return p.orders.payRecorded(ctx, claim, order, pay, paying)
}

// payRecorded is payTogether with the record of the payment.
func (o *Orders) payRecorded(
	ctx context.Context, claim *node.Claim, order *licensing.Order, pay licensing.PayOrder,
	paying func(licensing.PayOrder) licensing.Command,
) (licensing.Result, error) {
	record := licensing.PaymentRef(order.Owner, pay.Provider, pay.Payment)
	add := node.Step{Ref: record, Then: func(paid licensing.Result) licensing.Command {
		return licensing.AddPayment{
			Order: paid.Order(), Provider: pay.Provider, Payment: pay.Payment, By: pay.By, Fee: pay.Fee,
		}
	}}
	return o.engine.WithRecordLock(ctx, record, func(ctx context.Context) (licensing.Result, error) {
		return o.payTogether(ctx, claim, order, pay, paying, add)
	})
}
