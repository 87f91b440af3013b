package handlers

import (
	"licet/licensing"
	"licet/node/service"
)

// createWebhook makes an endpoint for the caller's account and mode.
func (s *Server) createWebhook(r *request) (any, error) {
	var bad problems
	var url, description text
	var types texts
	err := decodeObject(r.body(), true,
		textMember("url", &url),
		textMember("description", &description),
		textsMember("event_types", &types),
	)
	if err != nil {
		return nil, err
	}
	if !url.given {
		bad.add("url", problemRequired)
	}
	s.webhookURL(&bad, "url", url)
	bad.line("description", description, maxWebhookDescription)
	in := service.EndpointCreation{
		Owner:       r.callerOwner(),
		URL:         url.value,
		Description: description.value,
		Types:       bad.webhookTypes("event_types", types),
		By:          r.actor(),
		Once:        bad.once(r),
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	issued, replayed, err := s.cfg.Node.CreateWebhook(r.ctx, in)
	return s.issuedWebhook(r, &issued, replayed, err)
}

// rotateWebhook gives an endpoint a new secret.
func (s *Server) rotateWebhook(r *request) (any, error) {
	var bad problems
	var overlap text
	if err := decodeOptional(r.body(), textMember("overlap", &overlap)); err != nil {
		return nil, err
	}
	in := service.EndpointRotation{
		Owner:   r.callerOwner(),
		ID:      r.value("endpoint_id"),
		Overlap: bad.overlap("overlap", overlap),
		By:      r.actor(),
		Once:    bad.once(r),
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	issued, replayed, err := s.cfg.Node.RotateWebhookSecret(r.ctx, in)
	return s.issuedWebhook(r, &issued, replayed, err)
}

func (s *Server) issuedWebhook(r *request, issued *service.IssuedEndpoint, replayed bool, err error) (any, error) {
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return issuedWebhook{optional(issued.Secret), webhookAnswer(&issued.Endpoint, r.callerOwner(), s.cfg.Node.Now())}, nil
}

// updateWebhook changes an endpoint. What is left out stays as it is.
func (s *Server) updateWebhook(r *request) (any, error) {
	var bad problems
	var url, description, status text
	var types texts
	err := decodeObject(r.body(), true,
		textMember("url", &url),
		textMember("description", &description),
		textsMember("event_types", &types),
		textMember("status", &status),
	)
	if err != nil {
		return nil, err
	}
	change := licensing.UpdateEndpoint{ID: r.value("endpoint_id"), By: r.actor()}
	s.webhookURL(&bad, "url", url)
	if url.given {
		change.URL = &url.value
	}
	bad.line("description", description, maxWebhookDescription)
	if description.given {
		change.Description = &description.value
	}
	if kinds := bad.webhookTypes("event_types", types); types.given {
		change.Types = &kinds
	}
	if enabled := endpointStatus(status.value) == endpointEnabled; status.given {
		change.Enabled = &enabled
		if !enabled && endpointStatus(status.value) != endpointDisabled {
			bad.add("status", "must be enabled or disabled")
		}
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	endpoint, err := s.cfg.Node.UpdateWebhook(r.ctx, r.callerOwner(), change)
	if err != nil {
		return nil, err
	}
	return webhookAnswer(&endpoint, r.callerOwner(), s.cfg.Node.Now()), nil
}

// deleteWebhook removes an endpoint.
func (s *Server) deleteWebhook(r *request) (any, error) {
	id := r.value("endpoint_id")
	if err := s.cfg.Node.DeleteWebhook(r.ctx, r.callerOwner(), id, r.actor()); err != nil {
		return nil, err
	}
	return struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}{id, true}, nil
}
