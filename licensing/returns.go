package licensing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A further payment of an order is a later invoice of its subscription, or a second payment: the provider has taken the
// money of an order that was paid already, by an earlier attempt or outside. A second payment goes back as a whole, by
// itself. An invoice goes back if the shop wants that.
//
// The order has the open refunds of its further payments (Order.Returns), and a sweep sends them: each try is stored
// first (TryReturn). The provider's answer is stored as for a refund in the provider's dashboard: see
// NoteInvoiceRefund. CountInvoiceRefund ends the open refund in the transaction that stores the answer.

// How many open refunds an order may have of its invoices, and of its second payments. Refunds of invoices that the
// provider does not confirm leave room for second payments, which their buyers have paid already.
const (
	maxReturns       = 8
	maxSecondReturns = 32
)

// MaxInvoiceRefunds is how many refunds the invoices of an order may have together. Each has records, and reads those
// before.
const MaxInvoiceRefunds = 200

// ErrReturnsFull is the result of CountSecond for an order with very many open refunds: the provider must report the
// payment again later.
var ErrReturnsFull = errors.New("the order has too many open refunds")

// Return is an open refund of a further payment.
type Return struct {
	Number  string // of the refund: our own
	Of      string // the reference of the further payment
	Amount  int64
	By      Actor
	Second  bool // of a second payment, which stays due until the money is back
	Pending bool // the provider has taken the refund, and has not sent the money yet
	// Tries counts the questions to the provider, also those under earlier numbers.
	Tries int
	// Refused: the provider has not taken the refund. It has refused the latest try, or was not asked under the number.
	Refused bool
	RetryAt time.Time // when a sweep asks the provider again; zero: at once
}

// asked reports whether the provider may have taken the refund: the provider was asked, or has taken it.
func (r *Return) asked() bool { return r.Pending || r.Tries > 0 && !r.Refused }

// OrderReturns are the open refunds of the further payments of an order.
type OrderReturns struct {
	// Returns is never changed in place; nil: there are none. See OpenReturns.
	Returns *[]Return
}

// OpenReturns returns the open refunds of the order's further payments. The caller must not change them.
func (o *OrderReturns) OpenReturns() []Return {
	if o.Returns == nil {
		return nil
	}
	return *o.Returns
}

func (o *OrderReturns) setReturns(list []Return) {
	if o.Returns = nil; len(list) > 0 {
		o.Returns = &list
	}
}

// OpenReturn returns the open refund of a further payment with a number; ok is false if there is none.
func (o *OrderReturns) OpenReturn(number string) (r Return, ok bool) {
	for _, r := range o.OpenReturns() {
		if r.Number == number {
			return r, true
		}
	}
	return Return{}, false
}

// countReturns returns the number of open refunds of second payments, or of invoices.
func (o *OrderReturns) countReturns(second bool) (count int) {
	for _, r := range o.OpenReturns() {
		if r.Second == second {
			count++
		}
	}
	return count
}

// changeReturn replaces an open refund; nil removes it.
func (o *OrderReturns) changeReturn(number string, changed *Return) {
	var list []Return
	for _, r := range o.OpenReturns() {
		switch {
		case r.Number != number:
			list = append(list, r)
		case changed != nil:
			list = append(list, *changed)
		}
	}
	o.setReturns(list)
}

// RefundsDue reports whether any refund of the order is open, and the sum of the open refunds.
func (o *Order) RefundsDue() (due bool, sum int64) {
	due, sum = o.RefundDue, o.OpenRefund()
	for _, r := range o.OpenReturns() {
		due, sum = true, sum+r.Amount
	}
	return due, sum
}

// returnsDue returns when a sweep asks the provider about the open refunds of further payments.
func (o *OrderReturns) returnsDue() (due Due) {
	for _, r := range o.OpenReturns() {
		due = due.or(Due{Kind: DueRefund, At: r.RetryAt})
	}
	return due
}

// AsPaidWith returns the order as if it was paid with a further payment, whose open refund r is that of the order. So a
// provider refunds a further payment as it refunds that of the order.
func (o *Order) AsPaidWith(further *Payment, r Return) Order {
	as := *o
	as.Payment, as.Provider, as.ProductID = further.Reference, further.Provider, further.ProductID
	if further.Kind == KindOfInvoice {
		as.Payment = further.ProviderID
	}
	as.Amount, as.Paid, as.Refunded, as.Refunds = further.Amount, further.Amount, further.Returned, 1+o.InvoiceRefunds
	as.RefundDue, as.RefundNo, as.Refunding, as.RefundPending = true, r.Number, r.Amount, r.Pending
	as.RefundBy, as.RefundTries, as.RefundEnds = r.By, r.Tries, false
	return as
}

// Refund returns the refund of a further payment of an order as its record, without what the provider says.
func (r *Return) Refund(o *Order, further *Payment) Payment {
	return Payment{
		Kind: KindOfInvoiceRefund, OrderNo: o.OrderNo, Provider: further.Provider, Reference: r.Number,
		Refunds: further.Reference, Amount: r.Amount, Currency: o.Currency, By: r.By, ProductID: further.ProductID,
	}
}

// AddSecond creates the record of a second payment of an order. It is a no-op if the provider's reference has a record;
// otherwise Result.Created is true, and the same transaction must count the payment (CountSecond).
type AddSecond struct{ Payment Payment }

// DeviceID is empty: no device is touched.
func (AddSecond) DeviceID() string { return "" }

func (AddSecond) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c AddSecond) apply(r *Record, now time.Time) (Result, error) {
	return r.addFurther(c.Payment, KindOfSecond, now), nil
}

// addFurther creates the record of a further payment of a kind. Result.Created is false if the record exists.
func (r *Record) addFurther(further Payment, kind PaymentKind, now time.Time) Result {
	if r.Payment != nil {
		return Result{}
	}
	further.Kind, further.RecordedAt = kind, now
	if further.PaidAt.IsZero() || further.PaidAt.After(now) {
		further.PaidAt = now
	}
	r.Payment, r.Changed = &further, true
	return Result{Created: true}
}

// CountSecond adds a second payment to its order, whose refund is due from then on. The order must be paid with another
// payment.
type CountSecond struct {
	New     bool // as AddSecond has returned it: otherwise CountSecond is a no-op
	Payment Payment
}

// DeviceID is empty: no device is touched.
func (CountSecond) DeviceID() string { return "" }

func (CountSecond) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c CountSecond) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	switch {
	case err != nil:
		return Result{}, err
	case !c.New:
		return Result{order: new(*o)}, nil
	case o.PaidAt.IsZero() || o.Payment == c.Payment.Reference && o.PaidThrough() == c.Payment.Provider:
		return Result{}, ErrRefundMisfit // it is the payment of the order
	case o.countReturns(true) >= maxSecondReturns:
		return Result{}, ErrReturnsFull
	}
	o.countFurther(&c.Payment)
	o.setReturns(append(slices.Clone(o.OpenReturns()), Return{
		Number: RefundNumber(c.Payment.Reference), Of: c.Payment.Reference, Amount: c.Payment.Amount, By: Provider,
		Second: true,
	}))
	r.recordOrder(EventOrderRefundUpdated, Provider, now)
	return Result{order: new(*o), Created: true}, nil
}

// RequestReturn records the shop's request to refund an invoice of an order's subscription, in whole or in part. A
// request for all that is left is a no-op if such a refund is open or made. Any other request is refused while a refund
// of the invoice is open. It fails with ErrInvoicesChanged if refunds of invoices have changed since the invoice was
// read.
type RequestReturn struct {
	By      Actor
	Number  string  // of the new refund
	Amount  int64   // in the currency's minor unit; 0: all that is left
	Invoice Payment // its record
	Refunds int     // Order.InvoiceRefunds, read no later than Invoice
}

// DeviceID is empty: no device is touched.
func (RequestReturn) DeviceID() string { return "" }

func (RequestReturn) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c RequestReturn) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	open := Return{}
	if at := slices.IndexFunc(o.OpenReturns(), func(r Return) bool { return r.Of == c.Invoice.Reference }); at >= 0 {
		open = o.OpenReturns()[at]
	}
	left := c.Invoice.Amount - c.Invoice.Returned - open.Amount
	switch {
	case o.InvoiceRefunds != c.Refunds:
		return Result{}, ErrInvoicesChanged
	case c.Amount == 0 && left == 0:
		return Result{order: new(*o), open: &open}, nil
	case open.Number != "":
		return Result{}, &Error{Reason: ReasonInvalidOrderState, Message: fmt.Sprintf(
			"a refund of %d, in minor units, of this invoice is not confirmed yet, and %d is left besides: repeat the "+
				"request once refund_pending is 0", open.Amount, left)}
	case c.Amount > left:
		return Result{}, InvalidField("amount",
			fmt.Sprintf("must be at most %d, which is left of the invoice of %d", left, c.Invoice.Amount))
	case o.InvoiceRefunds >= MaxInvoiceRefunds:
		return Result{}, &Error{Reason: ReasonInvalidOrderState, Message: fmt.Sprintf(
			"the invoices of an order can have %d refunds: refund the rest, %d in minor units, at the payment provider",
			MaxInvoiceRefunds, left)}
	case o.countReturns(false) >= maxReturns:
		return Result{}, &Error{Reason: ReasonInvalidOrderState, Message: fmt.Sprintf(
			"%d refunds of the order are not confirmed yet: repeat the request once refund_pending is 0", maxReturns)}
	}
	open = Return{Number: c.Number, Of: c.Invoice.Reference, Amount: cmp.Or(c.Amount, left), By: c.By}
	o.setReturns(append(slices.Clone(o.OpenReturns()), open))
	r.Changed = true
	return Result{order: new(*o), open: &open}, nil
}

// TryReturn records that the service is about to ask the payment provider for the refund of a further payment, and when
// to ask again. If that refund is not open, or not due yet, Result.Return is zero.
type TryReturn struct {
	Number  string
	Waiting bool // for a sweep: see TryRefund
}

// DeviceID is empty: no device is touched.
func (TryReturn) DeviceID() string { return "" }

func (TryReturn) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c TryReturn) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	open, found := o.OpenReturn(c.Number)
	waits := open.RetryAt.After(now) && open.RetryAt.Before(now.Add(RefundRetryMax))
	if !found || c.Waiting && waits {
		return Result{order: new(*o)}, nil
	}
	open.Tries++
	open.Refused, open.RetryAt, r.Changed = false, now.Add(pauseAfter(open.Tries)), true
	o.changeReturn(open.Number, &open)
	return Result{order: new(*o), open: &open}, nil
}

// WithdrawReturn ends the open refund of an invoice: the provider has refused to make it in answer to the latest try,
// and has not taken it before. The refund of a second payment stays due. If a lost dispute of the payment may count
// now, a sweep asks about the dispute again. A refund that the provider has, and that has failed, has a record: see
// NoteInvoiceRefund.
type WithdrawReturn struct {
	Return  Return  // as TryReturn has returned it
	Further Payment // the record of its payment
}

// DeviceID is empty: no device is touched.
func (WithdrawReturn) DeviceID() string { return "" }

func (WithdrawReturn) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c WithdrawReturn) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	open, found := o.OpenReturn(c.Return.Number)
	if found && !open.Pending && open.Tries == c.Return.Tries {
		left := &open
		if open.Refused = true; !open.Second {
			left = nil
		}
		o.changeReturn(open.Number, left)
		o.recountFurther(&c.Further, now)
		if r.Changed = true; left == nil {
			r.recordOrder(EventOrderRefundUpdated, Provider, now)
		}
	}
	return Result{order: new(*o)}, nil
}

// noteReturn stores what happened to a refund of a further payment. further is the payment after the refund. A pending
// refund stays open. Otherwise noteReturn closes the refund of an invoice. The rest of a second payment becomes due
// again, under a new number: a provider repeats the failure of a refund for each request with the old number.
func (o *Order) noteReturn(refund, further *Payment, now time.Time) {
	open, found := o.OpenReturn(refund.Reference)
	switch {
	case refund.State == PaymentPending:
		if found {
			open.Pending = true
			o.changeReturn(open.Number, &open)
		}
	case further.Kind == KindOfInvoice:
		o.changeReturn(refund.Reference, nil)
	default:
		o.dueSecond(further, refund.Reference, o.InvoiceRefunds, now)
	}
}

// dueSecond makes the rest of a second payment due: what neither has gone back nor is on its way back at the provider.
// closed is the number of a refund that has ended; empty: a dispute has changed the rest. Refunds that the provider may
// have taken stay open. But the provider can't make a refund that is larger than the rest that other refunds have left.
// refunds is Order.InvoiceRefunds.
func (o *OrderReturns) dueSecond(second *Payment, closed string, refunds int, now time.Time) {
	left, tries := second.Amount-second.Returned, 0
	for _, r := range o.OpenReturns() {
		if r.Of == second.Reference {
			if tries = max(tries, r.Tries); r.Number != closed && r.Pending {
				left -= r.Amount
			}
		}
	}
	var list []Return
	for _, r := range o.OpenReturns() {
		switch {
		case r.Of != second.Reference, r.Number != closed && r.Pending:
			list = append(list, r)
		case r.Number != closed && r.asked() && (closed == "" || r.Amount <= left):
			list, left = append(list, r), left-r.Amount
		}
	}
	if left > 0 {
		list = append(list, Return{
			Number: fmt.Sprint(RefundNumber(second.Reference), "/", refunds, "/", tries),
			Of:     second.Reference, Amount: left, By: Provider, Second: true,
			Tries: tries, Refused: tries > 0, RetryAt: now.Add(pauseAfter(tries)),
		})
	}
	o.setReturns(list)
}
