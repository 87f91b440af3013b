package handlers_test

import (
	"testing"
	"time"

	"licet/handlers"
	"licet/handlers/limits"
	"licet/licensing"
	"licet/payment"
)

// signedTill is a provider that believes a callback whose signature is its secret.
type signedTill struct {
	payment.Sandbox
	secret string
}

func (signedTill) Name() licensing.PaymentProvider { return licensing.ProviderStripe }

func (p signedTill) Callback(signature string, _ []byte) (payment.Object, error) {
	if signature != p.secret {
		return payment.Object{}, payment.ErrSignature
	}
	return payment.Object{}, nil
}

// TestWrongSignaturesOfOthers: however many wrong signatures of callbacks come from an address, for whichever account,
// callbacks from there with a right signature are taken, and API keys are looked up.
func TestWrongSignaturesOfOthers(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Authentication: limits.Rate{Count: 4, Per: time.Minute}})...)
	s.config.Desk = payment.NewDesk(s.node, func(owner licensing.Owner) payment.Provider {
		return signedTill{secret: owner.AccountID}
	})
	s.addr = serve(t, handlers.New(s.config))
	call := func(account, signature string) answer {
		return s.sendWire(wire{method: "POST", path: "/v1/callbacks/stripe/" + account + "/test", body: "{}",
			headers: []string{"Stripe-Signature", signature}})
	}
	for range 3 {
		for i, want := range []int{40101, 40101, 42900, 42900, 42900, 42900} {
			account := []string{"acct_acme", "acct_other"}[i%2]
			if got := call(account, "acct_wrong"); got.code != want {
				t.Errorf("wrong signature %d is answered %s, want %d", i, got.body, want)
			}
			for _, account := range []string{"acct_acme", "acct_other"} {
				call(account, account).must(t, 0)
			}
		}
		s.clock.advance(time.Minute)
	}
	for range 4 {
		call("acct_other", "acct_wrong")
	}
	s.send("GET", "/v1/products", keyAll, "").must(t, 0)
}
