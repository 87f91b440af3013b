package stripe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
	"licet/payment/stripe"
)

// TestStalledAccount: Stripe answers nothing about one account. The requests of its owner end with their deadlines, and
// leave connections for those of another owner.
func TestStalledAccount(t *testing.T) {
	f := newFixture(t)
	_, state := f.paid(4900, "USD", fakestripe.CardPays)
	const stalledKey, requests = "sk_test_stalled0123456789", 200
	held := make(chan struct{}, requests)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Authorization"), stalledKey) {
			held <- struct{}{}
			<-r.Context().Done()
			return
		}
		f.fake.ServeHTTP(w, r)
	}))
	defer server.Close()
	cfg := f.cfg
	cfg.Client = stripe.NewClient(server.URL)
	well := stripe.New(cfg)
	cfg.Secrets = func() stripe.Secrets { return stripe.Secrets{Key: stalledKey} }
	stalled := stripe.New(cfg)
	providers := payment.Fairly(func(o licensing.Owner) payment.Provider {
		if o == owner {
			return well
		}
		return stalled
	})
	other := licensing.Owner{AccountID: "acct_stalled", Mode: licensing.Test}
	object := payment.Object{Kind: payment.ObjectPayment, ID: state.Payment}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			if _, err := providers.Of(other).Look(ctx, object); err == nil {
				t.Error("a stalled request is answered")
			}
		})
	}
	for range 32 {
		<-held
	}
	for range 10 {
		soon, done := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := providers.Of(owner).Look(soon, object); err != nil {
			t.Errorf("the other owner: %v", err)
		}
		done()
	}
	cancel()
	group.Wait()
}
