package stripe_test

import (
	"context"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
	"licet/payment/stripe"
)

const testKey = "sk_test_acme0123456789"

var owner = licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}

// fixture is a provider in front of a fake.
type fixture struct {
	*testing.T
	fake     *fakestripe.Fake
	cfg      stripe.Config
	provider *stripe.Provider
	secrets  stripe.Secrets
	orders   int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, fake: fakestripe.New(1), secrets: stripe.Secrets{Key: testKey}}
	t.Cleanup(f.fake.Close)
	f.fake.AddKey(testKey)
	f.cfg = stripe.Config{
		Secrets: func() stripe.Secrets { return f.secrets },
		Client:  stripe.NewClient(f.fake.URL),
		Show: func(_ context.Context, o licensing.Order) (stripe.Page, error) {
			return stripe.Page{URL: "https://shop.example/pay/" + o.OrderNo + "/token", Product: "Pro"}, nil
		},
		Clock: f.fake.Now,
	}
	f.provider = stripe.New(f.cfg)
	return f
}

// order returns a new unpaid order in its first attempt.
func (f *fixture) order(amount int64, currency string) licensing.Order {
	f.orders++
	now := f.fake.Now().UTC().Truncate(time.Second)
	return licensing.Order{
		OrderNo: licensing.NewOrderNo(owner, ulid(f.orders)), Owner: owner, ProductID: "pro",
		OrderPayment: licensing.OrderPayment{Amount: amount, Currency: currency},
		Description:  "One year of Pro", BuyerEmail: "ann@example.com", CreatedAt: now,
		ExpiresAt: now.Add(24 * time.Hour), Attempt: 1,
	}
}

func ulid(n int) string {
	text := []byte("00000000000000000000000000")
	for i := len(text) - 1; n > 0; i, n = i-1, n/10 {
		text[i] = byte('0' + n%10)
	}
	return string(text)
}

// begin makes the checkout of an order, and stores its id in the order.
func (f *fixture) begin(order *licensing.Order) payment.Step {
	f.Helper()
	step, err := f.provider.Begin(f.Context(), *order)
	if err != nil || step.Checkout == "" {
		f.Fatalf("begin: %+v, %v", step, err)
	}
	order.Checkout, order.CheckoutEnds = step.Checkout, step.EndsAt
	return step
}

// paid returns an order that was paid with a card, and what the provider says about its checkout.
func (f *fixture) paid(amount int64, currency, with string) (licensing.Order, payment.State) {
	f.Helper()
	order := f.order(amount, currency)
	f.begin(&order)
	if err := f.fake.Pay(order.Checkout, with); err != nil {
		f.Fatal(err)
	}
	state := f.look(payment.ObjectCheckout, order.Checkout)
	order.Payment, order.Provider = state.Payment, licensing.ProviderStripe
	return order, state
}

func (f *fixture) look(kind payment.ObjectKind, id string) payment.State {
	f.Helper()
	state, err := f.provider.Look(f.Context(), payment.Object{Kind: kind, ID: id})
	if err != nil {
		f.Fatalf("look at %s %s: %v", kind, id, err)
	}
	return state
}

// refund is our record of a refund.
func refund(order licensing.Order, number string, amount int64) licensing.Payment {
	return licensing.Payment{
		OrderNo: order.OrderNo, Provider: licensing.ProviderStripe, Reference: number, Amount: amount,
		Currency: order.Currency,
	}
}
