package connection

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlineSteps is into how many steps a request's time is divided: by up to one
// of them a request's deadline may be early.
const deadlineSteps = 512

// RequestDeadlines gives requests a context that ends when their time is up.
//
// Requests that come within the same few milliseconds share one. It ends by its
// timer and never before, so nobody has to cancel it when a request is answered:
// what waits for the context, waits within the request. A timer for each request
// costs more than all else that is done to its head.
type RequestDeadlines struct {
	Timeout time.Duration
	current atomic.Pointer[sharedDeadline]
}

type sharedDeadline struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time // requests that come later have another one
}

// Context gives the context of a request that came at a time. Its deadline is
// timeout later, or up to a step less.
func (d *RequestDeadlines) Context(came time.Time) context.Context {
	for {
		shared := d.current.Load()
		if shared != nil && came.Before(shared.until) {
			return shared.ctx
		}
		next := &sharedDeadline{until: came.Add(d.Timeout / deadlineSteps)}
		next.ctx, next.cancel = context.WithDeadline(context.Background(), came.Add(d.Timeout))
		if d.current.CompareAndSwap(shared, next) {
			return next.ctx
		}
		next.cancel() // another request was first
	}
}
