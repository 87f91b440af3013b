package service

import (
	"context"
	"slices"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Webhooks are the endpoints that events are sent to, and the deliveries to them.
type Webhooks struct{ *core }

// EndpointCreation asks for an endpoint of webhooks. Its members have been checked.
type EndpointCreation struct {
	Owner            licensing.Owner
	URL, Description string
	Types            []licensing.EventType // nil: all
	By               licensing.Actor
	Once             *node.Once // nil: the request came without an Idempotency-Key
	// Stale is why the request can't be made any more, as that of a Grant.
	Stale error
}

// EndpointRotation asks for a new secret of an endpoint. Its members have been
// checked.
type EndpointRotation struct {
	Owner   licensing.Owner
	ID      string
	Overlap time.Duration
	By      licensing.Actor
	Once    *node.Once // nil: the request came without an Idempotency-Key
}

// IssuedEndpoint is an endpoint with what is shown once and kept nowhere.
type IssuedEndpoint struct {
	Endpoint licensing.Endpoint
	Secret   string // empty where the request was made before
}

// CreateWebhook adds an endpoint, whose events are those that are recorded from now
// on; of activations too, if it wants them: each that is acknowledged after the
// endpoint is stored is recorded. With in.Once it is made once: the same request again
// answers the endpoint as it is now, without its secret, and replayed is true.
func (w *Webhooks) CreateWebhook(ctx context.Context, in EndpointCreation) (issued IssuedEndpoint, replayed bool, err error) {
	issued, replayed, err = w.issueWebhook(ctx, in.Owner, in.Once, in.Stale, func(ctx context.Context) (licensing.Command, string, error) {
		id, err := newULID(w.engine.Now(), w.cfg.Entropy, "a webhook endpoint")
		if err != nil {
			return nil, "", err
		}
		// The position is read before the endpoint is stored, so that nothing of what
		// comes after that is missed. What comes between the two may be sent to it.
		since, err := w.cfg.Events.EventsNow(ctx)
		if err != nil {
			return nil, "", err
		}
		endpoint := licensing.Endpoint{
			ID: licensing.NewEndpointID(store.Cell, id), URL: in.URL, Description: in.Description, Types: in.Types,
			SecretVersion: 1, MasterID: w.cfg.Ring.Current().ID, Since: string(since),
		}
		return licensing.CreateEndpoint{Owner: in.Owner, Endpoint: endpoint, By: in.By}, endpoint.ID, nil
	})
	if err == nil && !replayed {
		w.logWebhook("made", in.Owner, issued.Endpoint.ID, in.By)
	}
	return issued, replayed, err
}

// RotateWebhookSecret gives an endpoint a new secret, derived from the ring's current
// master key. With in.Once that is done once, as CreateWebhook does.
func (w *Webhooks) RotateWebhookSecret(ctx context.Context, in EndpointRotation) (issued IssuedEndpoint, replayed bool, err error) {
	issued, replayed, err = w.issueWebhook(ctx, in.Owner, in.Once, nil, func(context.Context) (licensing.Command, string, error) {
		return licensing.RotateEndpointSecret{ID: in.ID, MasterID: w.cfg.Ring.Current().ID, Overlap: in.Overlap, By: in.By}, in.ID, nil
	})
	if err == nil && !replayed {
		w.logWebhook("given a new secret", in.Owner, in.ID, in.By)
	}
	return issued, replayed, err
}

// issueWebhook does what shows a secret, once for an Idempotency-Key. What to do is
// made up only where the same request was not made before.
func (w *Webhooks) issueWebhook(ctx context.Context, owner licensing.Owner, once *node.Once, stale error, what func(context.Context) (licensing.Command, string, error)) (issued IssuedEndpoint, replayed bool, err error) {
	return idempotent(ctx, w.core, owner, once, stale, func(place node.Place, claim *node.Claim) (issued IssuedEndpoint, replayed bool, err error) {
		if _, err := w.engine.LoadWithClaim(ctx, claim); err != nil {
			return issued, claim.Replayed(), err
		}
		if !claim.Replayed() {
			if err := w.keymaker().useCurrent(ctx); err != nil {
				return issued, false, w.explainRing(err)
			}
			cmd, id, err := what(ctx)
			if err != nil {
				return issued, false, err
			}
			claim.Effect.EndpointID = id
			result, err := place.DoOnce(ctx, licensing.WebhooksRef(owner), cmd, claim)
			if err != nil {
				return issued, claim.Replayed(), err
			}
			if !claim.Replayed() { // another node may have been first meanwhile
				issued.Endpoint = *result.Endpoint
				issued.Secret, err = w.cfg.Ring.WebhookSecret(result.Endpoint)
				return issued, false, err
			}
		}
		issued.Endpoint, err = w.readWebhook(ctx, owner, claim.Earlier.EndpointID)
		return issued, err == nil, err
	})
}

// ListWebhooks reads the endpoints of an owner, linearizably, the newest first.
func (w *Webhooks) ListWebhooks(ctx context.Context, owner licensing.Owner) ([]licensing.Endpoint, error) {
	return admitted(ctx, w.core, owner, func(node.Place) ([]licensing.Endpoint, error) {
		webhooks, err := w.readWebhooks(ctx, owner)
		if err != nil || webhooks == nil {
			return nil, err
		}
		slices.Reverse(webhooks.Endpoints)
		return webhooks.Endpoints, nil
	})
}

// Webhook looks an endpoint of an owner up, linearizably.
func (w *Webhooks) Webhook(ctx context.Context, owner licensing.Owner, id string) (licensing.Endpoint, error) {
	return admitted(ctx, w.core, owner, func(node.Place) (licensing.Endpoint, error) {
		return w.readWebhook(ctx, owner, id)
	})
}

// readWebhook looks up an endpoint for somebody who was let in.
func (w *Webhooks) readWebhook(ctx context.Context, owner licensing.Owner, id string) (licensing.Endpoint, error) {
	webhooks, err := w.readWebhooks(ctx, owner)
	if err != nil {
		return licensing.Endpoint{}, err
	}
	if found := webhooks.Find(id); found != nil {
		return *found, nil
	}
	return licensing.Endpoint{}, licensing.ErrWebhookNotFound
}

func (w *Webhooks) readWebhooks(ctx context.Context, owner licensing.Owner) (*licensing.Webhooks, error) {
	loaded, err := w.cfg.Records.Load(ctx, store.Want{Ref: licensing.WebhooksRef(owner)})
	if err != nil {
		return nil, err
	}
	return loaded[0].Record.Webhooks, nil
}

// UpdateWebhook changes an endpoint, and answers it as it is then.
func (w *Webhooks) UpdateWebhook(ctx context.Context, owner licensing.Owner, change licensing.UpdateEndpoint) (licensing.Endpoint, error) {
	result, err := w.engine.Do(ctx, licensing.WebhooksRef(owner), change)
	if err != nil {
		return licensing.Endpoint{}, err
	}
	w.logWebhook("changed", owner, change.ID, change.By)
	return *result.Endpoint, nil
}

// DeleteWebhook removes an endpoint. What is on its way to it may still arrive.
func (w *Webhooks) DeleteWebhook(ctx context.Context, owner licensing.Owner, id string, by licensing.Actor) error {
	_, err := w.engine.Do(ctx, licensing.WebhooksRef(owner), licensing.DeleteEndpoint{ID: id, By: by})
	if err == nil {
		w.logWebhook("deleted", owner, id, by)
	}
	return err
}

// logWebhook notes who has changed an endpoint, since no event tells of it.
func (w *Webhooks) logWebhook(what string, owner licensing.Owner, id string, by licensing.Actor) {
	w.cfg.Log.Info().Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).Str("endpoint_id", id).Str("by", string(by)).
		Msg("a webhook endpoint was " + what)
}

// DisableWebhook disables an endpoint on behalf of the service; see
// licensing.DisableEndpoint.
func (w *Webhooks) DisableWebhook(ctx context.Context, owner licensing.Owner, cmd licensing.DisableEndpoint) error {
	_, err := w.engine.Do(ctx, licensing.WebhooksRef(owner), cmd)
	return err
}

// WebhookSecrets are those that messages to an endpoint are signed with now, the
// present one first.
func (w *Webhooks) WebhookSecrets(e *licensing.Endpoint) ([]string, error) {
	return w.cfg.Ring.WebhookSecrets(e, w.engine.Now())
}
