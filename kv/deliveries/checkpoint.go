package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

// Checkpoint stores the work done, mostly in one transaction. Work that does not fit into one transaction takes
// several. The log goes first, since each delivery must leave a trace; the place in the feed, and the replays, go last.
func (h *holder) Checkpoint(ctx context.Context, done store.Checkpoint) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return store.ErrLeaseLost
	}
	h.todo = append(h.todo, done)
	return h.finish(ctx)
}

// finish makes the remaining transactions of all checkpoints.
func (h *holder) finish(ctx context.Context) error {
	for len(h.steps) > 0 || len(h.todo) > 0 {
		if len(h.steps) == 0 {
			err := h.insist(ctx, func() (err error) {
				h.steps, err = h.layOut(ctx, &h.todo[0]) // for which it may have to read
				return err
			})
			if err != nil {
				return err
			}
			h.todo = h.todo[1:]
		}
		revision, err := h.take(ctx, &h.steps[0])
		if err != nil {
			return err
		}
		step := h.steps[0]
		h.stored, h.revision, h.steps = step.progress, revision, h.steps[1:]
		for _, event := range step.endedPending {
			delete(h.pending, event)
		}
		for _, event := range step.becamePending {
			h.pending[event] = struct{}{}
		}
	}
	return nil
}

// insist calls do until do succeeds or ctx ends: etcd may refuse requests for a while. After any other error the lease
// is lost.
func (h *holder) insist(ctx context.Context, do func() error) error {
	for attempt := 0; ; attempt++ {
		err := do()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case !licensing.NotExecuted(err) && etcd.Classify(err) != etcd.Refused:
			return h.fail(err)
		}
		etcd.PauseBeforeResend(ctx, attempt)
	}
}

// fail marks the lease as lost if no checkpoint can be stored any more. The next holder begins with the
// stored progress.
func (h *holder) fail(err error) error {
	if errors.Is(err, store.ErrLeaseLost) {
		return err
	}
	h.worker.store.etcd.Log.Error().Err(err).Str("endpoint_id", h.endpoint).
		Msg("can't store the deliveries to an endpoint: the next holder repeats them from the stored progress")
	h.lose()
	return fmt.Errorf("%w: %w", store.ErrLeaseLost, err)
}

// take makes one transaction and returns the revision of the progress that the transaction has written. If the answer
// is lost, the growth is unknown, and only a recount counts it.
func (h *holder) take(ctx context.Context, step *checkpointStep) (revision int64, err error) {
	then := append(slices.Clone(step.ops), clientv3.OpPut(keyspace.ProgressKey(h.endpoint),
		string(step.progress.Encode()), clientv3.WithPrevKV()))
	inDoubt := false
	err = h.insist(ctx, func() error {
		response, err := h.worker.store.etcd.Resolve(ctx, "checkpoint", &inDoubt, h.compares(), then, h.guardReads())
		switch {
		case err != nil:
			return fmt.Errorf("%d operations of %d bytes: %w", len(then), step.bytes, err)
		case response.Succeeded:
			revision = response.Header.Revision
			h.worker.store.noteGrowth(h.owner, revision, grown(then, response.Responses))
			return nil
		}
		revision, err = h.explainLoss(response, step)
		return err
	})
	return revision, err
}

var errProgressMoved = errors.New("the progress was changed though the lease is held")

// explainLoss finds out whether an earlier copy of a lost transaction has landed. Only the holder of the lease writes
// the progress, so the number in the progress shows this.
func (h *holder) explainLoss(response *clientv3.TxnResponse, step *checkpointStep) (int64, error) {
	now, err := h.readGuards(response)
	switch {
	case err != nil:
		return 0, err
	case now.progress != nil && now.progress.Number == step.progress.Number && now.revision != h.revision:
		return now.revision, nil
	}
	return 0, errProgressMoved
}
