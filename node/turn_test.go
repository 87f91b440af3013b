package node

import (
	"context"
	"sync"
	"testing"
	"time"

	"licet/licensing"
)

// TestFirstTurnIsTheCallersOwn: the caller that runs a new mailbox runs its own call, even if a task is first in the
// queue meanwhile. Another turn's ctx would end with the caller's.
func TestFirstTurnIsTheCallersOwn(t *testing.T) {
	n := stateNode(nil)
	first := &call{kind: kindTask,
		task: func(context.Context) (licensing.Result, error) { return licensing.Result{}, licensing.ErrInternal }}
	box, err := n.post(contestedRef, first)
	if err != nil || box == nil {
		t.Fatalf("the mailbox is %v, %v", box, err)
	}
	ahead := &call{kind: kindTask,
		task: func(context.Context) (licensing.Result, error) { return licensing.Result{}, nil }}
	ahead.deadline = time.Now().Add(time.Minute)
	if running, err := n.post(contestedRef, ahead); err != nil || running != nil {
		t.Fatalf("a second mailbox is %v, %v", running, err)
	}
	if more := n.runTurn(t.Context(), box); !more || first.outcome.Err != licensing.ErrInternal ||
		ahead.state.Load() != callWaiting {
		t.Errorf("after the first turn its call has %v, and the other call is in state %d", first.outcome.Err,
			ahead.state.Load())
	}
	if more := n.runTurn(t.Context(), box); more || ahead.state.Load() != callAnswered {
		t.Errorf("after the second turn the other call is in state %d", ahead.state.Load())
	}
}

// TestCallsWithoutADeadline: a call of work in the background may have no deadline, and may have to wait for its turn.
func TestCallsWithoutADeadline(t *testing.T) {
	n := stateNode(nil)
	running, end := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = n.WithRecordLock(context.Background(), contestedRef, func(context.Context) (licensing.Result, error) {
			close(running)
			<-end
			return licensing.Result{}, nil
		})
	})
	<-running
	group.Go(func() {
		_, err := n.WithRecordLock(context.Background(), contestedRef,
			func(ctx context.Context) (licensing.Result, error) {
				return licensing.Result{}, ctx.Err()
			})
		if err != nil {
			t.Error(err)
		}
	})
	n.AwaitQueued(contestedRef, 1)
	close(end)
	group.Wait()
}
