package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/payment"
)

// bank is the payment provider of a run. It outlives the nodes, takes the money of an order once, refunds it once,
// however often a node asks, and keeps books.
type bank struct {
	payment.Sandbox
	mu       sync.Mutex
	random   *rand.Rand
	trouble  bool
	failing  bool // see bug
	taken    map[string]licensing.Order
	sent     map[string]int64         // by the number of the refund
	promised map[string]bool          // the refunds that are pending, by their numbers
	failed   map[string]bool          // the refunds that have failed, some of them after they were pending
	returned map[string]int64         // by the number of the order: the sum of its refunds
	manual   map[string]payment.State // refunds that were made at the bank, by their ids
}

func newBank(r *run) *bank {
	return &bank{random: r.random("bank"), trouble: true, failing: r.bug.failing, taken: map[string]licensing.Order{},
		sent: map[string]int64{}, promised: map[string]bool{}, failed: map[string]bool{}, returned: map[string]int64{},
		manual: map[string]payment.State{}}
}

var errBank = errors.New("the bank is down")

// take is what a buyer does.
func (b *bank) take(o licensing.Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken[o.OrderNo] = o
}

// Begin is never called: buyers go to the bank themselves.
func (b *bank) Begin(context.Context, licensing.Order) (payment.Step, error) {
	return payment.Step{}, errBank
}

// Refund sends money back, or not, and says so, or not, or says that it will. It refuses only what it has not sent
// back, and whatever is more than it has left. Some refunds fail, at once or after they were pending: then that is the
// answer about their numbers for good.
func (b *bank) Refund(ctx context.Context, o licensing.Order, refund licensing.Payment) (payment.State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	luck := 6
	if b.trouble {
		luck = b.random.IntN(7)
		if b.failing && luck > 4 {
			luck = 4
		}
	}
	sent := b.sent[refund.Reference] > 0
	taken, known := b.taken[o.OrderNo]
	fits := !known || b.returned[o.OrderNo]+refund.Amount <= taken.Amount
	switch {
	case luck == 0:
		return payment.State{}, errBank
	case !sent && (luck == 4 && fits || luck == 1 && b.promised[refund.Reference]), b.failed[refund.Reference]:
		b.failed[refund.Reference] = true
		return payment.State{
			Object:  payment.Object{Kind: payment.ObjectRefund, ID: "re_" + refund.Reference},
			Outcome: payment.OutcomeFailed,
		}, nil
	case !sent && (luck == 1 || !fits):
		return payment.State{}, payment.ErrRefused
	case luck == 3 && !sent:
		b.promised[refund.Reference] = true
		return payment.State{Outcome: payment.OutcomePending}, nil
	}
	if known && !sent {
		b.sent[refund.Reference] = refund.Amount
		b.returned[o.OrderNo] += refund.Amount
	}
	if luck == 2 {
		return payment.State{}, errBank
	}
	return b.Sandbox.Refund(ctx, o, refund)
}

// desk is that of a process.
func (r *run) desk(p *process) *payment.Desk {
	return payment.NewDesk(p.node, payment.ForMode(licensing.Test, r.provider()))
}

// provider is the bank as nodes know it.
func (r *run) provider() payment.Provider {
	if r.bug.bank != nil {
		return r.bug.bank(r.bank)
	}
	return r.bank
}

// endTime is how long a run waits for the end of what it has begun.
func (r *run) endTime() time.Duration {
	if r.bug.name != "" {
		return 10 * time.Second // with some bugs, no retry succeeds
	}
	return busyTime
}

// balance ends the open payments and refunds, when all is well again: the bank reports again what
// it has taken, and due refunds are made.
func (r *run) balance() {
	r.bank.mu.Lock()
	r.bank.trouble = false
	r.bank.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	for number, o := range r.bank.taken {
		for {
			p := r.slots[0].current()
			told := r.tellManual(ctx, p, number)
			d := deed{What: "pay", Order: number, Before: r.etcd.revision(), Call: time.Since(r.started)}
			order, err := r.desk(p).Confirm(ctx, o, nodetest.SandboxPayment("the last word on "+number))
			d.Return, d.After, d.Out = time.Since(r.started), r.etcd.revision(), outputOf(err)
			r.noteDeed(d)
			if err == nil && told == nil && !order.RefundDue {
				break
			}
			if ctx.Err() != nil {
				r.complain("books", "%s can't be completed in the end: %v, %v", number, err, told)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// books: nothing is paid without a license or a refund, nothing is refunded twice, and
// the money of an order is back exactly if the order says so.
func (i *inspection) books(t *timeline) {
	b := i.run.bank
	for number, o := range b.taken {
		states := t.orders[number]
		if len(states) == 0 {
			i.add("books", "%s was paid for, and is not there", number)
			continue
		}
		last := states[len(states)-1]
		if b.returned[number] > o.Amount {
			i.add("books", "%d of %d of the money of %s went back", b.returned[number], o.Amount, number)
		}
		if b.returned[number] != last.sums.refunded {
			i.add("books", "%d of the money of %s went back, and it is stored as %+v", b.returned[number], number, last)
		}
		if last.refunded == 0 && (last.key.IsZero() || last.paid == 0) {
			i.add("books", "the money of %s was taken, and there is neither license nor refund: %+v", number, last)
		}
	}
	for number := range b.returned {
		if _, taken := b.taken[number]; !taken {
			i.add("books", "the money of %s went back, and was never taken", number)
		}
	}
	i.refunds(t)
}

// revokes are the operations on an order's license that its deeds are, or may be. A
// payment may also find that a refund is due, and go on with it. All that may have
// revoked it are one operation, since a search tries each at any place.
func (r *run) revokes(l *license, orderNo string) (ops []operation) {
	wished := slices.ContainsFunc(r.deeds, func(d deed) bool {
		return d.Order == orderNo && (d.What == "refund" || d.What == "refund at the bank")
	})
	if !wished {
		return nil
	}
	perhaps := -1
	for _, d := range r.deeds {
		if d.Order != orderNo || d.What != "refund" && d.What != "refund at the bank" && d.What != "pay" ||
			d.Out.Verdict == nothing || d.Out.Verdict == refused {
			continue
		}
		op := operation{
			Client: int(r.clients.Add(1)), In: input{Key: l.key, Action: revoke}, Out: output{Verdict: unknown,
				Later: true},
			Call: d.Call, Return: d.Return, Before: d.Before, After: d.After,
		}
		switch {
		case d.What == "refund" && d.Out.Verdict == accepted:
			op.Out.Verdict = accepted // so no device is bound after it
		case perhaps >= 0:
			p := &ops[perhaps]
			p.Call, p.Return = min(p.Call, op.Call), max(p.Return, op.Return)
			p.Before, p.After = min(p.Before, op.Before), max(p.After, op.After)
			continue
		default:
			perhaps = len(ops)
		}
		ops = append(ops, op)
	}
	return ops
}
