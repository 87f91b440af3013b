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

// unanswered is a provider that answers one question about a subscription, and no other one until the caller has no
// time any more.
type unanswered struct {
	payment.Provider
	first sync.Once
	held  chan struct{} // receives for each question that is held
}

func (u *unanswered) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	answers := object.Kind != payment.ObjectSubscription
	if !answers {
		u.first.Do(func() { answers = true })
	}
	if answers {
		return u.Provider.Look(ctx, object)
	}
	u.held <- struct{}{}
	<-ctx.Done()
	return payment.State{}, ctx.Err()
}

// TestTurnDoesNotCome: a request whose time ends before its turn to ask about an object has an error of the service. A
// change of a subscription is stored by then, so its outcome is unknown, and the sweep completes the change.
func TestTurnDoesNotCome(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	provider := &unanswered{Provider: s.provider, held: make(chan struct{}, 1)}
	_, desk := s.open(s.store, provider)
	holding, release := context.WithCancel(s.ctx)
	defer release()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_ = desk.Called(holding, owner, payment.Object{Kind: payment.ObjectSubscription, ID: o.Subscription})
	})
	<-provider.held // the callback has asked whose subscription it is, and asks again in its turn
	ctx, cancel := context.WithCancel(s.ctx)
	group.Go(func() {
		for now := o; ctx.Err() == nil && !now.ChangeDue(); {
			now = s.order(o)
		}
		cancel()
	})
	_, _, err := desk.ChangeSubscription(ctx, owner, o.OrderNo,
		licensing.ChangeSubscription{Change: licensing.SubscriptionChange{Kind: licensing.ChangeEnd}}, nil)
	cancel()
	if licensing.ReasonOf(err) != licensing.ReasonOutcomeUnknown {
		t.Errorf("the change returns %v", err)
	}
	release()
	group.Wait()
	s.advance(2 * time.Minute)
	if err := s.desk.AskCheckoutsDue(s.ctx); err != nil {
		t.Error(err)
	}
	if o = s.order(o); o.ChangeDue() || o.CancelAt.IsZero() {
		t.Errorf("after the sweep, the order is %+v", o)
	}
}

// TestTurnOfDisputeDoesNotCome is TestTurnDoesNotCome for a callback about a dispute, which the provider then repeats.
func TestTurnOfDisputeDoesNotCome(t *testing.T) {
	w := newFixture(t)
	s := &stalling{newDashboard(w.bank), make(chan struct{}, 1)}
	_, desk := w.open(w.store, s)
	dispute := payment.Object{Kind: payment.ObjectDispute, ID: "du_1"}
	holding, release := context.WithCancel(w.ctx)
	var group sync.WaitGroup
	group.Go(func() { _ = desk.Called(holding, owner, dispute) })
	<-s.held
	late, cancel := context.WithCancel(w.ctx)
	cancel()
	if err := desk.Called(late, owner, dispute); licensing.ReasonOf(err) != licensing.ReasonUnavailable {
		t.Errorf("the callback returns %v", err)
	}
	other := licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}
	group.Go(func() { _ = desk.Called(holding, other, dispute) })
	select {
	case <-s.held: // a callback to another account does not wait
	case <-w.ctx.Done():
		t.Error("a callback to another account waits")
	}
	release()
	group.Wait()
}
