package client

import (
	"context"
	"iter"
	"time"
)

// Delivery is the delivery of an event to a webhook endpoint.
type Delivery struct {
	EndpointID string            `json:"endpoint_id"`
	EventID    string            `json:"event_id"`
	EventType  string            `json:"event_type"`
	Status     string            `json:"status"`   // pending, dead or delivered
	Attempts   []DeliveryAttempt `json:"attempts"` // the oldest first
	Answer     string            `json:"answer"`   // the first 1 KiB of the last response
	// NextAttemptAt is the time of the next attempt, while the delivery is pending.
	NextAttemptAt time.Time `json:"next_attempt_at"`
}

// DeliveryAttempt is an attempt to deliver an event.
type DeliveryAttempt struct {
	At         time.Time `json:"at"`
	Status     int       `json:"status"` // of HTTP; 0: no response
	DurationMS int64     `json:"duration_ms"`
	Failure    string    `json:"failure"` // a fixed word; empty: delivered
}

// ListDeliveries reads a page of the deliveries to an endpoint with a status. An empty status selects the
// pending deliveries, then the dead ones, and then the latest successful ones.
func (s *WebhookService) ListDeliveries(
	ctx context.Context, id, status string, page Page, options ...CallOption,
) (*List[Delivery], error) {
	var listed struct {
		Deliveries []Delivery `json:"deliveries"`
		Next       string     `json:"next_cursor"`
	}
	const route = "GET /v1/webhook_endpoints/{endpoint_id}/deliveries"
	err := s.client.do(ctx, route, []string{id}, page.query("status", status), nil, &listed, options)
	if err != nil {
		return nil, err
	}
	return &List[Delivery]{listed.Deliveries, listed.Next}, nil
}

// AllDeliveries yields the deliveries of all pages of ListDeliveries.
func (s *WebhookService) AllDeliveries(ctx context.Context, id, status string) iter.Seq2[Delivery, error] {
	return allPages(listPage, func(page Page) (*List[Delivery], error) {
		return s.ListDeliveries(ctx, id, status, page)
	})
}

// WebhookReplay selects events to deliver again: one event, a range, or all dead deliveries.
type WebhookReplay struct {
	EventID string `json:"event_id,omitempty"`
	// Since and Until are ids of events. The range begins after Since and includes Until. An empty Since
	// is the start of the retained events.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	Dead  bool   `json:"dead,omitempty"`
}

// Replay requests that the service delivers events to an endpoint again. It returns when the service has
// stored the request, before the deliveries.
func (s *WebhookService) Replay(ctx context.Context, id string, replay WebhookReplay, options ...CallOption) error {
	var accepted struct{}
	const route = "POST /v1/webhook_endpoints/{endpoint_id}/replay"
	return s.client.do(ctx, route, []string{id}, nil, replay, &accepted, options)
}
