package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/client"
	"licet/client/webhook"
)

// walkWebhooks creates an endpoint with a receiver of client/webhook, and makes every call about endpoints.
func walkWebhooks(t *testing.T, shop *client.Client, orderNo string) {
	ctx := t.Context()
	var handle http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle.ServeHTTP(w,
			r)
	}))
	defer server.Close()
	made := must[*client.Webhook](t)(shop.Webhooks.Create(ctx, client.NewWebhook{
		URL: server.URL + "/licet", Description: "for mails", Types: []string{"order.created"},
	}))
	receiver, err := webhook.New(made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	took := make(chan *webhook.Event, 10)
	handle = receiver.Handler(func(_ context.Context, e *webhook.Event) error {
		took <- e
		return nil
	})
	if tried := must[*client.WebhookTest](t)(shop.Webhooks.Test(ctx, made.ID)); !tried.Delivered ||
		tried.Status != 204 || tried.Failure != "" || tried.At.IsZero() {
		t.Errorf("tried %+v", tried)
	}
	if e := <-took; e.Type != webhook.Ping || e.Sequence != 0 || e.Data.Webhook == nil ||
		e.Data.Webhook.ID != made.ID || !slices.Equal(e.Data.Webhook.Types, []string{"order.created"}) {
		t.Errorf("took %+v", e)
	}

	turned := must[*client.Webhook](t)(shop.Webhooks.Rotate(ctx, made.ID,
		client.Rotation{Overlap: new(90 * time.Second)}))
	if turned.Secret == made.Secret || time.Until(turned.PreviousSecretUntil) > 91*time.Second {
		t.Errorf("rotated to %+v", turned)
	}
	// The receiver has the previous secret.
	must[*client.WebhookTest](t)(shop.Webhooks.Test(ctx, made.ID))
	<-took
	must[*client.Webhook](t)(shop.Webhooks.Rotate(ctx, made.ID, client.Rotation{Overlap: new(time.Duration(0))}))
	if tried := must[*client.WebhookTest](t)(shop.Webhooks.Test(ctx, made.ID)); tried.Delivered ||
		tried.Status != 401 || tried.Failure != "status" || tried.Answer == "" {
		t.Errorf("tried %+v", tried)
	}

	// An empty list of types is neither all types nor the current ones.
	var bad *client.Error
	if _, err := shop.Webhooks.Create(ctx, client.NewWebhook{URL: server.URL, Types: []string{}}); !errors.As(err,
		&bad) || bad.Code != 42200 {
		t.Errorf("made one for nothing: %v", err)
	}
	if _, err := shop.Webhooks.Update(ctx, made.ID, client.WebhookUpdate{Types: []string{}}); !errors.As(err, &bad) ||
		bad.Code != 42200 {
		t.Errorf("changed one for nothing: %v", err)
	}

	off := must[*client.Webhook](t)(shop.Webhooks.Update(ctx, made.ID, client.WebhookUpdate{
		URL: new(server.URL), Description: new(""), Types: []string{client.AllTypes}, Enabled: new(false),
	}))
	if off.Status != "disabled" || off.DisabledBecause != "by_user" || off.URL != server.URL || off.Description != "" ||
		!slices.Equal(off.Types, []string{client.AllTypes}) {
		t.Errorf("the endpoint is %+v", off)
	}
	got := must[*client.Webhook](t)(shop.Webhooks.Get(ctx, made.ID))
	if got.Secret != "" || !got.CreatedAt.Equal(made.CreatedAt) || got.Delivery.Dead != 0 {
		t.Errorf("the endpoint is %+v", got)
	}
	if l := must[*client.List[client.Webhook]](t)(shop.Webhooks.List(ctx, client.Page{})); len(l.Items) != 1 ||
		!cmp.Equal(l.Items[0], *got) {
		t.Errorf("listed %+v", l)
	}
	for w, err := range shop.Webhooks.All(ctx) {
		if err != nil || w.ID != made.ID {
			t.Errorf("listed %+v, %v", w, err)
		}
	}

	event := firstEvent(t, shop, orderNo)
	for _, replay := range []client.WebhookReplay{{EventID: event}, {Until: event}, {Since: event, Until: event},
		{Dead: true}} {
		if err := shop.Webhooks.Replay(ctx, made.ID, replay); err != nil {
			t.Errorf("%+v: %v", replay, err)
		}
	}
	refused(t, shop.Webhooks.Replay(ctx, made.ID, client.WebhookReplay{EventID: "evt_x"}), 40406)
	for d, err := range shop.Webhooks.AllDeliveries(ctx, made.ID, "dead") {
		t.Errorf("dead is %+v, %v", d, err)
	}

	if err := shop.Webhooks.Delete(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	_, err = shop.Webhooks.Get(ctx, made.ID)
	if refused(t, err, 40405); !client.HasReason(err, client.ReasonWebhookNotFound) {
		t.Error(err)
	}
}

func firstEvent(t *testing.T, shop *client.Client, orderNo string) (id string) {
	t.Helper()
	for e, err := range shop.Orders.AllEvents(t.Context(), orderNo) {
		if err != nil {
			t.Fatal(err)
		}
		id = e.ID
	}
	return id
}

// TestWebhookSecretsLost: if the secret is lost, the call still returns the endpoint.
func TestWebhookSecretsLost(t *testing.T) {
	t.Parallel()
	w := newWire(1)
	shop := newShop(t, nil, w.option())
	made, err := shop.Webhooks.Create(t.Context(), client.NewWebhook{URL: "https://shop.example.com/licet"})
	if !errors.Is(err, client.ErrSecretLost) || made == nil || !strings.Contains(err.Error(), made.ID) {
		t.Errorf("made %+v, %v", made, err)
	}
	w.mu.Lock()
	w.lose = 1
	w.mu.Unlock()
	turned, err := shop.Webhooks.Rotate(t.Context(), made.ID, client.Rotation{})
	if !errors.Is(err, client.ErrSecretLost) || turned == nil || turned.ID != made.ID {
		t.Errorf("rotated %+v, %v", turned, err)
	}
}
