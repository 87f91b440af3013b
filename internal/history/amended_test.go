package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// requested is a change that an order stores until the till has made it.
type requested struct {
	kind, number string
	later        bool
	plan         planned
}

// planned is what a subscription pays for.
type planned struct {
	product      string
	amount, from int64
}

func (m message) requested(field protowire.Number) (r requested) {
	if change, err := parse([]byte(m.text(field))); err == nil {
		r = requested{change.text(1), change.text(2), change.varints[3] != 0, change.planned(4)}
	}
	return r
}

func (m message) planned(field protowire.Number) (p planned) {
	if plan, err := parse([]byte(m.text(field))); err == nil {
		p = planned{plan.text(1), int64(plan.varints[2]), plan.milli(6)}
	}
	return p
}

// changed reports whether the shop changes the subscription of an order.
func (i *inspection) changed(orderNo string) bool {
	s := i.run.till.subscriptions[orderNo]
	return s != nil && s.changes != nil
}

// changes: the till makes each change of a plan once. The order pays for another product or amount from the revision on
// that records a change at once, or from that of the first invoice of a period that a change was planned for; its
// license gets the product in the same revision. In the end an order pays for what the till has changed.
func (i *inspection) changes(t *timeline) {
	type invoicedAt struct {
		revision int64
		order    string
	}
	invoiced := map[invoicedAt]invoiceAt{}
	for _, writes := range t.invoices {
		invoiced[invoicedAt{writes[0].revision, writes[0].order}] = writes[0]
	}
	for number, s := range i.run.till.subscriptions {
		if s.changes == nil || !s.begun {
			continue
		}
		amounts := slices.Clone(s.changes.amounts)
		if slices.Sort(amounts); len(slices.Compact(amounts)) != len(s.changes.amounts) {
			i.add("changes", "%s: a change was made twice: %v", number, s.changes.amounts)
		}
		states := t.orders[number]
		for n, now := range states {
			if n > 0 {
				i.replanned(&states[n-1].billed, now, invoiced[invoicedAt{now.revision, number}])
			}
			if now.key.IsZero() {
				continue
			}
			want := "cloud"
			if now.billed.plan.product != "" {
				want = now.billed.plan.product
			}
			if l := t.licenseAt(now.key.ID(), now.revision); l == nil || l.product != want {
				i.add("changes", "%s pays for %s, and its license is for another product: %s", number, want, l)
			}
		}
		pays := states[len(states)-1].billed.plan.amount
		if pays == 0 {
			pays = 100
		}
		if s.status != payment.OutcomeEnded && pays != s.changes.present {
			i.add("changes", "%s pays %d in the end, and %d at the till: %+v", number, pays, s.changes.present,
				states[len(states)-1])
		}
	}
}

// replanned checks that what an order pays for has changed for a reason.
func (i *inspection) replanned(before *billed, now *orderAt, invoice invoiceAt) {
	plan := now.billed.plan
	if plan == before.plan {
		return
	}
	change := before.change
	atOnce := change.kind == string(licensing.ChangePlan) && !change.later && now.billed.change.kind == "" &&
		change.plan.amount == plan.amount
	withPeriod := invoice.periodEnd > before.next.from && before.next.amount == plan.amount &&
		now.billed.next.amount == 0
	if !atOnce && !withPeriod {
		i.add("changes", "what is paid for changes without a reason: %+v, then %+v", before, now)
	}
}

// otherNumber asks for each change under another number each time, and says that the change was made under ours.
type otherNumber struct{ payment.Provider }

func (p otherNumber) Change(ctx context.Context, o licensing.Order, c payment.Change) (payment.State, error) {
	ours := c.Once
	c.Once += fmt.Sprint("/", rand.Uint64())
	state, err := p.Provider.Change(ctx, o, c)
	if state.Changed == c.Once {
		state.Changed = ours
	}
	return state, err
}

// unheard says that it has made changes of a kind that it has not made.
type unheard struct {
	payment.Provider
	is func(payment.Change) bool
}

func (p unheard) Change(ctx context.Context, o licensing.Order, c payment.Change) (payment.State, error) {
	if !p.is(c) {
		return p.Provider.Change(ctx, o, c)
	}
	state, err := p.Provider.Look(ctx, payment.Object{Kind: payment.ObjectSubscription, ID: o.Subscription})
	state.Changed = c.Once
	return state, err
}

// early has planned changes take effect at once.
func early(writes []store.Write) {
	for i := range writes {
		if o := writes[i].Record.Order; o != nil && o.Next != nil {
			o.Plan, o.Next = &licensing.Plan{ProductID: o.Next.ProductID, Amount: o.Next.Amount}, nil
		}
	}
}

// unplanned forgets a change that is planned once the subscription renews.
func unplanned(writes []store.Write) {
	eachInvoice(writes, func(_ *licensing.Payment, order *licensing.Order) { order.Plan = nil })
}

// samePlan leaves the license of an order alone whose product changes at once.
type samePlan struct{ store.Store }

func (s samePlan) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if isOfBoth(change) && change.Writes[0].Record.Order.Plan != nil {
		change.Writes = change.Writes[:1]
	}
	return s.Store.Commit(ctx, change)
}
