package client

import (
	"context"
	"iter"
	"time"
)

// Delivery is what became of one event at one webhook endpoint.
type Delivery struct {
	EndpointID string            `json:"endpoint_id"`
	EventID    string            `json:"event_id"`
	EventType  string            `json:"event_type"`
	Status     string            `json:"status"`   // pending, dead or delivered
	Attempts   []DeliveryAttempt `json:"attempts"` // the oldest first
	Answer     string            `json:"answer"`   // to the last one: its first 1 KiB
	// NextAttemptAt is when it is tried again, while it is pending.
	NextAttemptAt time.Time `json:"next_attempt_at"`
}

// DeliveryAttempt is one attempt.
type DeliveryAttempt struct {
	At         time.Time `json:"at"`
	Status     int       `json:"status"` // of HTTP; 0: there was no answer
	DurationMS int64     `json:"duration_ms"`
	Failure    string    `json:"failure"` // in a word; empty: it was delivered
}

// ListWebhookDeliveries reads one page of what became of messages to an endpoint: of
// those with a status, or first of those that are pending, then of those that were
// given up, and then of the latest that were delivered.
func (c *Client) ListWebhookDeliveries(ctx context.Context, id, status string, page Page, options ...CallOption) (*List[Delivery], error) {
	var listed struct {
		Deliveries []Delivery `json:"deliveries"`
		Next       string     `json:"next_cursor"`
	}
	err := c.do(ctx, "GET /v1/webhook_endpoints/{endpoint_id}/deliveries", []string{id}, page.query("status", status), nil, &listed, options)
	if err != nil {
		return nil, err
	}
	return &List[Delivery]{listed.Deliveries, listed.Next}, nil
}

// WebhookDeliveries reads all of what ListWebhookDeliveries tells.
func (c *Client) WebhookDeliveries(ctx context.Context, id, status string) iter.Seq2[Delivery, error] {
	return every(listPage, func(page Page) (*List[Delivery], error) { return c.ListWebhookDeliveries(ctx, id, status, page) })
}

// Webhooks reads all webhook endpoints, the newest first.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[Webhook, error] {
	return every(listPage, func(page Page) (*List[Webhook], error) { return c.ListWebhooks(ctx, page) })
}

// WebhookReplay says which events to deliver again: one, or a span, or all that were
// given up.
type WebhookReplay struct {
	EventID string `json:"event_id,omitempty"`
	// Since and Until are events' ids: what comes after the one, up to the other with
	// it. An empty Since stands for the oldest event that is kept.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	Dead  bool   `json:"dead,omitempty"`
}

// ReplayWebhook asks for events to be delivered to an endpoint again. It answers when
// that is noted, and not when it is done.
func (c *Client) ReplayWebhook(ctx context.Context, id string, replay WebhookReplay, options ...CallOption) error {
	var accepted struct{}
	return c.do(ctx, "POST /v1/webhook_endpoints/{endpoint_id}/replay", []string{id}, nil, replay, &accepted, options)
}
