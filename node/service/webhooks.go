package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Webhooks offers the use cases of webhook endpoints and of the deliveries to them.
type Webhooks struct{ *core }

// EndpointCreation asks for a new webhook endpoint. The caller has validated the fields.
type EndpointCreation struct {
	Owner            licensing.Owner
	URL, Description string
	Types            []licensing.EventType // nil: all
	By               licensing.Actor
	Once             *node.Once // nil: the request came without an Idempotency-Key
	// Stale is the error if the request can no longer be made; see [Grant].
	Stale error
}

// EndpointRotation asks for a new secret of an endpoint. The caller has validated the fields.
type EndpointRotation struct {
	Owner   licensing.Owner
	ID      string
	Overlap time.Duration
	By      licensing.Actor
	Once    *node.Once // nil: the request came without an Idempotency-Key
}

// IssuedEndpoint is an endpoint with its secret, which is shown once and never stored.
type IssuedEndpoint struct {
	Endpoint licensing.Endpoint
	Secret   string // empty in a replay
}

// CreateWebhook creates an endpoint. The endpoint gets the events recorded from now on. If it wants
// events of activations, every activation acknowledged after the endpoint is stored is recorded. With
// in.Once, repeating the request returns the endpoint as it is now, without its secret, and replayed
// is true.
func (w *Webhooks) CreateWebhook(
	ctx context.Context, in EndpointCreation,
) (issued IssuedEndpoint, replayed bool, err error) {
	create := func(ctx context.Context) (cmd licensing.Command, endpointID string, err error) {
		id, err := NewULID(w.engine.Now(), w.cfg.Entropy, "a webhook endpoint")
		if err != nil {
			return nil, "", err
		}
		// Read the position before the endpoint is stored, so that the endpoint misses no later event. Events
		// in between may be sent to the endpoint.
		since, err := w.cfg.Events.EventsNow(ctx, in.Owner)
		if err != nil {
			return nil, "", err
		}
		endpoint := licensing.Endpoint{
			ID: licensing.NewEndpointID(in.Owner, id), URL: in.URL, Description: in.Description, Types: in.Types,
			SecretVersion: 1, MasterID: w.cfg.Ring.Current().ID, Since: string(since),
		}
		return licensing.CreateEndpoint{Owner: in.Owner, Endpoint: endpoint, By: in.By}, endpoint.ID, nil
	}
	stale := cmp.Or(in.Stale, w.budgets.admit(ctx, in.Owner))
	issued, replayed, err = w.issueWebhook(ctx, in.Owner, in.Once, stale, create)
	if err == nil && !replayed {
		w.logWebhook("made", in.Owner, issued.Endpoint.ID, in.By)
	}
	return issued, replayed, err
}

// RotateWebhookSecret gives an endpoint a new secret, derived from the ring's current master key.
// in.Once works as in CreateWebhook.
func (w *Webhooks) RotateWebhookSecret(
	ctx context.Context, in EndpointRotation,
) (issued IssuedEndpoint, replayed bool, err error) {
	rotate := func(context.Context) (cmd licensing.Command, endpointID string, err error) {
		return licensing.RotateEndpointSecret{
			ID: in.ID, MasterID: w.cfg.Ring.Current().ID, Overlap: in.Overlap, By: in.By,
		}, in.ID, nil
	}
	issued, replayed, err = w.issueWebhook(ctx, in.Owner, in.Once, nil, rotate)
	if err == nil && !replayed {
		w.logWebhook("given a new secret", in.Owner, in.ID, in.By)
	}
	return issued, replayed, err
}

// issueWebhook runs a command that creates a secret, at most once per Idempotency-Key. It calls
// makeCommand only if the request is no replay. A replay returns the endpoint without its secret.
func (w *Webhooks) issueWebhook(
	ctx context.Context, owner licensing.Owner, once *node.Once, stale error,
	makeCommand func(context.Context) (cmd licensing.Command, endpointID string, err error),
) (issued IssuedEndpoint, replayed bool, err error) {
	run := func(place node.Place, claim *node.Claim) (issued IssuedEndpoint, replayed bool, err error) {
		if _, err := w.engine.LoadWithClaim(ctx, claim); err != nil {
			return issued, claim.Replayed(), err
		}
		if !claim.Replayed() {
			if err := w.keymaker().useCurrent(ctx); err != nil {
				return issued, false, w.explainRing(err)
			}
			cmd, id, err := makeCommand(ctx)
			if err != nil {
				return issued, false, err
			}
			claim.Effect.EndpointID = id
			result, err := place.DoOnce(ctx, licensing.WebhooksRef(owner), cmd, claim)
			if err != nil {
				return issued, claim.Replayed(), err
			}
			if !claim.Replayed() { // another node may have run the same request first
				issued.Endpoint = *result.Endpoint
				issued.Secret, err = w.cfg.Ring.WebhookSecret(result.Endpoint)
				return issued, false, err
			}
		}
		issued.Endpoint, err = w.readWebhook(ctx, owner, claim.Earlier.EndpointID)
		return issued, err == nil, err
	}
	return idempotent(ctx, w.core, owner, once, stale, run)
}

// ListWebhooks reads the endpoints of an owner, the newest first. The read is linearizable.
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

// Webhook returns an endpoint of an owner. The read is linearizable.
func (w *Webhooks) Webhook(ctx context.Context, owner licensing.Owner, id string) (licensing.Endpoint, error) {
	return admitted(ctx, w.core, owner, func(node.Place) (licensing.Endpoint, error) {
		return w.readWebhook(ctx, owner, id)
	})
}

// readWebhook returns an endpoint. The caller holds an admission place.
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

// UpdateWebhook changes an endpoint and returns the result.
func (w *Webhooks) UpdateWebhook(
	ctx context.Context, owner licensing.Owner, change licensing.UpdateEndpoint,
) (licensing.Endpoint, error) {
	if err := w.budgets.learn(ctx, owner); err != nil {
		return licensing.Endpoint{}, err
	}
	result, err := w.engine.Do(ctx, licensing.WebhooksRef(owner), change)
	if err != nil {
		return licensing.Endpoint{}, err
	}
	w.logWebhook("changed", owner, change.ID, change.By)
	return *result.Endpoint, nil
}

// DeleteWebhook deletes an endpoint. Messages that are being sent may still arrive.
func (w *Webhooks) DeleteWebhook(ctx context.Context, owner licensing.Owner, id string, by licensing.Actor) error {
	_, err := w.engine.Do(ctx, licensing.WebhooksRef(owner), licensing.DeleteEndpoint{ID: id, By: by})
	if err == nil {
		w.logWebhook("deleted", owner, id, by)
	}
	return err
}

// logWebhook logs a change of an endpoint and its actor, since no event reports the change.
func (w *Webhooks) logWebhook(what string, owner licensing.Owner, id string, by licensing.Actor) {
	w.cfg.Log.Info().Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).
		Str("endpoint_id", id).Str("by", string(by)).
		Msg("a webhook endpoint was " + what)
}

// DisableWebhook disables an endpoint on behalf of the service; see licensing.DisableEndpoint.
func (w *Webhooks) DisableWebhook(ctx context.Context, owner licensing.Owner, cmd licensing.DisableEndpoint) error {
	_, err := w.engine.Do(ctx, licensing.WebhooksRef(owner), cmd)
	return err
}

// WebhookSecrets returns the secrets that sign messages to an endpoint now, the current one first.
func (w *Webhooks) WebhookSecrets(e *licensing.Endpoint) ([]string, error) {
	return w.cfg.Ring.WebhookSecrets(e, w.engine.Now())
}
