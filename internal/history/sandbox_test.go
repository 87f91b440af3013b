package history

import (
	"context"
	"fmt"
	"sync"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/payment"
)

const (
	// sandboxOrders are the orders of a history about which the sandbox plays.
	sandboxOrders = 4
	// playerCount players play about one order at the same time, each playsATime times.
	playerCount = 3
	playsATime  = 4
)

// playInSandbox makes orders, and plays about them: pending payments that arrive or fail, callbacks twice or late.
func (r *run) playInSandbox() {
	var group sync.WaitGroup
	for number := range sandboxOrders {
		group.Go(func() {
			order, made := r.order(r.random("sandbox", uint64(number)), service.NewOrder{
				ProductID: "pro", Amount: 100, Currency: "USD", Description: fmt.Sprint("sandbox ", number),
				BuyerEmail: "sandbox@example.com", Once: once("sandbox", number),
			})
			if !made {
				return
			}
			r.mu.Lock()
			r.played = append(r.played, order)
			r.mu.Unlock()
			var playing sync.WaitGroup
			for player := range playerCount {
				playing.Go(func() { r.playAbout(order, number, player) })
			}
			playing.Wait()
		})
	}
	group.Wait()
}

func (r *run) playAbout(order licensing.Order, number, player int) {
	random := r.random("player", uint64(number), uint64(player))
	plays := []payment.Play{payment.PlayPayLater, payment.PlayDecline, payment.PlayPayLater, payment.PlayFail,
		payment.PlayCallbackLate, payment.PlayComplete, payment.PlayCallbackTwice}
	for range playsATime {
		play := plays[random.IntN(len(plays))]
		what := "play"
		if play == payment.PlayComplete || play == payment.PlayCallbackTwice {
			what = "pay"
		}
		r.transact(random, deed{What: what, Order: order.OrderNo},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				return sandboxOf(p).play(ctx, order, play)
			})
	}
}

// sandbox is the sandbox as a process has it.
type sandbox struct {
	node *service.Service
	desk *payment.Desk
}

func sandboxOf(p *process) sandbox {
	return sandbox{p.node,
		payment.NewDesk(p.node, payment.ForMode(licensing.Test, payment.Sandbox{Node: p.node}))}
}

func (s sandbox) play(ctx context.Context, o licensing.Order, play payment.Play) (licensing.Order, error) {
	o, err := s.node.Order(ctx, o.Owner, o.OrderNo)
	if err != nil {
		return licensing.Order{}, err
	}
	return s.desk.Play(ctx, o, play)
}

// payPlayed pays all orders that were played about, when all is well again.
func (r *run) payPlayed(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, o := range r.played {
		for {
			d := deed{What: "pay", Order: o.OrderNo, Before: r.etcd.revision(), Call: time.Since(r.started)}
			_, err := sandboxOf(r.slots[0].current()).play(ctx, o, payment.PlayPay)
			d.Return, d.After, d.Out = time.Since(r.started), r.etcd.revision(), outputOf(err)
			r.noteDeed(d)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				r.complain("sandbox", "%s can't be paid in the end: %v", o.OrderNo, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// playedAt is a write of what the sandbox knows about an order.
type playedAt struct {
	revision, paid int64
	attempt        int
	outcome        licensing.SandboxOutcome
}

// sandbox: an attempt is never played after a later one, and the last word about a checkout stays. The time when a
// buyer has paid stays too.
func (i *inspection) sandbox(t *timeline) {
	for number, writes := range t.played {
		if len(t.orders[number]) == 0 {
			i.add("sandbox", "%s was played and is not there", number)
		}
		before := playedAt{}
		for _, now := range writes {
			again := now.attempt == before.attempt
			late := before.outcome == licensing.SandboxLate
			if now.attempt < before.attempt || again && before.outcome.Final() ||
				again && late && (now.outcome != licensing.SandboxPaid || now.paid != before.paid) {
				i.add("sandbox", "%s was %+v, and then %+v", number, before, now)
			}
			before = now
		}
	}
}
