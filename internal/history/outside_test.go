package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

const (
	// outsideOrders are paid outside; of each two, both get the same reference first.
	outsideOrders = 6
	// recorders record the payment of an order at the same time.
	recorders = 2
)

// payOutside makes orders that the shop pays itself, and records the payments: at the same time, under references that
// other orders get too, and then under references of their own.
func (r *run) payOutside() {
	var group sync.WaitGroup
	for number := range outsideOrders {
		group.Go(func() {
			order, made := r.order(r.random("outside", uint64(number)), service.NewOrder{
				ProductID: "pro", Amount: 100, Currency: "USD", Outside: true,
				Description: fmt.Sprint("outside ", number), BuyerEmail: "outside@example.com",
				Once: once("outside", number),
			})
			if !made {
				return
			}
			for _, reference := range []string{fmt.Sprint("shared ", number/2), fmt.Sprint("own ", number)} {
				var recording sync.WaitGroup
				for recorder := range recorders {
					recording.Go(func() { r.record(order.OrderNo, reference, number, recorder) })
				}
				recording.Wait()
			}
		})
	}
	group.Wait()
}

// record records an outside payment of an order.
func (r *run) record(orderNo, reference string, number, recorder int) {
	random := r.random("record "+reference, uint64(number), uint64(recorder))
	var key *node.Once
	if random.IntN(2) == 0 {
		key = once("record "+reference, number)
	}
	r.transact(random, deed{What: "pay", Order: orderNo, Payment: reference},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			order, _, err := p.node.RecordPayment(ctx, r.owner, orderNo,
				service.OutsidePayment{Reference: reference, By: "key_1", Once: key})
			return order, err
		})
}

// paymentAt is a write of a payment.
type paymentAt struct {
	revision int64
	order    string
	id       string
	fee      int64 // 0: not known
}

// payments: the record of a payment is made with the order that is paid with it, and no two orders are paid with one
// reference. The record changes at most once, when its fee is known.
func (i *inspection) payments(t *timeline) {
	paidWith := map[string]string{}
	for number, states := range t.orders {
		last := states[len(states)-1]
		if last.payment == "" { // unpaid or free
			continue
		}
		name := licensing.PaymentRef(i.run.owner, cmp.Or(last.provider, licensing.ProviderSandbox), last.payment).ID
		if other, twice := paidWith[name]; twice {
			i.add("payments", "%s and %s are paid with %q", number, other, last.payment)
		}
		paidWith[name] = number
		paid := states[slices.IndexFunc(states, func(s *orderAt) bool { return s.paid != 0 })]
		if writes := t.payments[name]; len(writes) == 0 || writes[0].revision != paid.revision ||
			writes[0].order != number || len(writes) > 2 || len(writes) == 2 && writes[0].fee != 0 {
			i.add("payments", "%s was paid with %q, whose record was written at %+v: %+v", number, last.payment, writes,
				paid)
		}
	}
	for name, writes := range t.payments {
		if _, pays := paidWith[name]; !pays {
			i.add("payments", "a payment has a record that pays no order: %+v", writes)
		}
	}
}

// recordless stores payments without their records, now and then.
type recordless struct{ store.Store }

func (s recordless) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	change.Writes = slices.DeleteFunc(slices.Clone(change.Writes),
		func(w store.Write) bool { return w.Ref.Kind == licensing.KindPayment && w.Ref.ID[0]%2 == 0 })
	return s.Store.Commit(ctx, change)
}
