package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// deed is a request of a shop or a buyer, with its answer.
type deed struct {
	What    string // create, pay, note, cancel, refund, refund at the bank, redact, suspend, grant, import, try
	Order   string
	Payment string
	Out     output
	Keys    []licensing.LicenseKey // of the order, or of the grant
	// External is the number of the external key of an import.
	External int
	// Device tries the product, for the address with the number External.
	Device string
	Call   time.Duration
	Return time.Duration
	Before int64
	After  int64
}

// transact sends a request about an order, and repeats it, a few times at most, until the answer is success or refusal.
func (r *run) transact(
	random *rand.Rand, d deed, do func(context.Context, *process) (licensing.Order, error),
) (licensing.Order, bool) {
	for range 5 {
		p := r.anyProcess(random)
		type answer struct {
			order licensing.Order
			err   error
		}
		d.Before, d.Call = r.etcd.revision(), time.Since(r.started)
		a, answered := reach(r, p, patience, func(ctx context.Context) (a answer) {
			a.order, a.err = do(ctx, p)
			return a
		})
		d.Return, d.After = time.Since(r.started), r.etcd.revision()
		d.Out = outputOf(a.err)
		failed := d.Out.Reason == licensing.ReasonProviderFailed // then it may go on, or not
		if !answered || failed {
			d.Out = output{Verdict: unknown}
		}
		if d.Order == "" {
			d.Order = a.order.OrderNo
		}
		d.Keys = nil
		if !a.order.LicenseKey.IsZero() {
			d.Keys = []licensing.LicenseKey{a.order.LicenseKey}
		}
		r.noteDeed(d)
		switch d.Out.Verdict {
		case accepted:
			return a.order, true
		case unknown:
			if failed && random.IntN(2) == 0 {
				return licensing.Order{}, false // it leaves it at that
			}
		case refused:
			if d.Out.Reason != licensing.ReasonRequestInProgress {
				return licensing.Order{}, false
			}
			time.Sleep(time.Millisecond)
		}
	}
	return licensing.Order{}, false
}

// order creates an order; ok is false if no answer says so.
func (r *run) order(random *rand.Rand, in service.NewOrder) (order licensing.Order, ok bool) {
	return r.transact(random, deed{What: "create"},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			order, _, err := p.node.CreateOrder(ctx, r.owner, in)
			return order, err
		})
}

// seatNote is the metadata that payers add to their licenses. A redaction may remove it at any time: no client of a
// license reads it.
const seatNote = `{"seat":1}`

// shop makes an order, lets it be paid by several at once and perhaps be
// canceled and refunded meanwhile, forgets its buyer, and uses the license that it
// is for.
func (r *run) shop(number int) {
	random := r.random("shop", uint64(number))
	amount := int64(random.IntN(3) * 100)
	in := service.NewOrder{
		ProductID: "pro", Amount: amount, Currency: "USD",
		Description: fmt.Sprint("shop ", number), BuyerEmail: fmt.Sprint("buyer", number, "@example.com"),
		Metadata: `{"crm":1}`, Once: once("shop", number),
	}
	order, made := r.order(random, in)
	if !made {
		return
	}
	var group sync.WaitGroup
	canceled := make(chan struct{}) // or the cancellation was refused
	cancels, first := random.IntN(3) == 0, random.IntN(2) == 0
	for payer := range 3 {
		group.Go(func() {
			random := r.random("payer", uint64(number), uint64(payer))
			if cancels && first {
				<-canceled
			}
			payment := fmt.Sprint("payment ", payer, " of shop ", number)
			if amount > 0 {
				r.bank.take(order)
			}
			paid, done := r.transact(random, deed{What: "pay", Order: order.OrderNo, Payment: payment},
				func(ctx context.Context, p *process) (licensing.Order, error) {
					return r.desk(p).Confirm(ctx, order, nodetest.SandboxPayment(payment))
				})
			if done && !paid.LicenseKey.IsZero() {
				r.transact(random, deed{What: "note", Order: order.OrderNo},
					func(ctx context.Context, p *process) (licensing.Order, error) {
						cmd := licensing.UpdateLicense{Target: licensing.Target{Key: paid.LicenseKey},
							Metadata: seatNote, CustomerReference: new(seatNote)}
						_, err := p.node.Do(ctx, licensing.LicenseRef(paid.LicenseKey), cmd)
						return licensing.Order{}, err
					})
			}
		})
	}
	if cancels {
		group.Go(func() {
			defer close(canceled)
			random := r.random("canceler", uint64(number))
			var key *node.Once
			if random.IntN(2) == 0 {
				key = once("cancel", number)
			}
			r.transact(random, deed{What: "cancel", Order: order.OrderNo},
				func(ctx context.Context, p *process) (licensing.Order, error) {
					order, _, err := p.node.ChangeOrder(ctx, r.owner, order.OrderNo, licensing.CancelOrder{}, key)
					return order, err
				})
		})
	}
	forget := func() {
		r.transact(r.random("forgetter", uint64(number)), deed{What: "redact", Order: order.OrderNo},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				for {
					done, _, err := p.node.Redact(ctx, r.owner, licensing.Customer{BuyerEmail: in.BuyerEmail}, nil)
					if err != nil || done.Complete {
						return licensing.Order{}, err
					}
				}
			})
	}
	meanwhile := random.IntN(2) == 0
	if meanwhile {
		group.Go(forget)
	}
	group.Wait()
	if !meanwhile {
		group.Go(forget)
	}
	l := r.sold(order.OrderNo)
	if l != nil {
		for client := range l.clients {
			group.Go(func() { r.work(l, client+1) }) // all but the one who creates it
		}
	}
	for n := range []int{0, 1, 1, 2}[random.IntN(4)] {
		group.Go(func() { r.refund(l, order.OrderNo, number, n) })
	}
	if amount > 0 && random.IntN(2) == 0 {
		group.Go(func() { r.refundAtBank(order.OrderNo, number) })
	}
	group.Wait()
}

// refund sends an order's money back, while its license is used.
func (r *run) refund(l *license, orderNo string, shop, number int) {
	random := r.random("refund", uint64(shop), uint64(number))
	for used := random.IntN(20); l != nil && int(l.asked.Load()) < used && !l.spent(); { // or clients stop using it
		time.Sleep(100 * time.Microsecond)
	}
	var key *node.Once
	if random.IntN(2) == 0 {
		key = once("refund", shop) // perhaps another one's
	}
	if number > 0 || random.IntN(2) == 0 {
		r.refundPart(orderNo, shop, number)
	}
	r.transact(random, deed{What: "refund", Order: orderNo},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			order, _, err := r.desk(p).Refund(ctx, r.owner, orderNo, licensing.RequestRefund{}, key)
			if err == nil && order.RefundDue {
				err = &licensing.Error{Reason: licensing.ReasonProviderFailed} // it is pending: the end is open
			}
			return order, err
		})
}

// sold returns the license in a payer's answer, and notes when the license was created: after the first payer's
// request, and before the first payer's answer.
func (r *run) sold(orderNo string) *license {
	r.mu.Lock()
	defer r.mu.Unlock()
	var key licensing.LicenseKey
	op := operation{Client: int(r.clients.Add(1)), Out: output{Verdict: accepted}}
	for _, d := range r.deeds {
		if d.Order != orderNo || d.What != "pay" && d.What != "create" {
			continue
		}
		if op.Call == 0 {
			op.Call = d.Call
		}
		if len(d.Keys) > 0 && (key.IsZero() || d.Return < op.Return) {
			key, op.Return = d.Keys[0], d.Return
		}
	}
	if key.IsZero() {
		return nil
	}
	terms := licensing.DefaultTerms()
	op.In = input{Key: key, Action: create, Max: terms.MaxDevices}
	r.operations = append(r.operations, op)
	l := newLicense(plan{
		name: "sold " + orderNo, max: terms.MaxDevices, pool: 5, clients: 4, each: 10, sold: true,
		odds: []odd{{5, activate}, {3, remove}, {2, get}},
	}, key)
	r.licenses = append(r.licenses, l)
	r.bySale[orderNo] = l
	return l
}

// granted is how many licenses a grant is for: more than one transaction's.
const granted = store.MaxNewLicenses + 8

// grant issues licenses without an order.
func (r *run) grant() {
	random := r.random("grant")
	r.grantAt(func() *process { return r.anyProcess(random) }, "grant", "pro", granted)
}

// grantTime is how long after the beginning of a run a grant is given up: machines may be busy with other tests.
const grantTime = 5 * time.Minute

// grantAt sends the request for licenses of a product, each time at a node that it asks for, until the answer names the
// licenses.
func (r *run) grantAt(next func() *process, what, product string, quantity int) deed {
	d := deed{What: what}
	for d.Out.Verdict != accepted && d.Return < grantTime {
		r.askGrant(next(), &d, service.Grant{ProductID: product, Quantity: quantity, Once: once(what, 0)})
	}
	r.noteDeed(d)
	return d
}

// askGrant sends a request for licenses, and notes the answer.
func (r *run) askGrant(p *process, d *deed, in service.Grant) {
	type answer struct {
		licenses []store.LicenseView
		err      error
	}
	d.Before, d.Call = r.etcd.revision(), time.Since(r.started)
	a, answered := reach(r, p, patience, func(ctx context.Context) (a answer) {
		a.licenses, _, a.err = p.node.Grant(ctx, r.owner, in)
		return a
	})
	d.Return, d.After = time.Since(r.started), r.etcd.revision()
	if d.Out = outputOf(a.err); !answered {
		d.Out = output{Verdict: unknown}
	}
	for _, l := range a.licenses {
		d.Keys = append(d.Keys, l.License.Key)
	}
}
