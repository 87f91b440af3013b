package handlers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

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
func (c *rules) reportEnd(field string, in param) time.Time {
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

// callbackRoutes are the functions of the routes that payment providers call.
type callbackRoutes struct{ *Server }

const (
	stripeCallbacks = "/v1/callbacks/stripe/"
	// callbackBodyLimit bounds the body of a callback in bytes; see bodyLimit.
	callbackBodyLimit = 512 << 10
	// stripeSignature is the header with the signature of a callback of Stripe.
	stripeSignature = "Stripe-Signature"
)

// stripeCallback names the owner whom Stripe calls about.
type stripeCallback struct {
	readsBody
	AccountID text `path:"account_id" json:"-"`
	Mode      text `path:"mode" json:"-"`
}

// errNoCallbacks does not say which accounts exist.
var errNoCallbacks = &licensing.Error{
	Reason: reasonNotFound, Message: "there is no such account, or Stripe is not its payment provider",
}

// received is the answer to a callback. Providers read only its status.
type received struct {
	Received bool `json:"received"`
}

// stripe takes a callback of Stripe. The body names an object, and is believed in nothing else: the desk asks Stripe
// about the object. The answer comes after the change is stored, so Stripe repeats a callback whose change is not.
//
// A limit refuses only callbacks whose signature is wrong, after the signature was verified. Stripe calls for all
// accounts from the same addresses, and behind a proxy all clients may have one address: so the wrong signatures of one
// account, or of a stranger, must not keep the callbacks of the others out. A node verifies one body at a time, and the
// largest in 0.4 to 1.6 ms for each secret.
func (s callbackRoutes) stripe(ctx context.Context, c *call, in stripeCallback) (received, error) {
	owner := in.owner()
	if !s.cfg.Desk.TakesCallbacks(licensing.ProviderStripe, owner) {
		return received{}, errNoCallbacks
	}
	request := &c.fast.Request
	object, err := s.cfg.Desk.Callback(owner, string(request.Header.Peek(stripeSignature)), request.Body())
	if err != nil {
		return received{}, s.rates.failedAuthentication(c, invalidSignature("the header "+stripeSignature+
			" is missing, wrong or too old: compare the endpoint's signing secret at Stripe with the secret of this "+
			"service"))
	}
	if err := s.rates.count(c, s.rates.limits.Account(owner), errAccountLimited); err != nil {
		return received{}, err
	}
	return received{true}, s.cfg.Desk.Called(ctx, owner, object)
}

func (in *stripeCallback) owner() licensing.Owner {
	return licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
}

// bodyLimit returns the body limit of the request with a head. It is callbackBodyLimit for a callback of Stripe whose
// owner takes callbacks, whose signature may be right, and whose body is not in chunks.
func (s *Server) bodyLimit(h *fasthttp.RequestHeader) int {
	if !bytes.HasPrefix(h.RequestURI(), []byte(stripeCallbacks)) || h.ContentLength() <= bodyLimit {
		return s.table.bodyLimit(h)
	}
	path, _, _ := splitTarget(string(h.RequestURI()))
	account, mode, _ := strings.Cut(strings.TrimPrefix(path, stripeCallbacks), "/")
	owner := licensing.Owner{AccountID: account, Mode: licensing.Mode(mode)}
	if !s.cfg.Desk.Signed(licensing.ProviderStripe, owner, string(h.Peek(stripeSignature))) {
		return bodyLimit
	}
	return callbackBodyLimit
}
