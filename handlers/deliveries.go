package handlers

import (
	"context"
	"errors"
	"slices"
	"time"

	"licet/delivery/webhook"
	"licet/internal/fair"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// delivery is the delivery of one event to one endpoint.
type delivery struct {
	EndpointID  string               `json:"endpoint_id"`
	EventID     string               `json:"event_id"`
	EventType   licensing.EventType  `json:"event_type"`
	Status      store.DeliveryStatus `json:"status"`
	Attempts    []deliveryAttempt    `json:"attempts"`
	Answer      *string              `json:"answer"`
	NextAttempt timestamp            `json:"next_attempt_at"`
}

// deliveryAttempt is one attempt. Without an answer, its status is null.
type deliveryAttempt struct {
	At       timestamp `json:"at"`
	Status   *int      `json:"status"`
	Duration int64     `json:"duration_ms"`
	Failure  *string   `json:"failure"`
}

func attemptAnswer(at time.Time, status int, took time.Duration, failure string) deliveryAttempt {
	answer := deliveryAttempt{At: timestamp(at), Duration: took.Milliseconds(), Failure: orNull(failure)}
	if status != 0 {
		answer.Status = &status
	}
	return answer
}

func deliveryAnswer(endpoint string, d *store.Delivery) delivery {
	return delivery{
		EndpointID: endpoint,
		EventID:    d.EventID,
		EventType:  d.Type,
		Status:     d.Status,
		Attempts: answers(d.Attempts, func(a *store.DeliveryAttempt) deliveryAttempt {
			return attemptAnswer(a.At, a.Status, a.Duration, a.Failure)
		}),
		Answer:      orNull(d.Answer),
		NextAttempt: timestamp(d.Next),
	}
}

// deliveryQuery asks for a page of deliveries to an endpoint. Its cursors hold for that endpoint
// and status alone.
type deliveryQuery struct {
	webhookPath
	Status param `query:"status"`
	pageQuery
}

func (q *deliveryQuery) check(c *checks) {
	q.list(c, "deliveries", q.ID.value)
	all := []store.DeliveryStatus{store.DeliveryPending, store.DeliveryDead, store.DeliveryDelivered}
	q.status(c, q.Status, words(all))
	q.checkPage(c)
}

type deliveryList struct {
	Deliveries []delivery `json:"deliveries"`
	Next       *string    `json:"next_cursor"`
}

// listDeliveries pages through the deliveries to an endpoint.
func (s webhookRoutes) listDeliveries(ctx context.Context, c *call, q deliveryQuery) (deliveryList, error) {
	id := q.ID.value
	got, err := s.cfg.Node.WebhookDeliveries(ctx, c.owner(), id,
		store.DeliveryPage{Status: store.DeliveryStatus(q.Status.value), After: string(q.page.Before),
			Limit: q.page.Limit})
	if errors.Is(err, store.ErrBadPosition) {
		return deliveryList{}, invalidField("cursor", problemCursor)
	}
	if err != nil {
		return deliveryList{}, err
	}
	return deliveryList{
		answers(got.Items, func(d *store.Delivery) delivery { return deliveryAnswer(id, d) }),
		q.formatCursor(store.Position(got.Next)),
	}, nil
}

// replayRequest asks to deliver events to an endpoint again: one event, a range of events, or all
// that were given up.
type replayRequest struct {
	webhookPath
	EventID        text `json:"event_id"`
	Since          text `json:"since"`
	Until          text `json:"until"`
	Dead           flag `json:"dead"`
	idempotencyKey `json:"-"`
}

func (in *replayRequest) check(c *checks) {
	switch {
	case in.EventID.given:
		c.alone("event_id", in.Since.given, in.Until.given, in.Dead.given)
	case in.Dead.given:
		if c.alone("dead", in.Since.given, in.Until.given); !in.Dead.value {
			c.add("dead", "must be true, or left out")
		}
	case in.Since.given && !in.Until.given:
		c.add("until", "is required if since is set")
	case !in.Until.given:
		c.add("event_id", "is required unless until or dead is set")
	}
	c.eventID("event_id", in.EventID)
	c.eventID("since", in.Since)
	c.eventID("until", in.Until)
}

// replay is an accepted replay.
type replay struct {
	EndpointID string  `json:"endpoint_id"`
	EventID    *string `json:"event_id"`
	Since      *string `json:"since"`
	Until      *string `json:"until"`
	Dead       bool    `json:"dead"`
	Accepted   bool    `json:"accepted"`
}

// replayWebhook has events delivered to an endpoint again.
func (s webhookRoutes) replayWebhook(ctx context.Context, c *call, in replayRequest) (replay, error) {
	event, since, until := in.EventID.value, in.Since.value, in.Until.value
	replayed, err := s.cfg.Node.ReplayWebhook(ctx, service.ReplayRequest{
		Owner:    c.owner(),
		Endpoint: in.ID.value,
		Replay:   store.Replay{EventID: event, After: since, Until: until, Dead: in.Dead.value},
		Once:     in.once,
	})
	if c.replayed = replayed; err != nil {
		return replay{}, err
	}
	return replay{in.ID.value, orNull(event), orNull(since), orNull(until), in.Dead.value, true}, nil
}

// alone demands that none of the other members is given.
func (c *rules) alone(field string, others ...bool) {
	if slices.Contains(others, true) {
		c.add(field, "can't be combined with another member")
	}
}

// eventID checks a reference to an event. An empty reference is refused, since it would count as
// missing.
func (c *rules) eventID(field string, in text) {
	if !c.describe(field, Limits{MinLength: 1, MaxLength: maxListCursor}) &&
		in.given && (in.value == "" || len(in.value) > maxListCursor) {
		c.add(field, "must be an event's id")
	}
}

const (
	// maxPings bounds the concurrent test messages of the node. Each keeps a request open until its receiver
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
			Msg("a test message to a webhook endpoint got no response")
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
			Msg("can't test a webhook endpoint: give this node the master keys of the service and restart it")
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
