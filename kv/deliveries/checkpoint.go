package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// Checkpoint stores what was done: mostly in one transaction, and what one does not
// hold in several. The log goes first, since what was delivered must not go without a
// trace; the place in the feed, and the replays, go last.
func (h *holder) Checkpoint(ctx context.Context, done store.Checkpoint) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return store.ErrClaimLost
	}
	h.todo = append(h.todo, done)
	return h.finish(ctx)
}

// finish makes what is left of all checkpoints.
func (h *holder) finish(ctx context.Context) error {
	for len(h.steps) > 0 || len(h.todo) > 0 {
		if len(h.steps) == 0 {
			steps, err := h.layOutAgain(ctx, &h.todo[0])
			if err != nil {
				return err
			}
			h.steps, h.todo = steps, h.todo[1:]
		}
		revision, err := h.take(ctx, &h.steps[0])
		if err != nil {
			return err
		}
		step := h.steps[0]
		h.stored, h.revision, h.steps = step.progress, revision, h.steps[1:]
		for _, event := range step.left {
			delete(h.pending, event)
		}
		for _, event := range step.joined {
			h.pending[event] = struct{}{}
		}
	}
	return nil
}

// layOutAgain lays a checkpoint out, for which something may have to be read.
func (h *holder) layOutAgain(ctx context.Context, done *store.Checkpoint) ([]checkpointStep, error) {
	for attempt := 0; ; attempt++ {
		steps, err := h.layOut(ctx, done)
		switch {
		case err == nil:
			return steps, nil
		case ctx.Err() != nil:
			return nil, etcd.Unavailable(ctx.Err())
		case !licensing.NotExecuted(err):
			return nil, h.fail(err)
		}
		etcd.PauseBeforeReissue(ctx, attempt)
	}
}

// fail marks the claim as lost if no checkpoint can be stored any more. The next holder begins with the
// stored progress.
func (h *holder) fail(err error) error {
	if errors.Is(err, store.ErrClaimLost) {
		return err
	}
	h.worker.store.etcd.Log.Error().Err(err).Str("endpoint_id",
		h.endpoint).Msg("the deliveries to an endpoint can't be stored; they begin anew")
	h.lose()
	return fmt.Errorf("%w: %w", store.ErrClaimLost, err)
}

// take makes one transaction, and makes it again as it is until there is an answer,
// as long as ctx lives. It gives the revision of the progress that it wrote.
func (h *holder) take(ctx context.Context, step *checkpointStep) (int64, error) {
	then := append(slices.Clone(step.ops),
		clientv3.OpPut(layout.ProgressKey(h.endpoint), string(step.progress.Encode())))
	s := h.worker.store
	inDoubt := false
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return 0, etcd.GaveUp(inDoubt, ctx.Err())
		}
		response, err := s.etcd.Txn(ctx, "checkpoint", h.compares(), then, h.guardReads())
		switch etcd.Classify(err) {
		case etcd.Succeeded:
			if response.Succeeded {
				return response.Header.Revision, nil
			}
			return h.explainLoss(response, step)
		case etcd.Rejected:
			return 0, h.fail(fmt.Errorf("%d operations of %d bytes: %w", len(then), step.bytes, err))
		case etcd.Unknown:
			inDoubt = true
			s.etcd.Reissued.Inc()
		}
		etcd.PauseBeforeReissue(ctx, attempt)
	}
}

var errProgressMoved = errors.New("the progress was changed though the claim is held")

// explainLoss finds out whether an earlier copy of a lost transaction has landed. Only the holder of the claim writes
// the progress, so the number in the progress shows this.
func (h *holder) explainLoss(response *clientv3.TxnResponse, step *checkpointStep) (int64, error) {
	now, err := h.readGuards(response)
	switch {
	case err != nil:
		return 0, h.fail(err)
	case now.progress != nil && now.progress.Number == step.progress.Number && now.revision != h.revision:
		return now.revision, nil
	}
	return 0, h.fail(errProgressMoved)
}
