package handlers

import (
	"context"

	"licet/licensing"
	"licet/node/service"
)

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
func (c *checks) webhookTypes(field string, in texts) []licensing.EventType {
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
