package handlers

import (
	"context"
	"slices"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// webhookRoutes are the functions of the routes of webhook endpoints.
type webhookRoutes struct{ *Server }

// webhookEndpoint is a webhook endpoint as responses and events show it.
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

// endpointStatus says whether an endpoint receives events.
type endpointStatus string

const (
	endpointEnabled  endpointStatus = "enabled"
	endpointDisabled endpointStatus = "disabled"
)

// allEventTypes, as the only element, means all types of events.
const allEventTypes = "*"

// issuedWebhook adds the secret, which is shown once. Later it is null.
type issuedWebhook struct {
	Secret *string `json:"secret"`
	webhookEndpoint
}

// webhookWithDelivery adds the progress of the deliveries.
type webhookWithDelivery struct {
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
		Description:     orNull(e.Description),
		EventTypes:      []string{allEventTypes},
		Status:          endpointEnabled,
		DisabledAt:      timestamp(e.DisabledAt),
		DisabledBecause: orNull(string(e.DisabledBecause)),
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

func withDelivery(
	e *licensing.Endpoint, owner licensing.Owner, p store.DeliveryProgress, now time.Time,
) webhookWithDelivery {
	state := deliveryState{
		Pending:     p.Pending,
		Dead:        p.Dead,
		Failing:     timestamp(p.FailingSince),
		LastSuccess: timestamp(p.LastSuccess),
		Skipped:     timestamp(p.SkippedAt),
		Behind:      p.Behind,
	}
	if p.SeenAt.Before(e.ResetAt) {
		state.Failing = timestamp{} // from before the endpoint was changed
	} else if !p.FailingSince.IsZero() && e.Enabled() {
		state.NextAttempt = timestamp(p.NextProbe)
	}
	return webhookWithDelivery{webhookAnswer(e, owner, now), state}
}

// webhookQuery asks for a page of webhook endpoints.
type webhookQuery struct{ pageQuery }

func (q *webhookQuery) check(c *checks) {
	q.list(c, "webhook_endpoints")
	q.checkPage(c)
}

type webhookList struct {
	Endpoints []webhookWithDelivery `json:"webhook_endpoints"`
	Next      *string               `json:"next_cursor"`
}

// listWebhooks pages through the endpoints of the caller's account and mode. One page of full
// length always contains all of them.
func (s webhookRoutes) listWebhooks(ctx context.Context, c *call, q webhookQuery) (webhookList, error) {
	owner, page := c.owner(), q.page
	endpoints, err := s.cfg.Node.ListWebhooks(ctx, owner)
	if err != nil {
		return webhookList{}, err
	}
	// Ids are in the order in which endpoints were made, as far as clocks agree.
	slices.SortFunc(endpoints, func(a, b licensing.Endpoint) int { return strings.Compare(b.ID, a.ID) })
	if page.Before != "" {
		endpoints = slices.DeleteFunc(endpoints, func(e licensing.Endpoint) bool { return e.ID >= string(page.Before) })
	}
	var next *string
	if len(endpoints) > page.Limit {
		endpoints = endpoints[:page.Limit]
		next = q.formatCursor(store.Position(endpoints[page.Limit-1].ID))
	}
	progresses, err := s.cfg.Node.WebhookProgresses(ctx, owner, endpoints...)
	if err != nil {
		return webhookList{}, err
	}
	now := s.cfg.Node.Now()
	return webhookList{
		answers(endpoints, func(e *licensing.Endpoint) webhookWithDelivery {
			return withDelivery(e, owner, progresses[e.ID], now)
		}),
		next,
	}, nil
}

// webhookPath names a webhook endpoint.
type webhookPath struct {
	ID text `path:"endpoint_id" json:"-"`
}

// getWebhook looks an endpoint up.
func (s webhookRoutes) getWebhook(ctx context.Context, c *call, in webhookPath) (webhookWithDelivery, error) {
	endpoint, err := s.cfg.Node.Webhook(ctx, c.owner(), in.ID.value)
	if err != nil {
		return webhookWithDelivery{}, err
	}
	progresses, err := s.cfg.Node.WebhookProgresses(ctx, c.owner(), endpoint)
	if err != nil {
		return webhookWithDelivery{}, err
	}
	return withDelivery(&endpoint, c.owner(), progresses[endpoint.ID], s.cfg.Node.Now()), nil
}

// newWebhook asks for a webhook endpoint.
type newWebhook struct {
	URL            text  `json:"url"`
	Description    text  `json:"description"`
	EventTypes     texts `json:"event_types"`
	idempotencyKey `json:"-"`

	types []licensing.EventType
}

func (in *newWebhook) check(c *checks) {
	c.webhookURL("url", in.URL, true)
	c.line("description", in.Description, maxWebhookDescription)
	in.types = c.webhookTypes("event_types", in.EventTypes)
}

// createWebhook makes an endpoint for the caller's account and mode.
func (s webhookRoutes) createWebhook(ctx context.Context, c *call, in newWebhook) (issuedWebhook, error) {
	issued, replayed, err := s.cfg.Node.CreateWebhook(ctx, service.EndpointCreation{
		Owner:       c.owner(),
		URL:         in.URL.value,
		Description: in.Description.value,
		Types:       in.types,
		By:          c.actor(),
		Once:        in.once,
	})
	return s.issuedWebhook(c, &issued, replayed, err)
}

// webhookRotation asks for a new secret of an endpoint.
type webhookRotation struct {
	webhookPath
	secretRotation
}

// rotateWebhook gives an endpoint a new secret.
func (s webhookRoutes) rotateWebhook(ctx context.Context, c *call, in webhookRotation) (issuedWebhook, error) {
	issued, replayed, err := s.cfg.Node.RotateWebhookSecret(ctx, service.EndpointRotation{
		Owner:   c.owner(),
		ID:      in.ID.value,
		Overlap: in.overlap,
		By:      c.actor(),
		Once:    in.once,
	})
	return s.issuedWebhook(c, &issued, replayed, err)
}

func (s webhookRoutes) issuedWebhook(
	c *call, issued *service.IssuedEndpoint, replayed bool, err error,
) (issuedWebhook, error) {
	c.replayed = replayed
	if err != nil {
		return issuedWebhook{}, err
	}
	return issuedWebhook{orNull(issued.Secret), webhookAnswer(&issued.Endpoint, c.owner(), s.cfg.Node.Now())}, nil
}

// webhookUpdate asks to change an endpoint. Missing members change nothing.
type webhookUpdate struct {
	webhookPath
	URL         text  `json:"url"`
	Description text  `json:"description"`
	EventTypes  texts `json:"event_types"`
	Status      text  `json:"status"`

	types []licensing.EventType
}

func (in *webhookUpdate) check(c *checks) {
	c.webhookURL("url", in.URL, false)
	c.line("description", in.Description, maxWebhookDescription)
	in.types = c.webhookTypes("event_types", in.EventTypes)
	c.oneOf("status", in.Status, string(endpointEnabled), string(endpointDisabled))
}

// updateWebhook changes an endpoint.
func (s webhookRoutes) updateWebhook(ctx context.Context, c *call, in webhookUpdate) (webhookEndpoint, error) {
	change := licensing.UpdateEndpoint{ID: in.ID.value, By: c.actor()}
	if in.URL.given {
		change.URL = &in.URL.value
	}
	if in.Description.given {
		change.Description = &in.Description.value
	}
	if in.EventTypes.given {
		change.Types = &in.types
	}
	if in.Status.given {
		enabled := endpointStatus(in.Status.value) == endpointEnabled
		change.Enabled = &enabled
	}
	endpoint, err := s.cfg.Node.UpdateWebhook(ctx, c.owner(), change)
	if err != nil {
		return webhookEndpoint{}, err
	}
	return webhookAnswer(&endpoint, c.owner(), s.cfg.Node.Now()), nil
}

type webhookDeletion struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// deleteWebhook removes an endpoint.
func (s webhookRoutes) deleteWebhook(ctx context.Context, c *call, in webhookPath) (webhookDeletion, error) {
	if err := s.cfg.Node.DeleteWebhook(ctx, c.owner(), in.ID.value, c.actor()); err != nil {
		return webhookDeletion{}, err
	}
	return webhookDeletion{in.ID.value, true}, nil
}

// webhookURL checks the address that events are sent to. The sender checks it again before each
// attempt.
func (c *checks) webhookURL(field string, in text, required bool) {
	switch {
	case c.describe(field, Limits{Required: required, Format: formatURL}):
	case !in.given && required:
		c.add(field, problemRequired)
	case in.given:
		if problem := c.server.cfg.Webhooks.CheckURL(in.value); problem != "" {
			c.add(field, problem)
		}
	}
}

// webhookTypes parses the types of events that an endpoint receives; nil: all.
func (c *rules) webhookTypes(field string, in texts) []licensing.EventType {
	if c.describe(field, Limits{MinItems: 1, Enum: append([]string{allEventTypes},
		words(licensing.EventTypes())...)}) ||
		!in.given || len(in.value) == 1 && in.value[0] == allEventTypes {
		return nil
	}
	types := parseEventTypes(in.value)
	if types == nil {
		c.add(field, "must be * alone, or one or more kinds of events, each once: "+eventTypeNames())
	}
	return types
}
