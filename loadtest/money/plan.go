package main

import (
	"fmt"
	"math/rand/v2"
)

// fate is what a buyer does with an order.
type fate int

const (
	paysCard           fate = iota
	paysTwice               // presses Pay on two nodes at once, and pays
	paysSecondCard          // after a card that is declined
	paysProven              // authenticates, and pays
	paysBank                // pays from a bank account, which takes days
	paysLate                // pays after the order has expired, in the open checkout
	paysAndReturns          // pays, and wants the money back
	returnsParts            // pays, and gets two parts of the money back
	returnsLater            // pays with a card whose refunds Stripe confirms later
	paysOutside             // pays the shop, which records the payment, twice
	cancels                 // cancels, and tries to pay afterwards
	races                   // cancels and pays at the same time
	hasNoFunds              // leaves after a card without funds
	provesNothing           // fails the authentication, and leaves
	bankFails               // pays from a bank account without funds
	leaves                  // does not press Pay
	disputes                // pays, and disputes the payment; the bank does not decide
	winsDispute             // pays, disputes the payment, and gets the money
	losesDispute            // pays, and disputes the payment in vain
	losesLater              // as winsDispute, and later the bank decides for the shop
	returnsAndDisputes      // pays, gets a part of the money back, and the rest by a dispute
	paysBoth                // pays the shop, and again in the open checkout
	paysBothAndWins         // as paysBoth, disputes the second payment, and gets the money
	paysBothAndLoses        // as paysBoth, and disputes the second payment in vain
	// subscribes, and pays two more invoices
	renews
	// subscribes; the card is declined for the second invoice, and the buyer gives another card
	renewsLate
	// subscribes, and the card is declined for the second invoice
	failsToRenew
	// subscribes, pays a second invoice, and wants the first payment back, which ends the subscription
	endsEarly
	// subscribes, pays a second invoice, disputes the first payment, and gets the money, which ends the subscription
	endsByDispute
	// subscribes, pays a second invoice, disputes it, and gets the money
	winsRenewal
	// subscribes, pays a second invoice, and disputes it in vain
	losesRenewal
	// subscribes, and the shop ends the subscription with its period
	endsWithPeriod
	// as endsWithPeriod, and then the shop lets the subscription renew, which it does
	resumes
	// subscribes, pays the difference to a better product at once, and renews
	upgrades
	// subscribes, and renews for a better product
	upgradesLater
)

var fates = []struct {
	fate
	name  string
	share int // of a hundred
}{
	{paysCard, "pays by card", 8},
	{paysTwice, "presses Pay twice at once, and pays", 6},
	{paysSecondCard, "pays with a second card", 6},
	{paysProven, "authenticates, and pays", 4},
	{paysBank, "pays from a bank account", 5},
	{paysLate, "pays late", 4},
	{paysAndReturns, "pays, and is refunded", 7},
	{returnsParts, "pays, and is refunded in part", 4},
	{returnsLater, "pays, and is refunded later", 2},
	{paysOutside, "pays the shop", 6},
	{cancels, "cancels, and then tries to pay", 5},
	{races, "cancels while paying", 5},
	{hasNoFunds, "has no funds", 3},
	{provesNothing, "fails to authenticate", 2},
	{bankFails, "pays from an empty bank account", 4},
	{leaves, "leaves", 3},
	{disputes, "disputes the payment", 2},
	{winsDispute, "disputes the payment, and wins", 2},
	{losesDispute, "disputes the payment, and loses", 1},
	{losesLater, "disputes the payment, wins, and then loses", 1},
	{returnsAndDisputes, "is refunded in part, and disputes the rest", 1},
	{paysBoth, "pays the shop, and at Stripe", 1},
	{paysBothAndWins, "disputes a second payment, and wins", 1},
	{paysBothAndLoses, "disputes a second payment, and loses", 1},
	{renews, "subscribes", 3},
	{renewsLate, "subscribes, and renews with a second card", 2},
	{failsToRenew, "subscribes, and fails to renew", 2},
	{endsEarly, "subscribes, and is refunded", 2},
	{endsByDispute, "subscribes, and disputes the payment", 1},
	{winsRenewal, "subscribes, disputes the renewal, and wins", 1},
	{losesRenewal, "subscribes, disputes the renewal, and loses", 1},
	{endsWithPeriod, "subscribes, and ends that", 1},
	{resumes, "subscribes, ends that, and resumes", 1},
	{upgrades, "subscribes, and upgrades at once", 1},
	{upgradesLater, "subscribes, and upgrades with the next period", 1},
}

// subscribes reports whether the buyer's order starts a subscription.
func (f fate) subscribes() bool { return f >= renews }

func (f fate) String() string { return fates[f].name }

// price is a currency that the shop sells in.
type price struct {
	currency string
	least    int64 // in the minor unit of ISO 4217; every amount is a multiple of step
	step     int64
	// Stripe counts in units of which so many are one minor unit of ISO 4217.
	stripe int64
}

var prices = []price{
	{"USD", 50, 1, 1}, {"EUR", 50, 1, 1}, {"JPY", 50, 1, 1}, {"ISK", 100, 1, 100}, {"KWD", 100, 10, 1},
}

// buyer is a buyer, and what is known about the order.
type buyer struct {
	n        int
	fate     fate
	price    price
	amount   int64 // of all licenses
	quantity int
	comes    bool // returns to the pay page after the payment at Stripe

	order    string // its number, once it is acknowledged
	payURL   string
	checkout string // at Stripe
	// subscription is the id of the buyer's subscription at Stripe.
	subscription string
	// outside is the reference of a payment that the shop has recorded.
	outside string
	// refunded is how much the service has promised to send back, at the shop's request.
	refunded int64
	// dispute is the id of the buyer's dispute at Stripe. reversed says that the bank has decided for the shop, after
	// the service knew that the buyer had won.
	dispute  string
	reversed bool
	// What the service has promised of a subscription: its status at Stripe in the end, the product of its license, and
	// the sum of its further invoices, or up to 2 % less; zero: nothing is promised.
	status, product string
	invoiced        int64
}

func (b *buyer) String() string { return fmt.Sprintf("buyer %d (%v), order %s", b.n, b.fate, b.order) }

// newPlan plans so many buyers. The same seed always makes the same plan.
func newPlan(seed uint64, purchases int) []*buyer {
	random := rand.New(rand.NewPCG(seed, 1))
	var cards []fate // a hundred, of which each buyer draws one
	for _, f := range fates {
		for range f.share {
			cards = append(cards, f.fate)
		}
	}
	var list []*buyer
	for n := range purchases {
		b := &buyer{n: n, fate: cards[(n*37+random.IntN(10))%len(cards)], price: prices[random.IntN(len(prices))],
			quantity: 1, comes: random.IntN(2) == 0}
		switch chance := random.IntN(200); {
		case chance == 0:
			b.quantity = 33 + random.IntN(40) // more than the payment itself issues
		case chance < 20:
			b.quantity = 2 + random.IntN(5)
		}
		if b.fate.subscribes() {
			b.quantity = 1
		}
		if b.fate == upgrades { // the stand-in does not round the difference as the other currencies need
			b.price = prices[b.n%3]
		}
		b.amount = b.price.least + b.price.step*random.Int64N(9_000)
		list = append(list, b)
	}
	return list
}
