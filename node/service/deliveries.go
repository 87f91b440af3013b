package service

import (
	"context"
	"errors"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// errNoDeliveries: this node has no part in the delivery of webhooks.
var errNoDeliveries = &licensing.Error{Reason: licensing.ReasonUnavailable, Message: "this node keeps no record of webhook deliveries; nothing was changed"}

// errTooManyReplays tells the owner of an endpoint that the ones before must be done
// first.
var errTooManyReplays = &licensing.Error{
	Reason:  licensing.ReasonReplayLimit,
	Message: "as many replays are waiting for this endpoint as may: wait for one to be done, or enable the endpoint if it is disabled",
}

// ReplayRequest asks for events to be delivered to an endpoint again. Its members have
// been checked, but for whether what they name is there.
type ReplayRequest struct {
	Owner    licensing.Owner
	Endpoint string
	Replay   store.Replay // without its id
	Once     *node.Once   // nil: the request came without an Idempotency-Key
}

// WebhookProgresses reads how far the deliveries to endpoints of an owner are; one to
// which nothing was ever delivered is left out.
func (w *Webhooks) WebhookProgresses(ctx context.Context, owner licensing.Owner, endpoints ...licensing.Endpoint) (progresses map[string]store.DeliveryProgress, err error) {
	if len(endpoints) == 0 || w.cfg.Deliveries == nil {
		return nil, nil
	}
	ids := make([]string, len(endpoints))
	for i := range endpoints {
		ids[i] = endpoints[i].ID
	}
	return admitted(ctx, w.core, owner, func(node.Place) (progresses map[string]store.DeliveryProgress, err error) {
		return w.cfg.Deliveries.Progresses(ctx, ids...)
	})
}

// WebhookDeliveries reads a page of what became of messages to an endpoint of an owner.
// It fails with ErrBadPosition where the page begins nowhere.
func (w *Webhooks) WebhookDeliveries(ctx context.Context, owner licensing.Owner, id string, page store.DeliveryPage) (list store.Deliveries, err error) {
	if _, err := w.Webhook(ctx, owner, id); err != nil {
		return list, err
	}
	if w.cfg.Deliveries == nil {
		return list, errNoDeliveries
	}
	return admittedToList(ctx, w.core, owner, func() (list store.Deliveries, err error) {
		return w.cfg.Deliveries.Deliveries(ctx, id, page)
	})
}

// ReplayWebhook stores a request to deliver events to an endpoint again; the node that
// delivers to the endpoint does so. With in.Once it is stored once: the same request again
// stores nothing, and replayed is true.
func (w *Webhooks) ReplayWebhook(ctx context.Context, in ReplayRequest) (replayed bool, err error) {
	_, replayed, err = idempotent(ctx, w.core, in.Owner, in.Once, nil, func(_ node.Place, claim *node.Claim) (_ struct{}, replayed bool, err error) {
		err = untilClaimed(func() error {
			if _, err := w.engine.LoadWithClaim(ctx, claim); err != nil || claim.Replayed() {
				replayed = claim.Replayed()
				return err
			}
			claim.Effect.EndpointID = in.Endpoint
			err := w.addReplay(ctx, &in, claim.Change(w.engine.Now(), nil).Writes)
			if err != nil && !errors.Is(err, store.ErrClaimTaken) {
				err = w.engine.CommitClaim(ctx, claim, err) // remembers a refusal
			}
			return err
		})
		return struct{}{}, replayed, err
	})
	return replayed, err
}

// addReplay stores a replay along with its claim, provided that all that it names is there.
func (w *Webhooks) addReplay(ctx context.Context, in *ReplayRequest, claims []store.Write) error {
	if _, err := w.readWebhook(ctx, in.Owner, in.Endpoint); err != nil {
		return err
	}
	if w.cfg.Deliveries == nil {
		return errNoDeliveries
	}
	if err := w.checkReplay(ctx, in); err != nil {
		return err
	}
	id, err := newULID(w.engine.Now(), w.cfg.Entropy, "a replay")
	if err != nil {
		return err
	}
	in.Replay.ID = id
	err = w.cfg.Deliveries.AddReplay(ctx, in.Owner, in.Endpoint, in.Replay, claims...)
	if errors.Is(err, store.ErrTooManyReplays) {
		return errTooManyReplays
	}
	return err
}

// checkReplay finds the events that a replay names.
func (w *Webhooks) checkReplay(ctx context.Context, in *ReplayRequest) error {
	if in.Replay.EventID != "" {
		_, err := w.keptEvent(ctx, in.Owner, in.Replay.EventID)
		return err
	}
	if in.Replay.Until == "" {
		return nil
	}
	last, err := w.keptEvent(ctx, in.Owner, in.Replay.Until)
	if err != nil || in.Replay.After == "" {
		return err
	}
	first, err := w.keptEvent(ctx, in.Owner, in.Replay.After)
	if err != nil {
		return err
	}
	if last.Before(first) {
		return &licensing.Error{
			Reason: licensing.ReasonInvalidField, Message: "the request has invalid members",
			Fields: []licensing.FieldProblem{{Field: "until", Problem: "must not come before since"}},
		}
	}
	return nil
}

func (w *Webhooks) keptEvent(ctx context.Context, owner licensing.Owner, id string) (*store.RecordedEvent, error) {
	event, err := w.cfg.Events.Event(ctx, owner, id)
	if err == nil && event == nil {
		err = licensing.ErrEventNotFound
	}
	return event, err
}
