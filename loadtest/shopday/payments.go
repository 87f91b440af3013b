package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"licet/client"
	"licet/loadtest/stage"
)

// push opens the pay page, presses a button, and returns the page that follows. A buyer
// who comes too late finds no button, and sends the form of an earlier page.
func (s *sales) push(ctx context.Context, o *orderEntry, action string) (string, error) {
	to, err := s.approach(ctx, o, action)
	if err != nil {
		return "", err
	}
	return s.browser.Press(ctx, to, action)
}

// approach opens the pay page, and returns the address that a button leads to.
func (s *sales) approach(ctx context.Context, o *orderEntry, action string) (string, error) {
	page, err := s.browser.Open(ctx, o.payURL)
	if err != nil {
		return "", err
	}
	to, err := s.browser.Form(page, o.payURL, action)
	if err != nil {
		to = o.payURL // the page was open since before
	}
	return to, nil
}

// pay pays an order, from several places at once if times is more than 1.
func (s *sales) pay(ctx context.Context, o *orderEntry, times int) {
	from := time.Now()
	pages, errs := make([]string, times), make([]error, times)
	atOnce(ctx, times, func(ctx context.Context, i int) {
		pages[i], errs[i] = s.push(ctx, o, "pay")
	})
	for _, err := range errs {
		if !s.done("payments", o.plan.String(), err) {
			return
		}
	}
	s.notePaid(ctx, o, from)
	for _, page := range pages {
		s.checkResult(o, page)
	}
}

// payAgain pays an order that is paid.
func (s *sales) payAgain(ctx context.Context, o *orderEntry) {
	page, err := s.push(ctx, o, "pay")
	if s.done("payments", o.plan.String(), err) {
		s.checkResult(o, page)
	}
	now, err := s.till.Order(ctx, o.number)
	s.check(err == nil && now.Status == statePaid && now.LicenseKey == o.license,
		"%s has another license after it was paid again: %v", o.plan, err)
	_, err = s.push(ctx, o, "cancel")
	var refused *stage.PageError
	s.check(errors.As(err, &refused) && refused.Status == http.StatusConflict,
		"%s is paid, and canceling it on its page gives %v", o.plan, err)
	s.refused("canceling a paid order", o.plan.String(), 40902, errorOf(s.till.CancelOrder(ctx, o.number, "")))
}

// payCanceled pays a canceled order from a page that was opened before. The money must go
// back, and there must be no license.
func (s *sales) payCanceled(ctx context.Context, o *orderEntry) {
	times := 1 + 9*(o.plan.n%2)
	errs := make([]error, times)
	atOnce(ctx, times, func(ctx context.Context, i int) {
		_, errs[i] = s.push(ctx, o, "pay")
	})
	for _, err := range errs {
		if !s.done("payments of canceled orders", o.plan.String(), err) {
			return
		}
	}
	o.paid, o.refunded = true, true
	page, err := s.browser.Open(ctx, o.payURL)
	s.check(err == nil && strings.Contains(page, "Order refunded"),
		"%s was paid after it was canceled, and its page does not tell of a refund: %v", o.plan, err)
	now, err := s.till.Order(ctx, o.number)
	s.check(err == nil && now.Status == stateRefunded && now.LicenseKey == "",
		"%s was paid after it was canceled: %+v, %v", o.plan, now, err)
}

// notePaid looks up an order that has just been paid, and records its license.
func (s *sales) notePaid(ctx context.Context, o *orderEntry, from time.Time) {
	now, err := s.till.Order(ctx, o.number)
	if !s.done("orders paid", o.plan.String(), err) {
		return
	}
	o.late = o.plan.made == morning
	s.check(now.Status == statePaid && now.LicenseKey != "" && now.PayURL == "" && now.Late == o.late,
		"%s is paid, and answered as %s, late %v, with license %q", o.plan, now.Status, now.Late, now.LicenseKey)
	s.check(within(now.PaidAt, from, time.Now()), "%s was paid at %v", o.plan, now.PaidAt)
	s.ledger.issued(o, now.LicenseKey, now.PaidAt)
}

// checkResult checks the page after paying: it shows the license key, or leads to the
// shop, which then shows the key.
func (s *sales) checkResult(o *orderEntry, page string) {
	shown, leadsOn := strings.Contains(page, o.license), strings.Contains(page, `href="`+o.plan.successURL+`"`)
	ok := strings.Contains(page, "Payment received")
	if o.plan.successURL == "" {
		ok = ok && shown
	} else {
		ok = ok && leadsOn && !shown
	}
	s.check(ok, "%s: the page after paying is not right", o.plan)
}

// use activates a new license on the buyer's devices.
func (s *sales) use(ctx context.Context, o *orderEntry, l *licenseEntry) {
	for i := range min(o.plan.devices, l.maxDevices) {
		s.support.activate(ctx, l, device(i), 1+4*(o.plan.n%5/4))
	}
	s.support.validate(ctx, l, device(0))
	s.refused("activating for another product", o.plan.String(), 40304, errorOf(s.program.Activate(ctx,
		client.Activation{LicenseKey: l.key, DeviceID: "elsewhere", ProductID: "another"})))
}
