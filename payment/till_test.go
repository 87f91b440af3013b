package payment_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"licet/licensing"
	"licet/payment"
)

// till is a provider with checkouts. It outlives every node.
type till struct {
	payment.Sandbox
	mu       sync.Mutex
	sessions map[string]*session // by the number of the order and the attempt
	spent    int                 // how many more calls of Begin find their attempt spent
	down     error               // the result of every call; nil: the till works
	now      func() time.Time
	refunded map[string]int64           // by payment
	numbers  map[string]map[string]bool // of the refunds, by payment
	kill     *killSwitch                // has a step before and after each call; nil: none
}

// session is a checkout at the till.
type session struct {
	payment.State
	attempt int
}

func newTill(now func() time.Time) *till {
	return &till{sessions: map[string]*session{}, now: now, refunded: map[string]int64{},
		numbers: map[string]map[string]bool{}}
}

func (p *till) Name() licensing.PaymentProvider { return licensing.ProviderStripe }

// enter begins a call.
func (p *till) enter() (leave func(), err error) {
	if p.kill != nil && !p.kill.step() {
		return nil, errDead
	}
	p.mu.Lock()
	if p.down != nil {
		defer p.mu.Unlock()
		return nil, p.down
	}
	return p.mu.Unlock, nil
}

func (p *till) Begin(_ context.Context, o licensing.Order) (payment.Step, error) {
	leave, err := p.enter()
	if err != nil {
		return payment.Step{}, err
	}
	defer leave()
	if p.spent > 0 {
		p.spent--
		return payment.Step{}, payment.ErrAttemptSpent
	}
	key := fmt.Sprint(o.OrderNo, "/", o.Attempt)
	s := p.sessions[key]
	if s == nil {
		s = &session{attempt: o.Attempt, State: payment.State{
			Object:  payment.Object{Kind: payment.ObjectCheckout, ID: "cs_" + key},
			OrderNo: o.OrderNo, Outcome: payment.OutcomeOpen, Amount: o.Amount, Currency: o.Currency,
			URL: "https://till.example/" + key, EndsAt: p.now().Add(30 * time.Minute),
		}}
		p.sessions[key] = s
	}
	step := payment.Step{Checkout: s.ID, EndsAt: s.EndsAt}
	if s.Outcome == payment.OutcomeOpen {
		step.Redirect = s.URL
	}
	if p.kill != nil && !p.kill.step() {
		return payment.Step{}, errDead
	}
	return step, nil
}

func (p *till) Look(_ context.Context, object payment.Object) (payment.State, error) {
	leave, err := p.enter()
	if err != nil {
		return payment.State{}, err
	}
	defer leave()
	for _, s := range p.sessions {
		if s.ID == object.ID || object.Kind == payment.ObjectPayment && s.Payment == object.ID {
			state := s.State
			state.Object = object
			return state, nil
		}
	}
	return payment.State{}, payment.ErrUnknownObject
}

func (p *till) End(_ context.Context, o licensing.Order) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	for _, s := range p.sessions {
		if s.ID == o.Checkout && s.Outcome == payment.OutcomeOpen {
			s.Outcome = payment.OutcomeEnded
		}
	}
	return nil
}

func (p *till) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	leave, err := p.enter()
	if err != nil {
		return payment.State{}, err
	}
	defer leave()
	p.refunded[o.Payment] = refund.Amount
	if p.numbers[o.Payment] == nil {
		p.numbers[o.Payment] = map[string]bool{}
	}
	p.numbers[o.Payment][refund.Reference] = true
	if p.kill != nil && !p.kill.step() {
		return payment.State{}, errDead
	}
	return p.Sandbox.Refund(ctx, o, refund)
}

// changeOpen changes the open sessions of an order: the customer has done something there. It returns the ids of the
// sessions.
func (p *till) changeOpen(orderNo string, change func(*session)) (changed []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.OrderNo == orderNo && s.Outcome == payment.OutcomeOpen {
			change(s)
			changed = append(changed, s.ID)
		}
	}
	return changed
}

// pays makes the customer pay in a session.
func pays(s *session) {
	s.Outcome, s.Payment = payment.OutcomeDone, "pi_"+s.ID
	s.At = s.EndsAt.Add(-20 * time.Minute)
}

// open counts the sessions of an order in which a customer can pay.
func (p *till) open(orderNo string) int { return len(p.changeOpen(orderNo, func(*session) {})) }
