package handlers

import (
	"context"

	"licet/delivery/webhook"
	"licet/internal/fair"
	"licet/licensing"
)

const (
	// maxPings bounds the concurrent test messages of the node. Each holds a request until its receiver
	// responds, for at most 15 seconds.
	maxPings = 64
	// maxOwnerPings bounds the concurrent test messages of one account in one mode.
	maxOwnerPings = 4

	pingIDPrefix = "ping_" // no id of an event has this prefix
)

// pingType is the type of test messages. No event has this type.
const pingType licensing.EventType = "webhook.ping"

// newPings returns the places for test messages in flight.
func newPings() *fair.Places[licensing.Owner] {
	return fair.New[licensing.Owner](fair.Config{Places: maxPings, Each: maxOwnerPings})
}

// ping is the result of a test message.
type ping struct {
	Delivered bool   `json:"delivered"`
	EventID   string `json:"event_id"`
	deliveryAttempt
	Answer *string `json:"answer"`
}

// webhookTest is a request to send a test message to an endpoint. It may have an Idempotency-Key, but each request
// sends another message: the service stores nothing.
type webhookTest struct {
	webhookPath
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`
}

// testWebhook sends a test message to an endpoint at once, and returns the result. The service neither stores the
// message nor tries it again.
func (s webhookRoutes) testWebhook(ctx context.Context, c *call, in webhookTest) (ping, error) {
	owner := c.owner()
	endpoint, err := s.cfg.Node.Webhook(ctx, owner, in.ID.value)
	if err != nil {
		return ping{}, err
	}
	message, err := s.pingMessage(c, &endpoint)
	if err != nil {
		return ping{}, err
	}
	if !s.pings.TryEnter(owner) {
		s.cfg.Metrics.CommandsShed.WithLabelValues("pings").Inc()
		return ping{}, licensing.ErrOverloaded
	}
	defer s.pings.Leave(owner)
	// Not r.ctx: its deadline is for the work of the service. This request waits for a receiver, until the
	// sender gives up or the server stops.
	attempt, err := s.cfg.Pings.Send(s.life, message)
	if err != nil && s.life.Err() != nil {
		return ping{}, licensing.ErrOutcomeUnknown
	}
	if err != nil {
		return ping{}, err
	}
	if attempt.Err != nil {
		s.cfg.Log.Debug().Err(attempt.Err).Str("endpoint_id", endpoint.ID).
			Msg("a try of a webhook endpoint got no answer")
	}
	return ping{
		Delivered:       attempt.Outcome == webhook.Delivered,
		EventID:         message.ID,
		deliveryAttempt: attemptAnswer(attempt.At, attempt.Status, attempt.Duration, string(attempt.Failure)),
		Answer:          orNull(attempt.Answer),
	}, nil
}

// pingMessage returns a test message to an endpoint. It has the form of an event.
func (s webhookRoutes) pingMessage(c *call, e *licensing.Endpoint) (webhook.Message, error) {
	message := webhook.Message{URL: e.URL}
	texts, err := s.cfg.Node.WebhookSecrets(e)
	if err != nil {
		s.cfg.Log.Error().Err(err).
			Msg("a webhook endpoint can't be tried: give this node the ring of master keys and start it again")
		return message, errNoWebhookSecret
	}
	for _, text := range texts {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			return message, err
		}
		message.Secrets = append(message.Secrets, secret)
	}
	now := s.cfg.Node.Now()
	message.ID = pingIDPrefix + newRequestID(now)
	about := webhookAnswer(e, c.owner(), now)
	data, err := (&eventData{Webhook: &about}).encode(nil)
	if err != nil {
		return message, err
	}
	message.Body, err = encodeEvent(event{
		ID: message.ID, Type: pingType, Timestamp: timestamp(now), Actor: c.actor(), Data: data,
	})
	return message, err
}
