package client

import (
	"context"
	"fmt"
	"time"
)

// Webhook is an endpoint that the service sends events to. Package client/webhook
// takes them there.
type Webhook struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Description string   `json:"description"`
	Types       []string `json:"event_types"` // which kinds it gets; [AllTypes] alone: all
	Status      string   `json:"status"`      // enabled or disabled

	DisabledAt      time.Time `json:"disabled_at"`
	DisabledBecause string    `json:"disabled_because"` // by_user, gone, failing or dead_letters

	// PreviousSecretUntil is until when messages are signed with the secret before the
	// last rotation, too.
	PreviousSecretUntil time.Time `json:"previous_secret_until"`
	CreatedAt           time.Time `json:"created_at"`
	AccountID           string    `json:"account_id"`
	Mode                string    `json:"mode"`

	// Secret is what its messages are signed with, whsec_…. It is shown once, when the
	// endpoint is made and when its secret is replaced.
	Secret string `json:"secret"`
	// Delivery is how far the deliveries are. Only a lookup and the list tell it.
	Delivery WebhookState `json:"delivery"`
}

// WebhookState is how far the deliveries to an endpoint are, as of some moments ago.
type WebhookState struct {
	Pending       int       `json:"pending"`         // messages that have failed and are tried again
	Dead          int       `json:"dead"`            // messages that were given up
	FailingSince  time.Time `json:"failing_since"`   // zero: the last one has come through
	LastSuccessAt time.Time `json:"last_success_at"` // zero: nothing yet
	NextAttemptAt time.Time `json:"next_attempt_at"` // while it fails
	SkippedAt     time.Time `json:"skipped_at"`      // when events were found to be gone before they were delivered
	Behind        bool      `json:"behind"`          // there was more to deliver than was looked at
}

// AllTypes, as the only one of a webhook's kinds, stands for all of them, also for
// those that later versions add.
const AllTypes = "*"

// NewWebhook says what endpoint to make. The URL is needed.
type NewWebhook struct {
	URL         string   `json:"url"`
	Description string   `json:"description,omitempty"`
	Types       []string `json:"event_types,omitzero"` // nil: all
}

// CreateWebhook makes an endpoint. Its secret is shown this once. If that answer is
// lost it returns [ErrSecretLost], with the endpoint: rotate its secret.
func (c *Client) CreateWebhook(ctx context.Context, webhook NewWebhook, options ...CallOption) (*Webhook, error) {
	w, err := c.webhook(ctx, "POST /v1/webhook_endpoints", nil, webhook, options)
	if err == nil && w.Secret == "" {
		return w, fmt.Errorf("the webhook endpoint %s was made, so rotate its secret to see one: %w", w.ID, ErrSecretLost)
	}
	return w, err
}

// Webhook looks an endpoint up.
func (c *Client) Webhook(ctx context.Context, id string, options ...CallOption) (*Webhook, error) {
	return c.webhook(ctx, "GET /v1/webhook_endpoints/{endpoint_id}", []string{id}, nil, options)
}

// WebhookUpdate says what to change of an endpoint; nil leaves it as it is.
type WebhookUpdate struct {
	URL         *string
	Description *string
	Types       []string // [AllTypes] alone: all
	Enabled     *bool
}

// UpdateWebhook changes an endpoint. One that was disabled and is enabled goes on where
// it was.
func (c *Client) UpdateWebhook(ctx context.Context, id string, update WebhookUpdate, options ...CallOption) (*Webhook, error) {
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
	return c.webhook(ctx, "PATCH /v1/webhook_endpoints/{endpoint_id}", []string{id}, in, options)
}

// RotateWebhook gives an endpoint a new secret, which is shown this once. For the
// overlap, messages are signed with both. If the answer is lost it returns
// [ErrSecretLost]: rotate it again.
func (c *Client) RotateWebhook(ctx context.Context, id string, rotation Rotation, options ...CallOption) (*Webhook, error) {
	w, err := c.webhook(ctx, "POST /v1/webhook_endpoints/{endpoint_id}/rotate", []string{id}, rotation.body(), options)
	if err == nil && w.Secret == "" {
		return w, fmt.Errorf("the new secret of the webhook endpoint %s is unknown, so rotate it again: %w", w.ID, ErrSecretLost)
	}
	return w, err
}

func (c *Client) webhook(ctx context.Context, route string, values []string, in any, options []CallOption) (*Webhook, error) {
	w := new(Webhook)
	if err := c.do(ctx, route, values, nil, in, w, options); err != nil {
		return nil, err
	}
	return w, nil
}

// DeleteWebhook removes an endpoint, with all that is kept of its deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, id string, options ...CallOption) error {
	var deleted struct{}
	return c.do(ctx, "DELETE /v1/webhook_endpoints/{endpoint_id}", []string{id}, nil, nil, &deleted, options)
}

// ListWebhooks reads one page of endpoints, the newest first.
func (c *Client) ListWebhooks(ctx context.Context, page Page, options ...CallOption) (*List[Webhook], error) {
	var listed struct {
		Webhooks []Webhook `json:"webhook_endpoints"`
		Next     string    `json:"next_cursor"`
	}
	if err := c.do(ctx, "GET /v1/webhook_endpoints", nil, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Webhook]{listed.Webhooks, listed.Next}, nil
}

// WebhookTest is what came of a message that was sent to try an endpoint.
type WebhookTest struct {
	Delivered  bool      `json:"delivered"`
	EventID    string    `json:"event_id"` // the message's, which is no event's
	At         time.Time `json:"at"`
	Status     int       `json:"status"` // of HTTP; 0: there was no answer
	DurationMS int64     `json:"duration_ms"`
	Failure    string    `json:"failure"` // why it was not delivered, in a word
	Answer     string    `json:"answer"`  // the first 1 KiB of it
}

// TestWebhook sends a message of the kind webhook.ping to an endpoint, once, and tells
// what came of it. It may take 15 seconds.
func (c *Client) TestWebhook(ctx context.Context, id string, options ...CallOption) (*WebhookTest, error) {
	t := new(WebhookTest)
	if err := c.do(ctx, "POST /v1/webhook_endpoints/{endpoint_id}/test", []string{id}, nil, nil, t, options); err != nil {
		return nil, err
	}
	return t, nil
}
