package client

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// WebhookService manages webhook endpoints and their deliveries.
type WebhookService struct{ client *Client }

// Webhook is an endpoint to which the service sends events. Package client/webhook receives them.
type Webhook struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Description string   `json:"description"`
	Types       []string `json:"event_types"` // the types of events to send; [AllTypes] alone: all
	Status      string   `json:"status"`      // enabled or disabled

	DisabledAt      time.Time `json:"disabled_at"`
	DisabledBecause string    `json:"disabled_because"` // by_user, gone, failing or dead_letters

	// PreviousSecretUntil is the time until which the service also signs messages with the secret before the
	// last rotation.
	PreviousSecretUntil time.Time `json:"previous_secret_until"`
	CreatedAt           time.Time `json:"created_at"`
	AccountID           string    `json:"account_id"`
	Mode                string    `json:"mode"`

	// Secret is the secret that signs messages, whsec_…. The service shows it once: when the endpoint is
	// created, and when its secret is replaced.
	Secret string `json:"secret"`
	// Delivery is the state of the deliveries. Only [WebhookService.Get], [WebhookService.List] and
	// [WebhookService.All] set it.
	Delivery WebhookState `json:"delivery"`
}

// WebhookState is the state of the deliveries to an endpoint, as of a few moments ago.
type WebhookState struct {
	Pending       int       `json:"pending"`         // failed messages that the service will send again
	Dead          int       `json:"dead"`            // messages that the service has given up
	FailingSince  time.Time `json:"failing_since"`   // zero: the last message was delivered
	LastSuccessAt time.Time `json:"last_success_at"` // zero: never
	NextAttemptAt time.Time `json:"next_attempt_at"` // zero: the endpoint does not fail
	SkippedAt     time.Time `json:"skipped_at"`      // when retention last removed undelivered events; zero: never
	Behind        bool      `json:"behind"`          // the service has not read all events to deliver
}

// AllTypes, as the only type of a webhook endpoint, means all types, including types that later versions add.
const AllTypes = "*"

// NewWebhook describes an endpoint to create. The URL is required.
type NewWebhook struct {
	URL         string   `json:"url"`
	Description string   `json:"description,omitempty"`
	Types       []string `json:"event_types,omitzero"` // nil: all
}

// Create creates an endpoint. The service shows its secret once. If that response is lost, Create
// returns [ErrSecretLost] and the endpoint: rotate its secret.
func (s *WebhookService) Create(ctx context.Context, webhook NewWebhook, options ...CallOption) (*Webhook, error) {
	w, err := s.webhook(ctx, "POST /v1/webhook_endpoints", nil, webhook, options)
	if err == nil && w.Secret == "" {
		return w, fmt.Errorf("the webhook endpoint %s exists, but its secret is unknown: rotate its secret: %w", w.ID,
			ErrSecretLost)
	}
	return w, err
}

// Get returns an endpoint by its id.
func (s *WebhookService) Get(ctx context.Context, id string, options ...CallOption) (*Webhook, error) {
	return s.webhook(ctx, "GET /v1/webhook_endpoints/{endpoint_id}", []string{id}, nil, options)
}

// WebhookUpdate contains the changes of an endpoint. A nil field changes nothing.
type WebhookUpdate struct {
	URL         *string
	Description *string
	Types       []string // [AllTypes] alone: all
	Enabled     *bool
}

// Update changes an endpoint. After it is enabled again, a disabled endpoint continues where it stopped.
func (s *WebhookService) Update(
	ctx context.Context, id string, update WebhookUpdate, options ...CallOption,
) (*Webhook, error) {
	in := struct {
		URL         *string  `json:"url,omitempty"`
		Description *string  `json:"description,omitempty"`
		Types       []string `json:"event_types,omitzero"`
		Status      string   `json:"status,omitempty"`
	}{URL: update.URL, Description: update.Description, Types: update.Types}
	if update.Enabled != nil {
		in.Status = "disabled"
		if *update.Enabled {
			in.Status = "enabled"
		}
	}
	return s.webhook(ctx, "PATCH /v1/webhook_endpoints/{endpoint_id}", []string{id}, in, options)
}

// Rotate replaces the secret of an endpoint. The service shows the new secret once, and signs messages with
// both secrets during the overlap. If the response is lost, Rotate returns [ErrSecretLost]: rotate the secret
// again.
func (s *WebhookService) Rotate(
	ctx context.Context, id string, rotation Rotation, options ...CallOption,
) (*Webhook, error) {
	const route = "POST /v1/webhook_endpoints/{endpoint_id}/rotate"
	w, err := s.webhook(ctx, route, []string{id}, rotation.body(), options)
	if err == nil && w.Secret == "" {
		return w, fmt.Errorf("the new secret of the webhook endpoint %s is unknown: rotate the secret again: %w",
			w.ID, ErrSecretLost)
	}
	return w, err
}

func (s *WebhookService) webhook(
	ctx context.Context, route string, values []string, in any, options []CallOption,
) (*Webhook, error) {
	w := new(Webhook)
	if err := s.client.do(ctx, route, values, nil, in, w, options); err != nil {
		return nil, err
	}
	return w, nil
}

// Delete deletes an endpoint and all data about its deliveries.
func (s *WebhookService) Delete(ctx context.Context, id string, options ...CallOption) error {
	var deleted struct{}
	return s.client.do(ctx, "DELETE /v1/webhook_endpoints/{endpoint_id}", []string{id}, nil, nil, &deleted, options)
}

// List reads a page of endpoints, the newest first.
func (s *WebhookService) List(ctx context.Context, page Page, options ...CallOption) (*List[Webhook], error) {
	var listed struct {
		Webhooks []Webhook `json:"webhook_endpoints"`
		Next     string    `json:"next_cursor"`
	}
	if err := s.client.do(ctx, "GET /v1/webhook_endpoints", nil, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Webhook]{listed.Webhooks, listed.Next}, nil
}

// All yields all webhook endpoints, the newest first.
func (s *WebhookService) All(ctx context.Context) iter.Seq2[Webhook, error] {
	return allPages(listPage, func(page Page) (*List[Webhook], error) { return s.List(ctx, page) })
}

// WebhookTest is the result of a test message to an endpoint.
type WebhookTest struct {
	Delivered  bool      `json:"delivered"`
	EventID    string    `json:"event_id"` // the id of the message; no event has this id
	At         time.Time `json:"at"`
	Status     int       `json:"status"` // of HTTP; 0: no response
	DurationMS int64     `json:"duration_ms"`
	Failure    string    `json:"failure"` // a fixed word; empty: delivered
	Answer     string    `json:"answer"`  // the first 1 KiB of the response
}

// Test sends one test message, of the type webhook.ping, to an endpoint, and returns the result. The call may
// take 15 seconds.
func (s *WebhookService) Test(ctx context.Context, id string, options ...CallOption) (*WebhookTest, error) {
	t := new(WebhookTest)
	const route = "POST /v1/webhook_endpoints/{endpoint_id}/test"
	if err := s.client.do(ctx, route, []string{id}, nil, nil, t, options); err != nil {
		return nil, err
	}
	return t, nil
}
