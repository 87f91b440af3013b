package handlers

import (
	"context"
	"sync"

	"licet/delivery/webhook"
	"licet/licensing"
)

const (
	// maxPings bounds the test messages in progress. Each of them holds a request
	// until its receiver answers, at most 15 seconds.
	maxPings = 64
	// maxOwnerPings bounds the test messages of one account and mode.
	maxOwnerPings = 4

	pingIDPrefix = "ping_" // no event's id begins so
)

// pingType is the type of test messages. No event has it.
const pingType licensing.EventType = "webhook.ping"

// pings counts the test messages in progress.
type pings struct {
	mu      sync.Mutex
	all     int
	ofOwner map[licensing.Owner]int
}

func (p *pings) enter(owner licensing.Owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxPings || p.ofOwner[owner] >= maxOwnerPings {
		return false
	}
	if p.ofOwner == nil {
		p.ofOwner = make(map[licensing.Owner]int)
	}
	p.all++
	p.ofOwner[owner]++
	return true
}

func (p *pings) leave(owner licensing.Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.ofOwner[owner]--; p.ofOwner[owner] == 0 {
		delete(p.ofOwner, owner)
	}
}

// ping is the result of a test message.
type ping struct {
	Delivered bool   `json:"delivered"`
	EventID   string `json:"event_id"`
	deliveryAttempt
	Answer *string `json:"answer"`
}

// webhookTest asks to send an endpoint a message. It may have an Idempotency-Key, but each request
// sends another message: the service records nothing.
type webhookTest struct {
	webhookPath
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`
}

// testWebhook sends an endpoint a message at once, and answers the result of that one attempt.
func (s *Server) testWebhook(ctx context.Context, r *request, in webhookTest) (ping, error) {
	owner := r.owner()
	endpoint, err := s.cfg.Node.Webhook(ctx, owner, in.ID.value)
	if err != nil {
		return ping{}, err
	}
	message, err := s.pingMessage(r, &endpoint)
	if err != nil {
		return ping{}, err
	}
	if !s.pings.enter(owner) {
		s.cfg.Metrics.CommandsShed.WithLabelValues("pings").Inc()
		return ping{}, licensing.ErrOverloaded
	}
	defer s.pings.leave(owner)
	// The usual deadline is for work. This request waits for the receiver, as long as
	// the sender does, or until the server stops.
	attempt, err := s.cfg.Pings.Send(s.life, message)
	if err != nil && s.life.Err() != nil {
		return ping{}, licensing.ErrOutcomeUnknown
	}
	if err != nil {
		return ping{}, err
	}
	if attempt.Err != nil {
		s.cfg.Log.Debug().Err(attempt.Err).Str("endpoint_id", endpoint.ID).Msg("a try of a webhook endpoint got no answer")
	}
	return ping{
		Delivered:       attempt.Outcome == webhook.Delivered,
		EventID:         message.ID,
		deliveryAttempt: attemptAnswer(attempt.At, attempt.Status, attempt.Duration, string(attempt.Failure)),
		Answer:          orNull(attempt.Answer),
	}, nil
}

// pingMessage makes a message in the form of an event. No event has its id or its type.
func (s *Server) pingMessage(r *request, e *licensing.Endpoint) (webhook.Message, error) {
	message := webhook.Message{URL: e.URL}
	texts, err := s.cfg.Node.WebhookSecrets(e)
	if err != nil {
		s.cfg.Log.Error().Err(err).Msg("a webhook endpoint can't be tried: give this node the ring of master keys and start it again")
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
	about := webhookAnswer(e, r.owner(), now)
	data, err := (&eventData{Webhook: &about}).encode(nil)
	if err != nil {
		return message, err
	}
	message.Body, err = encodeEvent(event{ID: message.ID, Type: pingType, Timestamp: timestamp(now), Actor: r.actor(), Data: data})
	return message, err
}
