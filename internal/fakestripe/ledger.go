package fakestripe

import (
	"slices"
	"time"
)

// Entry is a movement of money of an account. All amounts are in Stripe's minor units.
type Entry struct {
	Kind     string // charge, refund, refund_failure, dispute, dispute_reversal
	Key      string // the secret key of the account
	OrderNo  string // from the metadata of the payment intent
	Payment  string // pi_…
	Object   string // the charge, refund or dispute
	Refund   string // our number of a refund; empty: made in the dashboard
	Currency string // upper case
	Amount   int64  // what the buyer pays, less than 0: what goes back
	Fee      int64  // what Stripe keeps; Stripe reports a charge's fee after the capture

	Invoice string    // of a subscription, for a charge
	Until   time.Time // the end of the period that the invoice pays for
}

// book contains the movements of money.
type book struct {
	*state
	ledger []Entry
}

// Ledger returns all movements so far, oldest first.
func (b *book) Ledger() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.catchUp()
	return slices.Clone(b.ledger)
}

// Kept returns what the shop has of an order in the end: what was paid, less what went back. Fees are left out.
func (b *book) Kept(orderNo string) (amount int64) {
	for _, e := range b.Ledger() {
		if e.OrderNo == orderNo {
			amount += e.Amount
		}
	}
	return amount
}

// enter adds a movement for a payment intent.
func (b *book) enter(kind string, intent, o object, amount, fee int64) {
	metadata, _ := intent["metadata"].(map[string]string)
	if of, is := intent["_order"].(map[string]string); is {
		metadata = of
	}
	refund, _ := o["metadata"].(map[string]string)
	entry := Entry{
		Kind: kind, Key: intent.text("_account"), OrderNo: metadata["order_no"], Payment: intent.text("id"),
		Object: o.text("id"), Refund: refund["refund_no"], Currency: upper(intent.text("currency")), Amount: amount,
		Fee: fee, Invoice: intent.text("_invoice"),
	}
	if until := intent.number("_until"); until > 0 {
		entry.Until = time.Unix(until, 0).UTC()
	}
	b.ledger = append(b.ledger, entry)
}
