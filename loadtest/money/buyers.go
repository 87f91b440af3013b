package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"licet/client"
	"licet/internal/fakestripe"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
)

// shop sells a product. Its buyers pay at Stripe, or pay the shop itself.
type shop struct {
	trial.Tally
	desk    *client.Client
	browser *stage.Browser
	fake    *fakestripe.Fake
	life    time.Duration  // of an order
	late    sync.WaitGroup // of buyers who wait until their order has expired
}

// The products: one is paid once, the other ones are paid each month.
const (
	productID = "editor"
	cloudID   = "cloud"
	plusID    = "cloud-plus"
)

// grace is the time between the end of the paid period and the end of the license of a subscription.
const grace = 3 * 24 * time.Hour

func (s *shop) open(ctx context.Context) error {
	_, err := s.desk.Products.Put(ctx, productID, client.ProductTerms{Name: "Editor", MaxDevices: new(3)})
	if err != nil {
		return err
	}
	for _, id := range []string{cloudID, plusID} {
		_, err = s.desk.Products.Put(ctx, id, client.ProductTerms{Name: id,
			Billing: &client.Billing{Interval: "P1M", Grace: "P3D"}})
		if err != nil {
			return err
		}
	}
	return nil
}

// play lets a buyer act. Buyers who pay late go on after play has returned, until run ends; see shop.late.
func (s *shop) play(ctx, run context.Context, b *buyer) {
	if !s.order(ctx, b) {
		return
	}
	switch b.fate {
	case leaves:
		return
	case paysOutside:
		s.payOutside(ctx, b)
		return
	case paysTwice:
		s.pressTwice(ctx, b)
	default:
		b.checkout = s.press(ctx, b)
	}
	switch {
	case b.checkout == "":
		return // the order has expired, or the reason is recorded
	case b.fate.subscribes():
		s.subscribe(ctx, b)
		return
	}
	var racing sync.WaitGroup
	switch b.fate {
	case cancels:
		s.cancel(ctx, b)
	case races:
		racing.Go(func() { s.cancel(ctx, b) })
	case paysBoth, paysBothAndWins, paysBothAndLoses:
		s.payOutside(ctx, b)
	case paysLate:
		s.late.Go(func() {
			rig.Rest(run, s.life+time.Second)
			s.pay(b, fakestripe.CardPays)
			s.comeBack(run, b)
		})
		return
	}
	s.pay(b, cmp.Or(cards[b.fate], fakestripe.CardPays))
	racing.Wait()
	switch b.fate {
	case paysSecondCard:
		s.pay(b, fakestripe.CardPays)
	case paysProven, provesNothing:
		_ = s.fake.Authenticate(b.checkout, b.fate == paysProven)
	case paysAndReturns, returnsLater:
		s.giveBack(ctx, b, b.amount)
		return
	case returnsParts:
		s.giveBack(ctx, b, b.price.step, 2*b.price.step)
		return
	case paysBothAndWins, paysBothAndLoses:
		s.dispute(b)
	case returnsAndDisputes:
		s.giveBack(ctx, b, b.price.step)
		s.comeBackAndDispute(ctx, b)
		return
	case disputes, winsDispute, losesDispute, losesLater:
		s.comeBackAndDispute(ctx, b)
		return
	}
	s.comeBack(ctx, b)
}

// cards are Stripe's test numbers that buyers pay with first. All others pay with a card that pays.
var cards = map[fate]string{
	paysSecondCard: fakestripe.CardDeclined,
	hasNoFunds:     fakestripe.CardNoFunds,
	paysProven:     fakestripe.CardAuthentication,
	provesNothing:  fakestripe.CardAuthentication,
	paysBank:       fakestripe.BankPays,
	bankFails:      fakestripe.BankFails,
	returnsLater:   fakestripe.CardRefundPending,
}

// order makes the order of a buyer, and reports whether that worked.
func (s *shop) order(ctx context.Context, b *buyer) bool {
	in := client.NewOrder{ProductID: productID, Amount: b.amount, Currency: b.price.currency, Quantity: b.quantity,
		BuyerEmail: fmt.Sprintf("buyer-%d@example.com", b.n)}
	if b.fate.subscribes() {
		in.ProductID = cloudID
	}
	if b.fate == paysOutside {
		in.PaymentProvider = "outside"
	}
	made, err := s.desk.Orders.Create(ctx, in, client.IdempotencyKey(fmt.Sprintf("buyer-%d", b.n)))
	if !s.Done("orders made", b, err) {
		return false
	}
	b.order, b.payURL = made.OrderNo, made.PayURL
	return true
}

// press presses Pay, and returns the id of the checkout at Stripe; empty if the buyer can't pay.
func (s *shop) press(ctx context.Context, b *buyer) (checkout string) {
	if b.payURL == "" {
		s.Did("orders that expired before the buyer came")
		return ""
	}
	to, err := s.browser.Send(ctx, b.payURL, "pay")
	var page *stage.PageError
	switch id, atStripe := strings.CutPrefix(to, s.fake.URL); {
	case err == nil && atStripe:
		s.Did("checkouts at Stripe")
		return path.Base(id)
	case err == nil, errors.As(err, &page) && page.Status < http.StatusInternalServerError:
		s.Did("orders that expired before the buyer pressed Pay")
	default:
		s.Done("checkouts at Stripe", b, err)
	}
	return ""
}

// pressTwice presses Pay on two nodes at once, which must lead to one checkout.
func (s *shop) pressTwice(ctx context.Context, b *buyer) {
	var checkouts [2]string
	var group sync.WaitGroup
	for at := range checkouts {
		group.Go(func() { checkouts[at] = s.press(stage.Toward(ctx, b.n+at), b) })
	}
	group.Wait()
	b.checkout = checkouts[0]
	if checkouts[0] == "" {
		b.checkout = checkouts[1]
	} else if checkouts[1] != "" && checkouts[0] != checkouts[1] {
		s.Problem("%v: there are two checkouts, %v", b, checkouts)
	}
}

// pay tries to pay at Stripe. What comes of it is in the ledger of the fake.
func (s *shop) pay(b *buyer, with string) {
	switch err := s.fake.Pay(b.checkout, with); {
	case errors.Is(err, fakestripe.ErrNotOpen):
		s.Did("payments at Stripe: too late")
	case errors.Is(err, fakestripe.ErrDeclined):
		s.Did("payments at Stripe: declined")
	case errors.Is(err, fakestripe.ErrAuthenticate):
		s.Did("payments at Stripe: authentication")
	case err == nil:
		s.Did("payments at Stripe")
	}
}

// cancel cancels an order. A payment may have been faster.
func (s *shop) cancel(ctx context.Context, b *buyer) {
	_, err := s.desk.Orders.Cancel(ctx, b.order, "", client.IdempotencyKey(fmt.Sprintf("cancel-%d", b.n)))
	if trial.CodeOf(err) == 40902 {
		s.Did("cancellations that came too late")
		return
	}
	s.Done("cancellations", b, err)
}

// giveBack refunds parts of an order once it is paid. The buyer opens the pay page, so no callback need have come.
func (s *shop) giveBack(ctx context.Context, b *buyer, parts ...int64) {
	if !s.opensPayPage(ctx, b) {
		return
	}
	for n, part := range parts {
		if !s.refund(ctx, b, part, client.IdempotencyKey(fmt.Sprintf("refund-%d-%d", b.n, n))) {
			return
		}
		b.refunded += part
	}
	if b.fate == endsEarly {
		b.status = "canceled" // once all of the first payment is back
	}
}

// refund refunds a part of an order, or all of it, and reports whether the service has promised that.
func (s *shop) refund(ctx context.Context, b *buyer, part int64, key client.CallOption) bool {
	return s.insist(ctx, b, "refunds", func() (err error) {
		if part == b.amount {
			_, err = s.desk.Orders.Refund(ctx, b.order, "It does not run.", key)
		} else {
			_, err = s.desk.Orders.RefundPart(ctx, b.order, part, "Paid too much.", key)
		}
		return err
	})
}

// insist asks the service for something that the service asks Stripe for, again if Stripe fails. It reports whether the
// service has promised that.
func (s *shop) insist(ctx context.Context, b *buyer, what string, ask func() error) bool {
	for until := time.Now().Add(stage.Patience); ; rig.Rest(ctx, time.Second) {
		err := ask()
		switch code := trial.CodeOf(err); {
		case code == 40902:
			s.Did(what + " of orders that were not known to be paid")
			return false
		case code == 50200 && time.Now().Before(until): // Stripe has failed
			s.Did(what + " asked for again")
		default:
			return s.Done(what, b, err)
		}
	}
}

// payOutside records a payment at the shop, and records it again.
func (s *shop) payOutside(ctx context.Context, b *buyer) {
	b.outside = fmt.Sprintf("INV-%d", b.n)
	for range 2 {
		_, err := s.desk.Orders.RecordPayment(ctx, b.order, client.OutsidePayment{Reference: b.outside})
		s.Done("payments recorded by the shop", b, err)
	}
}

// comeBack opens the pay page again, as some buyers do whom Stripe sends back.
func (s *shop) comeBack(ctx context.Context, b *buyer) {
	if b.comes {
		s.opensPayPage(ctx, b)
	}
}

// opensPayPage lets a buyer open the pay page again, and reports whether that worked.
func (s *shop) opensPayPage(ctx context.Context, b *buyer) bool {
	_, err := s.browser.Open(ctx, b.payURL)
	return s.Done("buyers who came back to the pay page", b, err)
}

// callbacks is how many callbacks of the fake are delayed, doubled and dropped.
func callbacks(drop, hide int) fakestripe.Sending {
	return fakestripe.Sending{MaxDelay: 2 * time.Second, Double: 200, Drop: drop, Hide: hide, Tries: 30,
		Pause: time.Second}
}

// faults is how many requests of the nodes the fake fails.
var faults = fakestripe.Faults{Busy: 20, BadGateway: 5, Before: 10, After: 10, Lost: 10}
