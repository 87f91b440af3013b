package main

import (
	"context"
	"errors"
	"fmt"

	"licet/client"
	"licet/internal/fakestripe"
)

// disputed is a dispute of a payment.
type disputed struct {
	id, state   string // open, won or lost
	amount, fee int64
	// payment is the disputed payment at Stripe. further reports that it is that of an invoice, or a second payment.
	payment string
	further bool
}

func (d *disputed) String() string {
	if d == nil {
		return "none"
	}
	return fmt.Sprintf("%s: %s, of %d, with a fee of %d", d.id, d.state, d.amount, d.fee)
}

// equal reports whether a dispute is recorded as the bank has it.
func (d *disputed) equal(recorded *disputed) bool {
	if d == nil || recorded == nil {
		return d == recorded
	}
	as := *d
	as.payment, as.further = "", false // which the record does not show
	return as == *recorded
}

// held returns how much of the payment a bank holds that has not decided; nothing without a dispute.
func (d *disputed) held() int64 {
	if d != nil && d.state == "open" {
		return d.amount
	}
	return 0
}

// lost returns how much of the payment the shop has lost; nothing without a dispute.
func (d *disputed) lost() int64 {
	if d != nil && d.state == "lost" {
		return d.amount
	}
	return 0
}

// comeBackAndDispute lets a buyer dispute the payment. The buyer opens the pay page before, as the service answers
// callbacks about disputes of payments that it does not know.
func (s *shop) comeBackAndDispute(ctx context.Context, b *buyer) {
	if s.opensPayPage(ctx, b) {
		s.dispute(b)
	}
}

// dispute lets a buyer dispute the payment in the checkout, or the latest invoice, and lets the bank decide.
func (s *shop) dispute(b *buyer) {
	payment := s.fake.PaymentOf(b.checkout)
	if b.fate == winsRenewal || b.fate == losesRenewal {
		for _, e := range s.fake.Ledger() {
			if e.OrderNo == b.order {
				payment = e.Payment
			}
		}
	}
	var err error
	if b.dispute, err = s.fake.Dispute(payment); err != nil {
		return // the payment came too late, or a second payment went back before
	}
	s.Did("disputes")
	switch b.fate {
	case disputes:
	case losesDispute, losesRenewal, paysBothAndLoses:
		s.fake.Decide(b.dispute, true)
	case endsByDispute:
		b.status = "canceled"
		s.fake.Decide(b.dispute, false)
	default:
		s.fake.Decide(b.dispute, false)
	}
}

// reverse lets the bank decide for the shop, after the service knew that buyers had won. It returns the disputes'
// buyers.
func (s *scene) reverse(ctx context.Context) (reversed []*buyer, err error) {
	for _, b := range s.buyers {
		if b.fate != losesLater || b.dispute == "" {
			continue
		}
		now, failed := s.shop.desk.Orders.Get(ctx, b.order)
		if err = errors.Join(err, failed); failed == nil && now.Status == "refunded" { // else the audit names the order
			s.fake.Decide(b.dispute, true)
			b.reversed, reversed = true, append(reversed, b)
		}
	}
	return reversed, err
}

// disputeOf returns the dispute among the records of an order; nil: there is none.
func disputeOf(payments []client.Payment) (d *disputed) {
	for i := range payments {
		if p := &payments[i]; p.Type == "dispute" {
			d = &disputed{id: p.Reference, state: p.Status, amount: p.Amount}
			if p.Fee != nil {
				d.fee = *p.Fee
			}
		}
	}
	return d
}

// add adds a movement of the ledger to a dispute. A reversal says nothing new: the state does.
func (d *disputed) add(e *fakestripe.Entry, unit int64) {
	d.id, d.payment, d.fee = e.Object, e.Payment, d.fee+e.Fee/unit
	if e.Kind == "dispute" {
		d.amount -= e.Amount / unit
	}
}
