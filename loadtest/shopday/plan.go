package main

import (
	"fmt"
	"math/rand/v2"
)

// fate is what happens to an order.
type fate string

const (
	paidOnce     fate = "paid"
	paidTwice    fate = "paid twice"
	paidAtOnce   fate = "paid ten times at once"
	free         fate = "costs nothing"
	late         fate = "paid late"
	lateAtOnce   fate = "paid late, ten times at once"
	ranOut       fate = "ran out"
	canceled     fate = "canceled"
	canceledPage fate = "canceled by the buyer"
	canceledPaid fate = "canceled, then paid"
	raced        fate = "paid and canceled at once"
	leftUnpaid   fate = "left unpaid"
)

// shares returns how many of a thousand orders have which fate. The rest is paid once.
func shares() []share {
	return []share{
		{paidTwice, 100}, {paidAtOnce, 60}, {free, 50}, {late, 60}, {lateAtOnce, 20}, {ranOut, 30},
		{canceled, 20}, {canceledPage, 20}, {canceledPaid, 40}, {raced, 40}, {leftUnpaid, 50},
	}
}

type share struct {
	fate     fate
	thousand int
}

// refund is how an order is refunded.
type refund string

const (
	noRefund       refund = ""
	refundOnce     refund = "once"
	refundRepeated refund = "twice"
	refundReplayed refund = "replayed under its Idempotency-Key"
	refundAtOnce   refund = "at once from both nodes"
	refundRaced    refund = "while devices are activated"
)

// care is what the service desk does to a license.
type care string

const (
	leave     care = "left alone"
	suspend   care = "suspended"
	reinstate care = "suspended and reinstated"
	revoke    care = "revoked"
	renew     care = "renewed to a date"
	extend    care = "extended"
	end       care = "renewed to an end that comes at once"
	limits    care = "given another limit"
	annotate  care = "given other metadata"
	overfill  care = "filled beyond its limit"
	widen     care = "given thirty devices"
	move      care = "moved by its user"
)

// shift is when an order is placed. Orders of the morning expire before their buyers pay.
type shift int

const (
	morning shift = iota
	forenoon
	afternoon
)

// orderPlan is what will happen to an order.
type orderPlan struct {
	n           int // counts from 0
	fate        fate
	made, paid  shift // an order that is paid in the afternoon has the terms of then, whenever it was made
	product     int   // in the catalog
	email       string
	amount      int64
	currency    string
	description string
	metadata    map[string]any
	successURL  string
	devices     int // that are activated once it is paid
	refund      refund
	care        care
}

// String names the order before it has a number.
func (o *orderPlan) String() string { return fmt.Sprintf("order %d (%s)", o.n+1, o.fate) }

// licensed reports whether the order has a license, whatever else happens.
func (o *orderPlan) licensed() bool {
	switch o.fate {
	case paidOnce, paidTwice, paidAtOnce, free, late, lateAtOnce:
		return true
	}
	return false
}

// plan is what will happen on the day. A seed always plans the same day.
type plan struct {
	seed   uint64
	orders []*orderPlan
}

// minOrders is the least number of orders with which everything happens once.
const minOrders = 40

func newPlan(seed uint64, orders, refunds int) *plan {
	p := &plan{seed: seed}
	random := rand.New(rand.NewPCG(seed, 0))
	var fates []fate
	for _, s := range shares() {
		for range max(1, orders*s.thousand/1000) {
			fates = append(fates, s.fate)
		}
	}
	for len(fates) < orders {
		fates = append(fates, paidOnce)
	}
	random.Shuffle(len(fates), func(i, j int) { fates[i], fates[j] = fates[j], fates[i] })
	for n, fate := range fates {
		p.orders = append(p.orders, newOrderPlan(random, n, orders, fate))
	}
	p.assign(random, refunds)
	return p
}

func newOrderPlan(random *rand.Rand, n, orders int, f fate) *orderPlan {
	o := &orderPlan{n: n, fate: f, product: random.IntN(len(catalog())), devices: random.IntN(3), care: leave}
	switch f {
	case late, lateAtOnce, ranOut:
		o.made, o.paid = morning, forenoon
	default:
		o.made = forenoon + shift(random.IntN(2))
		o.paid = max(o.made, forenoon+shift(random.IntN(5)/4))
	}
	switch random.IntN(3) {
	case 0:
		o.currency, o.amount = "JPY", 100+random.Int64N(50_000)
	case 1:
		o.currency, o.amount = "USD", 99+random.Int64N(99_900)
	default:
		o.currency, o.amount = "KWD", 500+random.Int64N(90_000)
	}
	if f == free {
		o.amount, o.paid = 0, o.made
	}
	// One buyer writes the address in different ways, and a few give none.
	if buyer := random.IntN(orders/4 + 1); buyer > 0 {
		name := []string{"buyer", "Buyer", "BUYER"}[random.IntN(3)]
		o.email = fmt.Sprintf("%s-%d+day@example.com", name, buyer)
	}
	if random.IntN(2) == 0 {
		o.description = fmt.Sprintf("Order %d: %s\nfor “you”", n+1, catalog()[o.product].name)
	}
	if random.IntN(3) == 0 {
		o.metadata = map[string]any{"cart": fmt.Sprintf("c-%d", n), "gift": n%2 == 0}
	}
	if random.IntN(5) == 0 {
		o.successURL = fmt.Sprintf("https://shop.example.com/thanks/%d", n+1)
	}
	return o
}

// assign chooses which orders are refunded, and what happens to the licenses of the
// others.
func (p *plan) assign(random *rand.Rand, refunds int) {
	var licensed []*orderPlan
	for _, o := range p.orders {
		if o.licensed() {
			licensed = append(licensed, o)
		}
	}
	random.Shuffle(len(licensed), func(i, j int) { licensed[i], licensed[j] = licensed[j], licensed[i] })
	ways := []refund{refundOnce, refundRepeated, refundReplayed, refundAtOnce, refundRaced}
	refunds = min(refunds, len(licensed))
	for i, o := range licensed[:refunds] {
		o.refund = ways[i%len(ways)]
	}
	cares := []care{suspend, reinstate, revoke, renew, extend, end, limits, annotate, overfill, widen, move, leave,
		leave}
	for i, o := range licensed[refunds:] {
		o.care = cares[i%len(cares)]
		if round := i / len(cares); o.care == move && round%3 != 2 {
			o.product = cloud // the others do not let end users move
		}
	}
}

// those returns the orders that satisfy a condition.
func (p *plan) those(which func(*orderPlan) bool) []*orderPlan {
	var list []*orderPlan
	for _, o := range p.orders {
		if which(o) {
			list = append(list, o)
		}
	}
	return list
}
