package payment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
	"licet/payment/stripe"
)

// subscriber is a service in front of a stand-in of Stripe.
type subscriber struct {
	*fixture
	fake     *fakestripe.Fake
	provider payment.Provider
	other    *payment.Desk // of another node
}

const fakeKey = "sk_test_acme0123456789"

func atStripe(t *testing.T, edits ...func(*stripe.Config)) *subscriber {
	t.Helper()
	s := &subscriber{fixture: newFixture(t), fake: fakestripe.New(1)}
	t.Cleanup(s.fake.Close)
	s.fake.AddKey(fakeKey)
	cfg := stripe.Config{
		Secrets: func() stripe.Secrets { return stripe.Secrets{Key: fakeKey} },
		Client:  stripe.NewClient(s.fake.URL),
		Show: func(_ context.Context, o licensing.Order) (stripe.Page, error) {
			return stripe.Page{URL: "https://shop.example/pay/" + o.OrderNo, Product: "Pro"}, nil
		},
		Clock: s.fake.Now,
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	s.provider = stripe.New(cfg)
	s.node, s.desk = s.open(s.store, s.provider)
	_, s.other = s.open(s.fixture.other, s.provider)
	if _, _, err := s.node.PutProduct(s.ctx, licensing.PutProduct{
		ID: "cloud", Owner: owner, Terms: licensing.DefaultTerms(),
		Billing: licensing.Billing{Interval: licensing.Period{Months: 1}, Grace: licensing.Period{Days: 3}},
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// subscribe makes an order that a buyer pays, and returns it as it is then.
func (s *subscriber) subscribe() licensing.Order { return s.subscribeWith(fakestripe.CardPays) }

// subscribeWith is subscribe for a buyer with a card.
func (s *subscriber) subscribeWith(card string) licensing.Order { return s.subscribeAs(card, "EUR") }

// subscribeIn is subscribe in a currency.
func (s *subscriber) subscribeIn(currency string) licensing.Order {
	return s.subscribeAs(fakestripe.CardPays, currency)
}

func (s *subscriber) subscribeAs(card, currency string) licensing.Order {
	s.t.Helper()
	o, _, err := s.node.CreateOrder(s.ctx, owner, service.NewOrder{ProductID: "cloud", Amount: 900, Currency: currency})
	if err == nil {
		_, _, err = s.desk.Pay(s.ctx, o)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	o = s.order(o)
	if err := s.fake.Pay(o.Checkout, card); err != nil {
		s.t.Fatal(err)
	}
	s.called(payment.ObjectCheckout, o.Checkout)
	return s.order(o)
}

func (s *subscriber) order(o licensing.Order) licensing.Order {
	s.t.Helper()
	stored, err := s.node.Order(s.ctx, owner, o.OrderNo)
	if err != nil {
		s.t.Fatal(err)
	}
	return stored
}

func (s *subscriber) license(o licensing.Order) licensing.License {
	s.t.Helper()
	view, err := s.node.License(s.ctx, owner, o.LicenseKey, store.DevicePage{Owner: owner})
	if err != nil {
		s.t.Fatal(err)
	}
	return view.License
}

// called delivers a callback about an object four times, at two nodes at the same time.
func (s *subscriber) called(kind payment.ObjectKind, id string) {
	s.t.Helper()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			desk := s.desk
			if i%2 == 1 {
				desk = s.other
			}
			if err := desk.Called(s.ctx, owner, payment.Object{Kind: kind, ID: id}); err != nil {
				s.t.Error(err)
			}
		})
	}
	group.Wait()
}

// advance moves all clocks.
func (s *subscriber) advance(d time.Duration) {
	s.clock.advance(d)
	s.fake.Advance(d)
}

// payments returns the amounts of the order's payments by kind.
func (s *subscriber) payments(o licensing.Order) map[licensing.PaymentKind][]int64 {
	s.t.Helper()
	list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	amounts := map[licensing.PaymentKind][]int64{}
	for _, p := range list.Items {
		amounts[p.Kind] = append(amounts[p.Kind], p.Amount)
	}
	return amounts
}

// balanced checks the payments of an order against the stand-in's own ledger, and the end of its license.
func (s *subscriber) balanced(what string, o licensing.Order, payments int) licensing.Order {
	s.t.Helper()
	o = s.order(o)
	var sum int64
	count := 0
	for _, amounts := range s.payments(o) {
		for _, amount := range amounts {
			sum += amount
			count++
		}
	}
	if kept := s.fake.Kept(o.OrderNo); sum != kept || count != payments || o.Invoices != payments-1 ||
		o.Paid+o.Invoiced != sum {
		s.t.Errorf("%s: %d payments of %d cents are recorded, want %d; Stripe has %d cents; the order is %+v", what,
			count, sum, payments, kept, o)
	}
	if l := s.license(o); !l.ExpiresAt.Equal(o.PaidEnd.AddDate(0, 0, 3)) {
		s.t.Errorf("%s: the license ends at %s, and is paid until %s", what, l.ExpiresAt, o.PaidEnd)
	}
	return o
}

// TestSubscriptionRenews: the first invoice is the payment of the order. Each further invoice is recorded once, however
// often and in whatever order its callbacks come, and extends the license once.
func TestSubscriptionRenews(t *testing.T) {
	s := atStripe(t)
	o := s.balanced("first payment", s.subscribe(), 1)
	if !o.Subscribed() || o.SubscriptionStatus != licensing.SubscriptionActive || o.CheckoutOpen() {
		t.Errorf("%+v", o)
	}
	for _, id := range s.fake.IDs("invoice") {
		s.called(payment.ObjectInvoice, id)
	}
	s.balanced("callback of the first invoice", o, 1)
	first := o.PaidEnd
	for range 2 {
		s.advance(time.Until(s.order(o).PaidEnd) - s.clock.by() + time.Hour + 31*24*time.Hour)
	}
	invoices := s.fake.IDs("invoice")
	var group sync.WaitGroup
	for i := len(invoices) - 1; i >= 0; i-- {
		group.Go(func() { s.called(payment.ObjectInvoice, invoices[i]) })
	}
	group.Go(func() { s.called(payment.ObjectSubscription, o.Subscription) })
	group.Wait()
	if o = s.balanced("renewals", o, len(invoices)); !o.PaidEnd.After(first.AddDate(0, 1, 0)) || len(invoices) < 3 {
		t.Errorf("%d invoices, paid until %s, at first until %s", len(invoices), o.PaidEnd, first)
	}
	// The shop shortens the license: a late repetition of a callback does not extend it again.
	short := s.node.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
	if _, err := s.node.Do(s.ctx, licensing.LicenseRef(o.LicenseKey), licensing.RenewLicense{
		Target: licensing.Target{Key: o.LicenseKey}, ExpiresAt: short}); err != nil {
		t.Fatal(err)
	}
	s.called(payment.ObjectInvoice, invoices[len(invoices)-1])
	if l := s.license(o); !l.ExpiresAt.Equal(short) {
		t.Errorf("a repeated callback extends the license to %s", l.ExpiresAt)
	}
}

// TestInvoiceFirst: if the callback of the first invoice comes before that of the checkout, it pays the order.
func TestInvoiceFirst(t *testing.T) {
	s := atStripe(t)
	o, _, err := s.node.CreateOrder(s.ctx, owner, service.NewOrder{ProductID: "cloud", Amount: 900, Currency: "EUR"})
	if err == nil {
		_, _, err = s.desk.Pay(s.ctx, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	o = s.order(o)
	if err := s.fake.Pay(o.Checkout, fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	s.called(payment.ObjectInvoice, s.fake.IDs("invoice")[0])
	s.called(payment.ObjectSubscription, s.order(o).Subscription)
	s.called(payment.ObjectCheckout, o.Checkout)
	if o = s.balanced("invoice first", o, 1); !o.Subscribed() {
		t.Errorf("%+v", o)
	}
}

// TestLaterInvoiceFirst: if the callback of a renewal comes first, the payment of the order is still that of the first
// invoice, and the renewal is recorded too.
func TestLaterInvoiceFirst(t *testing.T) {
	s := atStripe(t)
	o, _, err := s.node.CreateOrder(s.ctx, owner, service.NewOrder{ProductID: "cloud", Amount: 900, Currency: "EUR"})
	if err == nil {
		_, _, err = s.desk.Pay(s.ctx, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.fake.Pay(s.order(o).Checkout, fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	s.advance(32 * 24 * time.Hour)
	invoices := s.fake.IDs("invoice")
	s.called(payment.ObjectInvoice, invoices[len(invoices)-1])
	if s.balanced("renewal first", o, 2); len(invoices) != 2 {
		t.Errorf("%d invoices", len(invoices))
	}
}

// TestSubscriptionCallbacksLost: without any callback, the sweep finds the renewals, a failed payment, its later
// success and the end.
func TestSubscriptionCallbacksLost(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	sweep := func(what string, want licensing.SubscriptionStatus, payments int) {
		t.Helper()
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Fatal(err)
		}
		if o = s.balanced(what, o, payments); o.SubscriptionStatus != want {
			t.Errorf("%s: the subscription is %s, want %s", what, o.SubscriptionStatus, want)
		}
	}
	untilEnd := func() time.Duration { return o.PaidEnd.Sub(s.node.Now()) }
	sweep("nothing is due", licensing.SubscriptionActive, 1)
	s.advance(untilEnd() + 32*24*time.Hour)
	sweep("two renewals", licensing.SubscriptionActive, 3)
	s.fake.SetCard(o.Subscription, fakestripe.CardDeclined)
	s.advance(untilEnd() + time.Hour)
	sweep("declined", licensing.SubscriptionPastDue, 3)
	s.fake.SetCard(o.Subscription, fakestripe.CardPays)
	s.advance(4 * 24 * time.Hour)
	sweep("another card", licensing.SubscriptionActive, 4)
	s.fake.SetCard(o.Subscription, fakestripe.CardDeclined)
	for range 4 {
		s.advance(max(untilEnd(), 0) + 5*24*time.Hour)
	}
	sweep("declined to the end", licensing.SubscriptionCanceled, 4)
	if l := s.license(o); !o.AskAt.IsZero() || l.Status(s.node.Now()) != licensing.Expired {
		t.Errorf("in the end: %+v", o)
	}
}

// TestProrationExtendsNothing: the invoice of a change is a payment, and pays for no period. If the callback about such
// an invoice is lost, the callback about the next renewal brings it.
func TestProrationExtendsNothing(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	provider := stripe.New(stripe.Config{
		Secrets: func() stripe.Secrets { return stripe.Secrets{Key: fakeKey} }, Client: stripe.NewClient(s.fake.URL),
		Clock: s.fake.Now,
	})
	change := func(amount int64) {
		t.Helper()
		once := fmt.Sprint("chg_", amount)
		_, err := provider.Change(s.ctx, o, payment.Change{Amount: amount, Prorate: true, Once: once})
		if err != nil {
			t.Fatal(err)
		}
	}
	callback := func() {
		t.Helper()
		invoices := s.fake.IDs("invoice")
		s.called(payment.ObjectInvoice, invoices[len(invoices)-1])
	}
	change(5000)
	callback()
	if now := s.balanced("proration", o, 2); !now.PaidEnd.Equal(o.PaidEnd) {
		t.Errorf("paid until %s, before until %s", now.PaidEnd, o.PaidEnd)
	}
	change(7000)
	s.advance(32 * 24 * time.Hour)
	callback()
	if now := s.balanced("renewal after a lost proration", o, 4); !now.PaidEnd.After(o.PaidEnd) {
		t.Errorf("paid until %s, before until %s", now.PaidEnd, o.PaidEnd)
	}
}

// TestDashboardRefundOfSubscription: a whole refund of the first payment in Stripe's dashboard is recorded, revokes the
// license and ends the subscription, as the same refund by the shop does.
func TestDashboardRefundOfSubscription(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	s.advance(32 * 24 * time.Hour)
	s.calledAboutInvoices()
	refund, err := s.fake.RefundInDashboard(o.Payment, o.Amount)
	if err != nil {
		t.Fatal(err)
	}
	s.called(payment.ObjectRefund, refund)
	if now := s.order(o); now.RefundedAt.IsZero() || now.RefundedAmount() != o.Amount || now.Refunds != 1 ||
		s.license(o).RevokedAt.IsZero() {
		t.Errorf("after the refund: %+v", now)
	}
	if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Fatal(err)
	}
	if now := s.order(o); now.SubscriptionStatus != licensing.SubscriptionCanceled {
		t.Errorf("after the sweep: %+v", now)
	}
	s.verify()
}

// TestRefundOfRenewal: the whole refund of a later invoice in Stripe's dashboard takes back the period that the invoice
// paid for, once. The license does not end before what other invoices pay for, or before an end that the shop has set.
func TestRefundOfRenewal(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	renew := func() (paid licensing.Order, invoice, intent string) {
		t.Helper()
		s.advance(31 * 24 * time.Hour)
		s.calledAboutInvoices()
		list, err := s.node.ListPayments(s.ctx, owner, o.OrderNo, store.Page{Limit: 1})
		if err != nil || list.Items[0].Kind != licensing.KindOfInvoice {
			t.Fatalf("%+v, %v", list, err)
		}
		return s.order(o), list.Items[0].Reference, list.Items[0].ProviderID
	}
	refund := func(intent string, amount int64) string {
		t.Helper()
		id, err := s.fake.RefundInDashboard(intent, amount)
		if err != nil {
			t.Fatal(err)
		}
		s.called(payment.ObjectRefund, id)
		return id
	}
	ends := func(what string, want licensing.Order, returned int64) {
		t.Helper()
		now := s.order(o)
		if l := s.license(o); !now.PaidEnd.Equal(want.PaidEnd) || !l.ExpiresAt.Equal(want.PaidEnd.AddDate(0, 0, 3)) ||
			now.Returned != returned || now.Refunds != 0 {
			t.Errorf("%s: paid until %s, the license ends at %s, %d has gone back; want %s and %d", what, now.PaidEnd,
				l.ExpiresAt, now.Returned, want.PaidEnd, returned)
		}
		s.verify()
	}
	first := s.order(o)
	_, _, intent2 := renew()
	third, _, intent3 := renew()
	refund(intent2, 400)
	ends("a part", third, 400)
	refund(intent2, 500)
	ends("the middle one", third, 900)
	refund(intent3, 900)
	ends("the last one", first, 1800)
	fourth, _, intent4 := renew()
	ends("the next renewal", fourth, 1800)
	set := fourth.PaidEnd.AddDate(0, 0, 20)
	renewal := licensing.RenewLicense{Target: licensing.Target{Key: o.LicenseKey}, ExpiresAt: set}
	if _, err := s.node.Do(s.ctx, licensing.LicenseRef(o.LicenseKey), renewal); err != nil {
		t.Fatal(err)
	}
	refund(intent4, 900)
	if l := s.license(o); !l.ExpiresAt.Equal(set) {
		t.Errorf("the license ends at %s, before the end that the shop has set", l.ExpiresAt)
	}
	s.verify()
}

// TestRefundEndsSubscription: after the refund of an order, a sweep ends its subscription, also if Stripe is down at
// first.
func TestRefundEndsSubscription(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	if _, _, err := s.desk.Refund(s.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
		t.Fatal(err)
	}
	if o = s.order(o); !o.EndDue {
		t.Errorf("%+v", o)
	}
	s.fake.Fail("DELETE", "/v1/subscriptions/"+o.Subscription, fakestripe.Busy, 1)
	_ = s.desk.AskCheckoutsDue(s.ctx)
	for range 3 {
		s.advance(2 * time.Hour)
		if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
			t.Log(err)
		}
	}
	if o = s.order(o); o.EndDue || o.SubscriptionStatus != licensing.SubscriptionCanceled || !o.AskAt.IsZero() {
		t.Errorf("%+v", o)
	}
	s.advance(40 * 24 * time.Hour)
	if n := len(s.fake.IDs("invoice")); n != 1 {
		t.Errorf("the buyer got %d invoices", n)
	}
}

// TestRevocationEndsSubscription: after the license of an order is revoked, a sweep ends the subscription before the
// next payment, also if the node that revoked the license dies before it could note that.
func TestRevocationEndsSubscription(t *testing.T) {
	for name, dies := range map[string]bool{"the node lives": false, "the node dies": true} {
		t.Run(name, func(t *testing.T) {
			s := atStripe(t)
			o := s.subscribe()
			revoke := licensing.RevokeLicense{Target: licensing.Target{Key: o.LicenseKey, Caller: owner}}
			var err error
			if dies {
				_, err = s.node.Do(s.ctx, licensing.LicenseRef(o.LicenseKey), revoke)
			} else {
				change := service.LicenseChange{Key: o.LicenseKey, Command: revoke}
				_, _, err = s.node.ChangeLicense(s.ctx, owner, change)
			}
			if err != nil {
				t.Fatal(err)
			}
			if o = s.order(o); o.EndDue == dies {
				t.Errorf("the end is due: %t", o.EndDue)
			}
			if dies {
				s.advance(o.PaidEnd.Sub(s.node.Now()) - 30*time.Minute)
			}
			if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
				t.Fatal(err)
			}
			if o = s.order(o); o.EndDue || o.SubscriptionStatus != licensing.SubscriptionCanceled {
				t.Errorf("%+v", o)
			}
			s.advance(40 * 24 * time.Hour)
			if n := len(s.fake.IDs("invoice")); n != 1 {
				t.Errorf("the buyer got %d invoices", n)
			}
		})
	}
}

// slow is a provider whose answers about subscriptions wait.
type slow struct {
	payment.Provider
	asked   chan struct{}
	proceed chan struct{}
	once    sync.Once
}

func (p *slow) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := p.Provider.Look(ctx, object)
	if object.Kind == payment.ObjectSubscription {
		p.once.Do(func() {
			close(p.asked)
			<-p.proceed
		})
	}
	return state, err
}

// TestOlderAnswer: an answer that waits while the subscription changes does not replace the newer answer, not even if
// the state before the question is back.
func TestOlderAnswer(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	inner := stripe.New(stripe.Config{
		Secrets: func() stripe.Secrets { return stripe.Secrets{Key: fakeKey} }, Client: stripe.NewClient(s.fake.URL),
		Clock: s.fake.Now,
	})
	waits := &slow{Provider: inner, asked: make(chan struct{}), proceed: make(chan struct{})}
	_, desk := s.open(s.store, waits)
	change := func(c payment.Change) {
		t.Helper()
		if _, err := inner.Change(s.ctx, o, c); err != nil {
			t.Fatal(err)
		}
	}
	change(payment.Change{End: payment.EndOfPeriod})
	done := make(chan error)
	go func() {
		done <- desk.Called(s.ctx, owner, payment.Object{Kind: payment.ObjectSubscription, ID: o.Subscription})
	}()
	<-waits.asked // with an answer that it was asked for by Called itself
	change(payment.Change{Resume: true})
	s.called(payment.ObjectSubscription, o.Subscription)
	close(waits.proceed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if o = s.order(o); !o.CancelAt.IsZero() || o.SubscriptionStatus != licensing.SubscriptionActive {
		t.Errorf("an older answer is recorded: %+v", o)
	}
}

// TestForeignSubscription: an invoice of another subscription that names the order changes nothing.
func TestForeignSubscription(t *testing.T) {
	s := atStripe(t)
	a, b := s.subscribe(), s.subscribe()
	for i, id := range s.fake.IDs("invoice") {
		s.called(payment.ObjectInvoice, id)
		s.balanced(fmt.Sprint("order a, invoice ", i), a, 1)
		s.balanced(fmt.Sprint("order b, invoice ", i), b, 1)
	}
}

// TestLostInvoice: if the callbacks of an invoice are lost, the callback of the next invoice brings both.
func TestLostInvoice(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	for range 2 {
		s.fake.Renew(o.Subscription)
	}
	ids := s.fake.IDs("invoice")
	s.called(payment.ObjectInvoice, ids[len(ids)-1])
	s.balanced("the invoice after a lost one", o, 3)
}
