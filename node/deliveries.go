package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
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
	Once     *Once        // nil: the request came without an Idempotency-Key
}

// WebhookProgresses reads how far the deliveries to endpoints of an owner are; one to
// which nothing was ever delivered is left out.
func (n *Node) WebhookProgresses(ctx context.Context, owner licensing.Owner, endpoints ...licensing.Endpoint) (progresses map[string]store.DeliveryProgress, err error) {
	if len(endpoints) == 0 || n.cfg.Deliveries == nil {
		return nil, nil
	}
	ids := make([]string, len(endpoints))
	for i := range endpoints {
		ids[i] = endpoints[i].ID
	}
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer func() { n.admission.leave(who, err) }()
	return n.cfg.Deliveries.Progresses(ctx, ids...)
}

// WebhookDeliveries reads a page of what became of messages to an endpoint of an owner.
// It fails with ErrBadPosition where the page begins nowhere.
func (n *Node) WebhookDeliveries(ctx context.Context, owner licensing.Owner, id string, page store.DeliveryPage) (list store.Deliveries, err error) {
	if _, err := n.Webhook(ctx, owner, id); err != nil {
		return list, err
	}
	if n.cfg.Deliveries == nil {
		return list, errNoDeliveries
	}
	who, err := n.enterList(ctx, owner)
	if err != nil {
		return list, err
	}
	defer func() { n.leaveList(who, err) }()
	return n.cfg.Deliveries.Deliveries(ctx, id, page)
}

// ReplayWebhook stores a request to deliver events to an endpoint again; the node that
// delivers to the endpoint does so. With in.Once it is stored once: the same request again
// stores nothing, and replayed is true.
func (n *Node) ReplayWebhook(ctx context.Context, in ReplayRequest) (replayed bool, err error) {
	if err := n.enter(); err != nil {
		return false, err
	}
	defer n.work.Done()
	who, err := n.admission.enterFor(ctx, in.Owner)
	if err != nil {
		return false, err
	}
	defer func() { n.admission.leave(who, err) }()
	c, end, err := n.begin(in.Owner, in.Once, nil)
	if err != nil {
		return false, err
	}
	defer end()
	for range createTries {
		if _, err := n.loadWithClaim(ctx, c); err != nil || c.replayed() {
			return c.replayed(), err
		}
		c.effect.EndpointID = in.Endpoint
		err := n.addReplay(ctx, &in, c.change(n.Now(), nil).Writes)
		if err != nil && !errors.Is(err, store.ErrClaimTaken) {
			err = n.commitClaim(ctx, c, err) // remembers a refusal
		}
		if !errors.Is(err, store.ErrClaimTaken) {
			return false, err
		}
	}
	return false, licensing.ErrUnavailable
}

// addReplay stores a replay along with its claim, provided that all that it names is there.
func (n *Node) addReplay(ctx context.Context, in *ReplayRequest, claims []store.Write) error {
	if _, err := n.readWebhook(ctx, in.Owner, in.Endpoint); err != nil {
		return err
	}
	if n.cfg.Deliveries == nil {
		return errNoDeliveries
	}
	if err := n.checkReplay(ctx, in); err != nil {
		return err
	}
	id, err := ulid.New(ulid.Timestamp(n.Now()), n.cfg.Entropy)
	if err != nil {
		return fmt.Errorf("make the id of a replay: %w", err)
	}
	in.Replay.ID = id.String()
	err = n.cfg.Deliveries.AddReplay(ctx, in.Owner, in.Endpoint, in.Replay, claims...)
	if errors.Is(err, store.ErrTooManyReplays) {
		return errTooManyReplays
	}
	return err
}

// checkReplay finds the events that a replay names.
func (n *Node) checkReplay(ctx context.Context, in *ReplayRequest) error {
	if in.Replay.EventID != "" {
		_, err := n.keptEvent(ctx, in.Owner, in.Replay.EventID)
		return err
	}
	if in.Replay.Until == "" {
		return nil
	}
	last, err := n.keptEvent(ctx, in.Owner, in.Replay.Until)
	if err != nil || in.Replay.After == "" {
		return err
	}
	first, err := n.keptEvent(ctx, in.Owner, in.Replay.After)
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

func (n *Node) keptEvent(ctx context.Context, owner licensing.Owner, id string) (*store.RecordedEvent, error) {
	event, err := n.cfg.Events.Event(ctx, owner, id)
	if err == nil && event == nil {
		err = licensing.ErrEventNotFound
	}
	return event, err
}
