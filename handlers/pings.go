package handlers

import (
	"context"
	"sync"

	"licet/delivery/webhook"
	"licet/licensing"
)

const (
	// maxPings bounds the endpoints that are tried at a time. Each of them holds a
	// request for as long as its receiver takes, 15 seconds at most.
	maxPings = 64
	// maxOwnerPings is how many of those one account can have in a mode.
	maxOwnerPings = 4

	pingIDPrefix = "ping_" // no event's id begins so
)

// pingType is the kind of messages that try an endpoint. It is no event's.
const pingType licensing.EventType = "webhook.ping"

// pings bounds the tries of endpoints that are under way.
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

// ping is what came of trying an endpoint.
type ping struct {
	Delivered bool   `json:"delivered"`
	EventID   string `json:"event_id"`
	deliveryAttempt
	Answer *string `json:"answer"`
}

// webhookTest asks to send an endpoint a message. It may have an Idempotency-Key, but each request
// sends another message: nothing is recorded.
type webhookTest struct {
	webhookPath
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`
}

// testWebhook sends an endpoint a message at once, and answers what came of that. It is
// nothing that is recorded or tried again; so an Idempotency-Key is looked at, and the
// same request sends another message all the same.
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
	// A request's usual time is for its work. This one waits for somebody else, for as
	// long as the sender does, or until the server stops.
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

// pingMessage makes a message in the form of an event, which no event is.
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
