package history

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/payment"
)

const (
	// changerCount is how many orders of a history have subscriptions that the shop changes.
	changerCount = 3
	// changeSteps is how many requests and renewals there are of each.
	changeSteps = 10
	// otherPlan is the product that subscriptions change to, and back from.
	otherPlan = "cloud-plus"
)

// amendments are what the shop has changed about a subscription at the till.
type amendments struct {
	cancelAt time.Time                // zero: the subscription renews
	amount   int64                    // of the next invoices
	present  int64                    // what the present period is paid for with
	number   string                   // of the latest change of the amount
	amounts  []int64                  // of all changes of the amount
	answers  map[string]payment.State // by the number of the request, as idempotency keys keep them
}

// newAmendments returns no amendments; nil for an order of another client.
func newAmendments(o *licensing.Order) *amendments {
	if !strings.HasPrefix(o.Description, "changer ") {
		return nil
	}
	return &amendments{amount: o.Amount, present: o.Amount, answers: map[string]payment.State{}}
}

// Change changes a subscription, or not, and says so, or not. The request arrives late now and then.
func (b *till) Change(ctx context.Context, o licensing.Order, c payment.Change) (payment.State, error) {
	b.mu.Lock()
	delay, luck := time.Duration(0), b.luck()
	if b.trouble {
		delay = time.Duration(b.random.IntN(8)) * time.Millisecond
	}
	b.mu.Unlock()
	time.Sleep(delay)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subscriptions[o.OrderNo]
	switch {
	case luck == 0:
		return payment.State{}, errBank
	case s.changes == nil:
		return b.Sandbox.Change(ctx, o, c)
	}
	answer, err := s.change(c)
	if luck == 2 {
		return payment.State{}, errBank
	}
	return answer, err
}

// change makes a change, once for each number.
func (s *subscription) change(c payment.Change) (payment.State, error) {
	m := s.changes
	if answer, made := m.answers[c.Once]; made && c.Once != "" {
		if c.Amount == 0 {
			answer = s.state()
		}
		return answer, nil
	}
	switch {
	case s.status == payment.OutcomeEnded:
		return payment.State{}, payment.ErrRefused
	case c.End == payment.EndOfPeriod:
		m.cancelAt = s.end
	case c.Resume:
		m.cancelAt = time.Time{}
	default:
		if m.number, m.amounts = c.Once, append(m.amounts, c.Amount); c.Prorate {
			s.bill(c.Amount-m.present, payment.OutcomeDone, time.Time{}, time.Time{})
			m.present = c.Amount
		}
		m.amount = c.Amount
	}
	m.answers[c.Once] = s.state()
	return s.state(), nil
}

// renew ends the period of a subscription that the shop changes. It returns the objects that changed.
func (b *till) renew(orderNo string) []payment.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subscriptions[orderNo]
	objects := []payment.Object{s.state().Object}
	switch m := s.changes; {
	case s.status == payment.OutcomeEnded:
	case !m.cancelAt.IsZero():
		s.status = payment.OutcomeEnded
	default:
		start := s.end
		s.end = s.end.AddDate(0, 1, 0)
		m.present = m.amount
		objects = append(objects, s.bill(m.amount, payment.OutcomeDone, start, s.end))
	}
	return objects
}

// changer is a shop that changes the subscription of an order.
type changer struct {
	*run
	order  string
	random *rand.Rand
	number int
	steps  int
}

// changeSubscriptions makes orders that start subscriptions, which the shop ends with their periods, resumes, and
// changes, at once and with the next period, while the till renews them. Callbacks are lost, doubled and late.
func (r *run) changeSubscriptions() {
	var group sync.WaitGroup
	for number := range changerCount {
		group.Go(func() {
			random := r.random("changer", uint64(number))
			order, made := r.pressed(random, "cloud", "changer", number, 300+number, 1)
			if !made {
				return
			}
			c := &changer{run: r, order: order.OrderNo, random: random, number: number}
			if !c.begun() {
				return
			}
			var late sync.WaitGroup
			for range changeSteps {
				for _, object := range c.step() {
					for range random.IntN(3) {
						wait, p := time.Duration(random.IntN(10))*time.Millisecond, r.anyProcess(random)
						late.Go(func() {
							time.Sleep(wait)
							_, _ = reach(r, p, patience, func(ctx context.Context) error {
								return r.counter(p).Called(ctx, r.owner, object)
							})
						})
					}
				}
			}
			late.Wait()
		})
	}
	group.Wait()
}

// begun reports whether the buyer has paid, and reports that to a node.
func (c *changer) begun() bool {
	for _, s := range c.till.all() {
		if s.OrderNo == c.order && s.Outcome == payment.OutcomeDone {
			p := c.anyProcess(c.random)
			_, _ = reach(c.run, p, patience, func(ctx context.Context) error {
				return c.counter(p).Called(ctx, c.owner, s.Object)
			})
			return true
		}
	}
	return false
}

// step sends one request, or lets the period end. It returns the objects that changed, or may have.
func (c *changer) step() []payment.Object {
	c.steps++
	key := once("changer", 1000*(c.number+1)+c.steps)
	switch c.random.IntN(9) {
	case 0, 1:
		return c.till.renew(c.order)
	case 2:
		c.turn(licensing.ChangeEnd, key)
	case 3, 4:
		c.turn(licensing.ChangeResume, key)
	default:
		c.changePlan(key)
	}
	return []payment.Object{c.subscribed().state().Object}
}

// subscribed returns a copy of the subscription at the till.
func (c *changer) subscribed() *subscription {
	c.till.mu.Lock()
	defer c.till.mu.Unlock()
	s := *c.till.subscriptions[c.order]
	m := *s.changes
	s.changes, m.amounts = &m, slices.Clone(m.amounts)
	return &s
}

// turn ends the subscription with its period, or lets it renew. Once a node has answered, the till knows: unless an
// earlier request for the opposite got no answer, which may still arrive.
func (c *changer) turn(kind licensing.ChangeKind, key *node.Once) {
	opposite := map[licensing.ChangeKind]licensing.ChangeKind{licensing.ChangeEnd: licensing.ChangeResume,
		licensing.ChangeResume: licensing.ChangeEnd}[kind]
	open := c.unanswered(opposite)
	_, done := c.transact(c.random, deed{What: string(kind), Order: c.order},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			return c.ask(ctx, p, kind, key)
		})
	if done && !open {
		c.turned(kind)
	}
}

// ask sends a request to end or to resume the subscription.
func (c *changer) ask(
	ctx context.Context, p *process, kind licensing.ChangeKind, key *node.Once,
) (licensing.Order, error) {
	order, _, err := c.counter(p).ChangeSubscription(ctx, c.owner, c.order, licensing.ChangeSubscription{
		Change: licensing.SubscriptionChange{Kind: kind}}, key)
	return order, err
}

// turned complains if the till does not know a request that was answered.
func (c *changer) turned(kind licensing.ChangeKind) {
	s := c.subscribed()
	if s.status != payment.OutcomeEnded && s.changes.cancelAt.IsZero() != (kind == licensing.ChangeResume) {
		c.complain("changes", "%s: the request %q was answered, and at the till the subscription ends at %d", c.order,
			kind, s.cancelAt())
	}
}

// unanswered reports whether a request about the order has got no answer.
func (c *changer) unanswered(kind licensing.ChangeKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.deeds, func(d deed) bool {
		return d.Order == c.order && d.What == string(kind) && d.Out.Verdict == unknown
	})
}

// changePlan changes the product and the amount, which no other request has. Once a node has answered, the till has
// made the change.
func (c *changer) changePlan(key *node.Once) {
	in := service.NewPlan{Amount: int64(100 + 10*c.steps), Later: c.random.IntN(2) == 0}
	in.ProductID = productFor(in.Amount)
	_, done := c.transact(c.random, deed{What: "change", Order: c.order},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			order, _, err := c.counter(p).ChangePlan(ctx, c.owner, c.order, in, key)
			return order, err
		})
	s := c.subscribed()
	if done && s.status != payment.OutcomeEnded && !slices.Contains(s.changes.amounts, in.Amount) {
		c.complain("changes", "%s: the change to %d was answered, and the till has made %v", c.order, in.Amount,
			s.changes.amounts)
	}
}

// productFor returns the product that subscriptions pay for with an amount.
func productFor(amount int64) string {
	if amount/10%2 == 1 {
		return otherPlan
	}
	return "cloud"
}

// balanceChanges ends and resumes all changed subscriptions, when all is well again, renews them twice, so that all
// changes have taken effect, and changes them once more.
func (r *run) balanceChanges() {
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	p := r.slots[0].current()
	for number, s := range r.till.subscriptions {
		if s.changes == nil || !s.begun {
			continue
		}
		c := &changer{run: r, order: number}
		insist := func(do func() error) {
			for err := do(); err != nil && licensing.ReasonOf(err) != licensing.ReasonInvalidOrderState; err = do() {
				if ctx.Err() != nil {
					r.complain("changes", "%s can't be changed in the end: %v", number, err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
		report := func(objects ...payment.Object) {
			for _, object := range objects {
				insist(func() error { return r.counter(p).Called(ctx, r.owner, object) })
			}
		}
		report(s.objects()...)
		for _, kind := range []licensing.ChangeKind{licensing.ChangeEnd, licensing.ChangeResume} {
			insist(func() error {
				_, err := c.ask(ctx, p, kind, nil)
				return err
			})
			c.turned(kind)
		}
		report(r.till.renew(number)...)
		report(r.till.renew(number)...)
		amount := int64(100 + 10*(changeSteps+1))
		insist(func() error {
			_, _, err := r.counter(p).ChangePlan(ctx, r.owner, number,
				service.NewPlan{ProductID: productFor(amount), Amount: amount}, nil)
			return err
		})
	}
}
