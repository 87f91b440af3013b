package handlers

import (
	"context"

	"licet/licensing"
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
