package payment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/payment"
)

// stalling is a bank that answers nothing, until the caller has no time any more, about some objects.
type stalling struct {
	*dashboard
	held chan struct{} // receives for each call that is held
}

func (s *stalling) Refund(ctx context.Context, _ licensing.Order, _ licensing.Payment) (payment.State, error) {
	s.held <- struct{}{}
	<-ctx.Done()
	return payment.State{}, ctx.Err()
}

func (s *stalling) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	if object.Kind == payment.ObjectDispute {
		s.held <- struct{}{}
		<-ctx.Done()
		return payment.State{}, ctx.Err()
	}
	return s.dashboard.Look(ctx, object)
}

// TestStalledQuestions: callbacks about many objects, about which the provider answers nothing, keep no other callback
// waiting.
func TestStalledQuestions(t *testing.T) {
	w := newFixture(t)
	const callbacks = 300
	s := &stalling{newDashboard(w.bank), make(chan struct{}, callbacks)}
	_, desk := w.open(w.store, s)
	o := w.paid()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var group sync.WaitGroup
	for i := range callbacks {
		group.Go(func() {
			object := payment.Object{Kind: payment.ObjectDispute, ID: fmt.Sprint("du_", i)}
			if err := desk.Called(ctx, owner, object); err == nil {
				t.Errorf("the callback %d is acknowledged", i)
			}
		})
	}
	for range callbacks {
		select {
		case <-s.held:
		case <-time.After(time.Minute):
			t.Fatal("not all questions are asked")
		}
	}
	w.called(s.set(o, "re_1", "", 30, payment.OutcomeDone), desk)
	if now := w.now(o); now.Refunded != 30 {
		t.Errorf("the order is %+v", now)
	}
	cancel()
	group.Wait()
}

// TestStalledRefund: the first try of a refund ends before the deadline of the shop's request, with time to answer. The
// refund stays due, and goes on once the provider answers.
func TestStalledRefund(t *testing.T) {
	w := newFixture(t)
	s := &stalling{newDashboard(w.bank), make(chan struct{}, 1)}
	_, desk := w.open(w.store, s)
	o := w.paid()
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Second)
	defer cancel()
	_, _, err := desk.Refund(ctx, owner, o.OrderNo, licensing.RequestRefund{}, (*node.Once)(nil))
	if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || ctx.Err() != nil {
		t.Errorf("a stalled refund: %v, %v", err, ctx.Err())
	}
	<-s.held
	if now := w.now(o); !now.RefundDue || now.RefundRetryAt.IsZero() {
		t.Errorf("the order is %+v", now)
	}
	w.clock.advance(time.Minute)
	if err := w.desk.SendRefundsDue(w.ctx); err != nil {
		t.Error(err)
	}
	w.check("after the stall", o, licensing.OrderRefunded)
}
