package connection

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlineSteps is the number of steps in a request's time. A request's deadline is early by at most
// one step.
const deadlineSteps = 512

// RequestDeadlines returns contexts that end when a request's time is up. fasthttp's own context
// ends only at shutdown. RequestDeadlines is safe for concurrent use.
//
// Requests that arrive within the same few milliseconds share a context, because a timer for each
// request costs more than all other work on the request's head. The context ends only by its timer:
// nothing outlives its request by waiting for the context, so nothing needs to cancel it.
type RequestDeadlines struct {
	Timeout time.Duration
	current atomic.Pointer[sharedDeadline]
}

// sharedDeadline is the context of the requests that arrive before a time.
type sharedDeadline struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time
}

// Context returns the context of a request that arrived at a time. Its deadline is Timeout later, or
// up to a step less.
func (d *RequestDeadlines) Context(arrived time.Time) context.Context {
	for {
		shared := d.current.Load()
		if shared != nil && arrived.Before(shared.until) {
			return shared.ctx
		}
		next := &sharedDeadline{until: arrived.Add(d.Timeout / deadlineSteps)}
		next.ctx, next.cancel = context.WithDeadline(context.Background(), arrived.Add(d.Timeout))
		if d.current.CompareAndSwap(shared, next) {
			return next.ctx
		}
		next.cancel() // another request has replaced shared first
	}
}
