package history

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	// ordersOfMany are the orders for many licenses of a history: one is free, and some of the others are refunded.
	ordersOfMany = 3
	// manyLicenses is how many licenses each is for: three transactions issue them.
	manyLicenses = 2*store.MaxNewLicenses + 3
)

// buyMany makes orders for many licenses, which several pay at once, and which are perhaps refunded meanwhile.
func (r *run) buyMany() {
	var group sync.WaitGroup
	for number := range ordersOfMany {
		group.Go(func() {
			random := r.random("many", uint64(number))
			order, made := r.order(random, newMany(number))
			if !made {
				return
			}
			r.mu.Lock()
			r.many[order.OrderNo] = true
			r.mu.Unlock()
			var paying sync.WaitGroup
			for payer := range 2 {
				paying.Go(func() { r.payMany(order, number, payer) })
			}
			if number > 0 && random.IntN(2) == 0 {
				paying.Go(func() { r.refund(nil, order.OrderNo, 1000+number, 0) })
			}
			paying.Wait()
			if number == ordersOfMany-1 || number > 0 && random.IntN(2) == 0 {
				r.refund(nil, order.OrderNo, 1000+number, 1)
			}
		})
	}
	group.Wait()
}

// newMany returns the request for an order for many licenses.
func newMany(number int) service.NewOrder {
	return service.NewOrder{
		ProductID: "pro", Amount: int64(100 * min(number, 1)), Currency: "USD", Quantity: manyLicenses,
		Description: fmt.Sprint("many ", number), BuyerEmail: "many@example.com", Once: once("many", number),
	}
}

// payMany pays an order for many licenses.
func (r *run) payMany(order licensing.Order, number, payer int) {
	if order.Amount > 0 {
		r.bank.take(order)
	}
	r.transact(r.random("payer of many", uint64(number), uint64(payer)),
		deed{What: "pay", Order: order.OrderNo, Payment: "many"},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			return r.desk(p).Confirm(ctx, order, nodetest.SandboxPayment("many"))
		})
}

// issueAll sweeps, when all is well again, until all orders for many licenses have their licenses, and these what they
// must get.
func (r *run) issueAll(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// An order may be stored although its requests got no answer. The next request with the same key returns the order.
	for number := range ordersOfMany {
		random := r.random("many again", uint64(number))
		for made := false; !made && ctx.Err() == nil; {
			var order licensing.Order
			if order, made = r.order(random, newMany(number)); made {
				r.many[order.OrderNo] = true
			}
		}
	}
	for number := range r.many {
		for {
			p := r.slots[0].current()
			_ = p.node.IssueLicensesDue(ctx)
			order, err := p.node.Order(ctx, r.owner, number)
			if err == nil && !order.Issuing() && order.Others == licensing.OthersDone {
				break
			}
			if ctx.Err() != nil {
				r.complain("orders", "%s lacks licenses in the end: %+v, %v", number, order, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// revokesOfUnused are the operations that the deeds of orders may be on licenses that no client uses: the orders are
// for many licenses, or their payments got no answer.
func (r *run) revokesOfUnused(t *timeline) (ops []operation) {
	for number, states := range t.orders {
		if r.bySale[number] != nil {
			continue // see rest
		}
		for _, key := range states[len(states)-1].keys(r.owner) {
			ops = append(ops, r.revokes(newLicense(plan{}, key), number)...)
		}
	}
	return ops
}

// keys returns the keys of the licenses that an order has.
func (o *orderAt) keys(owner licensing.Owner) (keys []licensing.LicenseKey) {
	switch {
	case o.key.IsZero():
		return nil
	case o.quantity <= 1:
		return []licensing.LicenseKey{o.key}
	}
	for i := range o.issued {
		keys = append(keys, testKeys.SeededKey(o.seed, "LIC", owner, i))
	}
	return keys
}

// quantity: an order is for as many licenses as it was made for. Each of them is made once, in the order of the keys
// that follow from the seed, in a revision that also counts it; none is made while a whole refund is due or made.
func (i *inspection) quantity(number string, before, s *orderAt) {
	if s.quantity == 0 && before.quantity == 0 {
		return
	}
	if before.description != "" && s.quantity != before.quantity ||
		before.issued > 0 && s.seed != before.seed || s.issued < before.issued || s.issued > s.quantity {
		i.add("orders", "%s has changed what it is for: %+v, then %+v", number, before, s)
		return
	}
	if s.issued > before.issued && (before.ends() || before.refunded != 0) {
		i.add("orders", "%s got licenses although it is refunded: %+v, then %+v", number, before, s)
	}
	var want []licensing.LicenseID
	for _, key := range s.keys(i.run.owner)[before.issued:] {
		want = append(want, key.ID())
	}
	byID := func(a, b licensing.LicenseID) int { return bytes.Compare(a[:], b[:]) }
	made := slices.SortedFunc(slices.Values(s.licensesMade), byID)
	if slices.SortFunc(want, byID); !slices.Equal(made, want) {
		i.add("orders", "%s has got %d licenses, and counts %d with other keys: %+v, then %+v", number, len(made),
			len(want), before, s)
	}
}

// ends reports whether the open refund of an order is of all that is left of its payment.
func (o *orderAt) ends() bool {
	whole := o.sums.refunding == 0 // without a number of its own
	return o.refundDue && (whole || o.sums.ends || o.sums.refunded+o.sums.refunding >= o.sums.paid)
}

// complete: in the end, a paid order that is not refunded has exactly as many licenses as it is for.
func (i *inspection) complete(number string, last *orderAt) {
	if last.quantity > 1 && last.paid != 0 && last.canceled == 0 && last.refunded == 0 && !last.ends() &&
		last.issued != last.quantity {
		i.add("orders", "%s is for %d licenses and has %d in the end", number, last.quantity, last.issued)
	}
}

// issuesRest reports whether a write issues licenses of an order for many after its payment.
func issuesRest(w *store.Write) bool {
	return w.Ref.Kind == licensing.KindOrder && len(w.Record.Issued) > 0 &&
		w.Record.Order.LicensesIssued > len(w.Record.Issued)
}

// oneMore issues a license more than a node asks for.
func oneMore(writes []store.Write) {
	for i := range writes {
		if w := &writes[i]; issuesRest(w) {
			more := *w.Record.Issued[0]
			more.Key, more.Sequence = mint(more.Owner), 0
			w.Record.Issued = append(slices.Clone(w.Record.Issued), &more)
		}
	}
}

// oneLess leaves out a license that a node issues.
func oneLess(writes []store.Write) {
	for i := range writes {
		if w := &writes[i]; issuesRest(w) {
			w.Record.Issued = w.Record.Issued[1:]
		}
	}
}

// reseeded is a store whose nodes continue the issue of an order's licenses with other keys.
type reseeded struct{ store.Store }

func (s reseeded) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := s.Store.Load(ctx, wants...)
	for i := range snapshots {
		if o := snapshots[i].Record.Order; o != nil && o.Issuing() {
			o.KeySeed[0] += byte(1 + rand.IntN(255))
		}
	}
	return snapshots, err
}

// surviving leaves out some changes of licenses other than the first of an order for many: revocations, which follow a
// refund, or the suspensions of a dispute and their ends.
type surviving struct {
	store.Store
	revocations bool
}

func (s surviving) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	ofPayment := func(w store.Write) bool { return w.Ref.Kind == licensing.KindPayment }
	if !slices.ContainsFunc(change.Writes, ofPayment) && change.Writes[0].Ref.Kind == licensing.KindOrder {
		change.Writes = slices.DeleteFunc(slices.Clone(change.Writes), func(w store.Write) bool {
			l := w.Record.License
			return l != nil && l.OrderNo != "" && l.RevokedAt.IsZero() != s.revocations
		})
	}
	return s.Store.Commit(ctx, change)
}
