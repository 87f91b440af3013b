package handlers

import (
	"slices"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// webhookEndpoint is the answer of everything that is about one endpoint, and what
// events tell of one.
type webhookEndpoint struct {
	ID              string         `json:"id"`
	URL             string         `json:"url"`
	Description     *string        `json:"description"`
	EventTypes      []string       `json:"event_types"`
	Status          endpointStatus `json:"status"`
	DisabledAt      timestamp      `json:"disabled_at"`
	DisabledBecause *string        `json:"disabled_because"`
	CreatedAt       timestamp      `json:"created_at"`
	PreviousUntil   timestamp      `json:"previous_secret_until"`
	AccountID       string         `json:"account_id"`
	Mode            licensing.Mode `json:"mode"`
}

// endpointStatus tells whether an endpoint gets events.
type endpointStatus string

const (
	endpointEnabled  endpointStatus = "enabled"
	endpointDisabled endpointStatus = "disabled"
)

// allEventTypes, as the only one, stands for all kinds of events.
const allEventTypes = "*"

// issuedWebhook adds what is shown once, and null where it is not shown.
type issuedWebhook struct {
	Secret *string `json:"secret"`
	webhookEndpoint
}

// watchedWebhook adds how far the deliveries are.
type watchedWebhook struct {
	webhookEndpoint
	Delivery deliveryState `json:"delivery"`
}

type deliveryState struct {
	Pending     int       `json:"pending"`
	Dead        int       `json:"dead"`
	Failing     timestamp `json:"failing_since"`
	LastSuccess timestamp `json:"last_success_at"`
	NextAttempt timestamp `json:"next_attempt_at"`
	Skipped     timestamp `json:"skipped_at"`
	Behind      bool      `json:"behind"`
}

func webhookAnswer(e *licensing.Endpoint, owner licensing.Owner, now time.Time) webhookEndpoint {
	answer := webhookEndpoint{
		ID:              e.ID,
		URL:             e.URL,
		Description:     optional(e.Description),
		EventTypes:      []string{allEventTypes},
		Status:          endpointEnabled,
		DisabledAt:      timestamp(e.DisabledAt),
		DisabledBecause: optional(string(e.DisabledBecause)),
		CreatedAt:       timestamp(e.CreatedAt),
		AccountID:       owner.AccountID,
		Mode:            owner.Mode,
	}
	if e.Types != nil {
		answer.EventTypes = words(e.Types)
	}
	if !e.Enabled() {
		answer.Status = endpointDisabled
	}
	if now.Before(e.Previous.Until) {
		answer.PreviousUntil = timestamp(e.Previous.Until)
	}
	return answer
}

func watchedAnswer(e *licensing.Endpoint, owner licensing.Owner, p store.DeliveryProgress, now time.Time) watchedWebhook {
	state := deliveryState{
		Pending:     p.Pending,
		Dead:        p.Dead,
		Failing:     timestamp(p.FailingSince),
		LastSuccess: timestamp(p.LastSuccess),
		Skipped:     timestamp(p.SkippedAt),
		Behind:      p.Behind,
	}
	if p.SeenAt.Before(e.ResetAt) {
		state.Failing = timestamp{} // of what the endpoint was before it was changed
	} else if !p.FailingSince.IsZero() && e.Enabled() {
		state.NextAttempt = timestamp(p.NextProbe)
	}
	return watchedWebhook{webhookAnswer(e, owner, now), state}
}

// listWebhooks answers all endpoints of the caller's account and mode: there are never
// more than fit on one page, so that only a page that is asked to be shorter has another.
func (s *Server) listWebhooks(r *request) (any, error) {
	q := newListQuery("webhook_endpoints", r)
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	endpoints, err := s.cfg.Node.ListWebhooks(r.ctx, r.callerOwner())
	if err != nil {
		return nil, err
	}
	// Ids are in the order in which endpoints were made, as well as clocks agree.
	slices.SortFunc(endpoints, func(a, b licensing.Endpoint) int { return strings.Compare(b.ID, a.ID) })
	if page.Before != "" {
		endpoints = slices.DeleteFunc(endpoints, func(e licensing.Endpoint) bool { return e.ID >= string(page.Before) })
	}
	var next *string
	if len(endpoints) > page.Limit {
		endpoints = endpoints[:page.Limit]
		next = q.formatCursor(store.Position(endpoints[page.Limit-1].ID))
	}
	progresses, err := s.cfg.Node.WebhookProgresses(r.ctx, r.callerOwner(), endpoints...)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Node.Now()
	return struct {
		Endpoints []watchedWebhook `json:"webhook_endpoints"`
		Next      *string          `json:"next_cursor"`
	}{
		answers(endpoints, func(e *licensing.Endpoint) watchedWebhook {
			return watchedAnswer(e, r.callerOwner(), progresses[e.ID], now)
		}),
		next,
	}, nil
}

// getWebhook looks an endpoint up.
func (s *Server) getWebhook(r *request) (any, error) {
	endpoint, err := s.cfg.Node.Webhook(r.ctx, r.callerOwner(), r.value("endpoint_id"))
	if err != nil {
		return nil, err
	}
	progresses, err := s.cfg.Node.WebhookProgresses(r.ctx, r.callerOwner(), endpoint)
	if err != nil {
		return nil, err
	}
	return watchedAnswer(&endpoint, r.callerOwner(), progresses[endpoint.ID], s.cfg.Node.Now()), nil
}

// webhookURL checks where events are to be sent to. Where that leads is judged once
// more whenever something is sent.
func (s *Server) webhookURL(bad *problems, field string, in text) {
	if problem := s.cfg.Webhooks.CheckURL(in.value); in.given && problem != "" {
		bad.add(field, problem)
	}
}

// webhookTypes reads which kinds of events an endpoint is to get; nil: all.
func (p *problems) webhookTypes(field string, in texts) []licensing.EventType {
	if !in.given || len(in.values) == 1 && in.values[0] == allEventTypes {
		return nil
	}
	types := make([]licensing.EventType, 0, len(in.values))
	for _, name := range in.values {
		kind := licensing.EventType(name)
		if !slices.Contains(licensing.EventTypes(), kind) || slices.Contains(types, kind) {
			types = nil
			break
		}
		types = append(types, kind)
	}
	if len(types) == 0 {
		p.add(field, "must be * alone, or one or more kinds of events, each once: "+strings.Join(words(licensing.EventTypes()), ", "))
		return nil
	}
	return types
}
