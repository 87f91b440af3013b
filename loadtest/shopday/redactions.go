package main

import (
	"context"
	"strings"

	"licet/client"
)

// night redacts two buyers. One of them pays an order afterwards, and gets a license as
// any other buyer.
func (s *day) night(ctx context.Context) {
	s.progress.Step("night: two buyers are forgotten")
	var open *orderEntry
	others := ""
	for _, o := range s.ledger.allOrders() {
		switch {
		case o.email == "":
		case o.plan.fate == leftUnpaid && open == nil:
			open = o
		case o.license != "":
			others = o.email
		}
	}
	if open == nil || others == "" {
		s.ledger.Problem("there is no buyer to redact")
		return
	}
	if strings.EqualFold(open.email, others) {
		others = ""
	}
	for name, c := range map[string]*client.Client{"till": s.till, "bookkeeper": s.reader} {
		s.refused("a redaction by a key without both scopes", name, 40300, errorOf(c.RedactBuyer(ctx, open.email)))
	}
	s.forget(ctx, open.email)
	s.forgetAtOnce(ctx, others)
	s.sales.pay(ctx, open, 1)
	if l := s.ledger.find(open); l != nil {
		s.support.activate(ctx, l, device(0), 1)
	}
}

// forget redacts a buyer. Sending the request again changes nothing.
func (s *day) forget(ctx context.Context, email string) {
	orders, licenses := s.ledger.forget(email)
	key := client.IdempotencyKey("forget")
	for _, options := range [][]client.CallOption{{key}, {key}, nil} {
		got, err := s.desk.RedactBuyer(ctx, strings.ToUpper(email), options...)
		if !s.done("redactions", "a buyer", err) {
			return
		}
		want := client.Redaction{Complete: true}
		if options != nil {
			want.Orders, want.Licenses = orders, licenses
		}
		s.check(*got == want, "a redaction was answered %+v, and must be %+v", *got, want)
	}
}

// forgetAtOnce redacts a buyer several times at once, from both nodes.
func (s *day) forgetAtOnce(ctx context.Context, email string) {
	if email == "" {
		return
	}
	s.ledger.forget(email)
	atOnce(ctx, 4, func(ctx context.Context, _ int) {
		got, err := s.desk.RedactBuyer(ctx, email)
		s.check(!s.done("redactions at once", "a buyer", err) || got.Complete, "a redaction is not complete")
	})
}

// forget records what must be gone of a buyer.
func (l *ledger) forget(email string) (orders, licenses int) {
	for _, o := range l.allOrders() {
		if !strings.EqualFold(o.email, email) {
			continue
		}
		o.email, o.description, o.metadata, o.reason = "", "", nil, ""
		orders++
		if license := l.find(o); license != nil {
			license.email, license.metadata, license.reason = "", map[string]any{}, ""
			licenses++
		}
	}
	return orders, licenses
}
