package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/payment"
)

// orderPayment is a record of an order's payments as responses show it.
type orderPayment struct {
	Type       string          `json:"type"`
	Reference  string          `json:"reference"`
	Provider   string          `json:"payment_provider"`
	Status     string          `json:"status"`
	Amount     int64           `json:"amount"`
	Currency   string          `json:"currency"`
	Fee        *int64          `json:"fee"`
	PaidAt     timestamp       `json:"paid_at"`
	RecordedAt timestamp       `json:"recorded_at"`
	RecordedBy licensing.Actor `json:"recorded_by"`
}

// The types of the records of payments, and what has become of them.
const (
	typePayment   = "payment"
	typeRefund    = "refund"
	typeInvoice   = "invoice"   // of a subscription
	typeSecond    = "second"    // payment of an order that was paid already: it goes back
	typeUnmatched = "unmatched" // payment: it is of another amount or currency than the order
	typeDispute   = "dispute"   // its status is open, won or lost

	paymentSucceeded = "succeeded"
	paymentPending   = "pending"
	paymentFailed    = "failed"
)

func paymentAnswer(p *licensing.Payment) orderPayment {
	answer := orderPayment{
		Type:       typePayment,
		Reference:  p.Reference,
		Provider:   string(p.Provider),
		Status:     paymentSucceeded,
		Amount:     p.Amount,
		Currency:   p.Currency,
		Fee:        p.Fee,
		PaidAt:     timestamp(p.PaidAt),
		RecordedAt: timestamp(p.RecordedAt),
		RecordedBy: p.By,
	}
	switch p.Kind {
	case licensing.KindOfRefund, licensing.KindOfInvoiceRefund:
		answer.Type = typeRefund
	case licensing.KindOfInvoice:
		answer.Type = typeInvoice
	case licensing.KindOfSecond:
		answer.Type = typeSecond
	case licensing.KindOfUnmatched:
		answer.Type = typeUnmatched
	case licensing.KindOfDispute:
		answer.Type, answer.Status = typeDispute, string(p.State)
	}
	switch p.State {
	case licensing.PaymentPending:
		answer.Status = paymentPending
	case licensing.PaymentFailed:
		answer.Status = paymentFailed
	}
	if p.By == "" {
		answer.RecordedBy = licensing.Provider
	}
	return answer
}

// paymentQuery asks for a page of the records of an order's payments.
type paymentQuery struct {
	orderPath
	pageQuery
}

func (q *paymentQuery) check(c *checks) {
	q.list(c, "payments", q.OrderNo.value)
	q.checkPage(c)
}

type paymentList struct {
	Payments []orderPayment `json:"payments"`
	Next     *string        `json:"next_cursor"`
}

// listPayments pages through the records of an order's payments.
func (s orderRoutes) listPayments(ctx context.Context, c *call, q paymentQuery) (paymentList, error) {
	list, err := s.cfg.Node.ListPayments(ctx, c.owner(), q.OrderNo.value, q.page)
	if err != nil {
		return paymentList{}, err
	}
	return paymentList{answers(list.Items, paymentAnswer), q.formatCursor(list.Next)}, nil
}

// reportRoutes are the functions of the routes of reports.
type reportRoutes struct{ *Server }

// salesQuery asks for a report of sales.
type salesQuery struct {
	From      param `query:"from"`
	To        param `query:"to"`
	By        param `query:"by"`
	ProductID param `query:"product_id"`

	ask service.SalesRequest
}

func (q *salesQuery) check(c *checks) {
	span := &q.ask.Span
	span.From, span.To = c.reportEnd("from", q.From), c.reportEnd("to", q.To)
	switch days := 24 * time.Hour * licensing.MaxReportDays; {
	case span.From.IsZero() || span.To.IsZero():
	case !span.From.Before(span.To):
		c.add("to", "must be later than from")
	case span.To.Sub(span.From) > days:
		c.add("to", fmt.Sprintf("must be at most %d days later than from: ask for a shorter span, or export the "+
			"orders with licet orders export", licensing.MaxReportDays))
	}
	var of pageQuery
	of.productID(c, q.ProductID)
	of.oneOf(c, "by", q.By, words(licensing.ReportSteps()))
	q.ask.Step, q.ask.ProductID = licensing.ByMonth, q.ProductID.value
	if q.By.given {
		q.ask.Step = licensing.ReportStep(q.By.value)
	}
}

// reportEnd checks an end of the span of a report.
func (c *checks) reportEnd(field string, in param) time.Time {
	at := c.momentOrDay(field, text(in))
	if c.limits != nil {
		limits := c.limits[field]
		limits.Required = true
		c.limits[field] = limits
	} else if !in.given {
		c.add(field, problemRequired)
	}
	return at
}

// salesReport is the sum of payments and refunds in a span of time.
type salesReport struct {
	From         timestamp            `json:"from"`
	To           timestamp            `json:"to"`
	By           licensing.ReportStep `json:"by"`
	ProductID    *string              `json:"product_id"`
	Totals       []salesTotal         `json:"totals"`
	Periods      []salesPeriod        `json:"periods"`
	Revision     int64                `json:"revision"`
	AsOf         timestamp            `json:"as_of"`
	CompleteFrom timestamp            `json:"complete_from"`
	Unreadable   int                  `json:"unreadable"`
	AccountID    string               `json:"account_id"`
	Mode         licensing.Mode       `json:"mode"`
}

// salesTotal is the sum of all payments and refunds in one currency.
type salesTotal struct {
	Currency string `json:"currency"`
	Payments int64  `json:"payments"`
	Refunds  int64  `json:"refunds"`
	Gross    int64  `json:"gross"`
	Refunded int64  `json:"refunded"`
	Net      int64  `json:"net"`
}

// salesPeriod is the sum of the payments and refunds of a day or a month in one currency.
type salesPeriod struct {
	Period string `json:"period"`
	salesTotal
}

func salesTotalAnswer(s *licensing.Sales) salesTotal {
	return salesTotal{s.Currency, s.Payments, s.Refunds, s.Gross, s.Refunded, s.Net()}
}

// reportSales sums the caller's payments and refunds.
func (s reportRoutes) reportSales(ctx context.Context, c *call, q salesQuery) (salesReport, error) {
	r, err := s.cfg.Node.ReportSales(ctx, c.owner(), q.ask)
	if err != nil {
		return salesReport{}, err
	}
	return salesReport{
		From: timestamp(q.ask.Span.From), To: timestamp(q.ask.Span.To), By: q.ask.Step,
		ProductID: orNull(q.ask.ProductID),
		Totals:    answers(r.Totals(), salesTotalAnswer),
		Periods: answers(r.Periods(), func(p *licensing.SalesPeriod) salesPeriod {
			return salesPeriod{p.Period, salesTotalAnswer(&p.Sales)}
		}),
		Revision: r.Revision, AsOf: timestamp(r.AsOf), CompleteFrom: timestamp(r.Complete), Unreadable: r.Unreadable,
		AccountID: c.owner().AccountID, Mode: c.owner().Mode,
	}, nil
}

// paySandbox pays an order of test mode without a buyer.
func (s orderRoutes) paySandbox(ctx context.Context, c *call, in orderPath) (order, error) {
	return s.play(ctx, c, in, payment.PlayPay)
}

// sandboxPlay plays something about an order of test mode.
type sandboxPlay struct {
	orderPath
	Action text `json:"action"`
}

func (in *sandboxPlay) check(c *checks) {
	names := payment.PlayNames()
	switch {
	case c.describe("action", Limits{Required: true, Enum: names}):
	case !in.Action.given:
		c.add("action", problemRequired)
	case !slices.Contains(names, in.Action.value):
		c.add("action", "must be one of "+strings.Join(names, ", "))
	}
}

// playInSandbox plays what a buyer or a bank does about an order of test mode.
func (s orderRoutes) playInSandbox(ctx context.Context, c *call, in sandboxPlay) (order, error) {
	return s.play(ctx, c, in.orderPath, payment.Play(in.Action.value))
}

func (s orderRoutes) play(ctx context.Context, c *call, in orderPath, play payment.Play) (order, error) {
	o, err := s.cfg.Node.Order(ctx, c.owner(), in.OrderNo.value)
	if err != nil {
		return order{}, err
	}
	o, err = s.cfg.Desk.Play(ctx, o, play)
	return s.changedOrder(ctx, c, &o, false, err)
}
