package service

import (
	"context"
	"errors"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// errNoDeliveries reports that this node has no delivery log.
var errNoDeliveries = &licensing.Error{
	Reason:  licensing.ReasonUnavailable,
	Message: "this node keeps no record of webhook deliveries; nothing was changed",
}

// errTooManyReplays reports that an endpoint has the maximum of waiting replays.
var errTooManyReplays = &licensing.Error{
	Reason: licensing.ReasonReplayLimit,
	Message: "too many replays wait for this endpoint: wait until a replay ends, " +
		"or enable the endpoint if it is disabled",
}

// ReplayRequest asks for events to be delivered to an endpoint again. The caller has validated the
// fields, but not that the endpoint and the events exist.
type ReplayRequest struct {
	Owner    licensing.Owner
	Endpoint string
	Replay   store.Replay // without its id
	Once     *node.Once   // nil: the request came without an Idempotency-Key
}

// WebhookProgresses reads the delivery progress of endpoints of an owner. An endpoint without any
// delivery is left out.
func (w *Webhooks) WebhookProgresses(
	ctx context.Context, owner licensing.Owner, endpoints ...licensing.Endpoint,
) (progresses map[string]store.DeliveryProgress, err error) {
	if len(endpoints) == 0 || w.cfg.Deliveries == nil {
		return nil, nil
	}
	ids := make([]string, len(endpoints))
	for i := range endpoints {
		ids[i] = endpoints[i].ID
	}
	return admitted(ctx, w.core, owner, func(node.Place) (map[string]store.DeliveryProgress, error) {
		return w.cfg.Deliveries.Progresses(ctx, ids...)
	})
}

// WebhookDeliveries reads a page of the deliveries to an endpoint of an owner. It fails with
// ErrBadPosition if page.After is not a position.
func (w *Webhooks) WebhookDeliveries(
	ctx context.Context, owner licensing.Owner, id string, page store.DeliveryPage,
) (list store.Deliveries, err error) {
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

// ReplayWebhook stores a request to deliver events to an endpoint again. The node that delivers to the
// endpoint carries the request out. With in.Once, repeating the request stores nothing, and replayed
// is true.
func (w *Webhooks) ReplayWebhook(ctx context.Context, in ReplayRequest) (replayed bool, err error) {
	run := func(_ node.Place, claim *node.Claim) (_ struct{}, replayed bool, err error) {
		err = retryConflicts(maxClaimTries, func() error {
			if _, err := w.engine.LoadWithClaim(ctx, claim); err != nil || claim.Replayed() {
				replayed = claim.Replayed()
				return err
			}
			claim.Effect.EndpointID = in.Endpoint
			err := w.addReplay(ctx, &in, claim.Change(w.engine.Now(), nil).Writes)
			if err != nil && !errors.Is(err, store.ErrClaimTaken) {
				err = w.engine.CommitClaim(ctx, claim, err) // stores a refusal with the claim
			}
			return err
		})
		return struct{}{}, replayed, err
	}
	_, replayed, err = idempotent(ctx, w.core, in.Owner, in.Once, nil, run)
	return replayed, err
}

// addReplay checks that the endpoint and the events of a replay exist, and stores the replay along
// with its claim.
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
	id, err := NewULID(w.engine.Now(), w.cfg.Entropy, "a replay")
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

// checkReplay returns ErrEventNotFound if an event that the replay names is not kept, and an error if
// the events are in the wrong order.
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
		return licensing.InvalidField("until", "must not come before since")
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
