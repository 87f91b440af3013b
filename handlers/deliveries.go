package handlers

import (
	"errors"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// delivery is what became of one event at one endpoint.
type delivery struct {
	EndpointID  string               `json:"endpoint_id"`
	EventID     string               `json:"event_id"`
	EventType   licensing.EventType  `json:"event_type"`
	Status      store.DeliveryStatus `json:"status"`
	Attempts    []deliveryAttempt    `json:"attempts"`
	Answer      *string              `json:"answer"`
	NextAttempt timestamp            `json:"next_attempt_at"`
}

// deliveryAttempt is one attempt. Of one that got no answer the status is null.
type deliveryAttempt struct {
	At       timestamp `json:"at"`
	Status   *int      `json:"status"`
	Duration int64     `json:"duration_ms"`
	Failure  *string   `json:"failure"`
}

func attemptAnswer(at time.Time, status int, took time.Duration, failure string) deliveryAttempt {
	answer := deliveryAttempt{At: timestamp(at), Duration: took.Milliseconds(), Failure: optional(failure)}
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
		Answer:      optional(d.Answer),
		NextAttempt: timestamp(d.Next),
	}
}

// listDeliveries pages through what became of messages to an endpoint. Its cursors are
// good for that endpoint and status alone.
func (s *Server) listDeliveries(r *request) (any, error) {
	id := r.value("endpoint_id")
	q := newListQuery("deliveries", r)
	q.asked = append(q.asked, id)
	status := q.status(string(store.DeliveryPending), string(store.DeliveryDead), string(store.DeliveryDelivered))
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	got, err := s.cfg.Node.WebhookDeliveries(r.ctx, r.callerOwner(), id,
		store.DeliveryPage{Status: store.DeliveryStatus(status), After: string(page.Before), Limit: page.Limit})
	if errors.Is(err, store.ErrBadPosition) {
		q.bad.add("cursor", problemCursor)
		return nil, q.bad.err()
	}
	if err != nil {
		return nil, err
	}
	return struct {
		Deliveries []delivery `json:"deliveries"`
		Next       *string    `json:"next_cursor"`
	}{
		answers(got.Items, func(d *store.Delivery) delivery { return deliveryAnswer(id, d) }),
		q.formatCursor(store.Position(got.Next)),
	}, nil
}

// replayWebhook has events delivered to an endpoint again: one, or a span, or all that
// were given up.
func (s *Server) replayWebhook(r *request) (any, error) {
	var bad problems
	var event, since, until text
	var dead flag
	err := decodeObject(r.body(), true,
		textMember("event_id", &event),
		textMember("since", &since),
		textMember("until", &until),
		flagMember("dead", &dead),
	)
	if err != nil {
		return nil, err
	}
	switch {
	case event.given:
		bad.alone("event_id", since.given, until.given, dead.given)
	case dead.given:
		if bad.alone("dead", since.given, until.given); !dead.value {
			bad.add("dead", "must be true, or left out")
		}
	case since.given && !until.given:
		bad.add("until", "is required along with since")
	case !until.given:
		bad.add("event_id", "is required, unless until or dead is given")
	}
	in := service.ReplayRequest{
		Owner:    r.callerOwner(),
		Endpoint: r.value("endpoint_id"),
		Replay:   store.Replay{EventID: event.value, After: since.value, Until: until.value, Dead: dead.value},
		Once:     bad.once(r),
	}
	bad.eventID("event_id", event)
	bad.eventID("since", since)
	bad.eventID("until", until)
	if err := bad.err(); err != nil {
		return nil, err
	}
	if r.replayed, err = s.cfg.Node.ReplayWebhook(r.ctx, in); err != nil {
		return nil, err
	}
	return struct {
		EndpointID string  `json:"endpoint_id"`
		EventID    *string `json:"event_id"`
		Since      *string `json:"since"`
		Until      *string `json:"until"`
		Dead       bool    `json:"dead"`
		Accepted   bool    `json:"accepted"`
	}{in.Endpoint, optional(event.value), optional(since.value), optional(until.value), dead.value, true}, nil
}

// alone demands that none of the other members is given.
func (p *problems) alone(field string, others ...bool) {
	for _, given := range others {
		if given {
			p.add(field, "must not be given along with another member")
		}
	}
}

// eventID checks a reference to an event. An empty one would be as if it were not
// there, and so stand for something else.
func (p *problems) eventID(field string, in text) {
	if in.given && (in.value == "" || len(in.value) > maxListCursor) {
		p.add(field, "must be an event's id")
	}
}
