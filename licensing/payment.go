package licensing

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// PaymentProvider names where an order is paid.
type PaymentProvider string

// The payment providers.
const (
	ProviderSandbox PaymentProvider = "sandbox" // of test mode; no money moves
	ProviderStripe  PaymentProvider = "stripe"
	// ProviderOutside: the buyer pays the shop itself, such as by bank transfer, and the shop records the payment.
	ProviderOutside PaymentProvider = "outside"
)

// PaymentProviders lists the payment providers.
func PaymentProviders() []PaymentProvider {
	return []PaymentProvider{ProviderSandbox, ProviderStripe, ProviderOutside}
}

// PaymentKind is what a record of a payment is about.
type PaymentKind string

// The kinds of records of payments.
const (
	KindOfPayment PaymentKind = ""        // the buyer has paid
	KindOfRefund  PaymentKind = "refund"  // money of a payment goes back to the buyer
	KindOfInvoice PaymentKind = "invoice" // the buyer has paid a further invoice of the order's subscription
	// KindOfSecond: the provider has taken the money of an order that was paid already. It goes back; see AddSecond.
	KindOfSecond PaymentKind = "second"
	// KindOfInvoiceRefund: money of an invoice or of a second payment goes back to the buyer; see NoteInvoiceRefund.
	KindOfInvoiceRefund PaymentKind = "invoice_refund"
	KindOfDispute       PaymentKind = "dispute" // the buyer disputes the payment at the bank; see NoteDispute
	// KindOfUnmatched: the provider has taken another amount or currency than the order's, or in the other mode. The
	// record only shows the payment: the order and reports don't count it. See AddUnmatched.
	KindOfUnmatched PaymentKind = "unmatched"
)

// PaymentState is what has become of a payment, a refund or a dispute.
type PaymentState string

// The states of records of payments.
const (
	PaymentDone    PaymentState = ""        // the money has moved
	PaymentPending PaymentState = "pending" // the provider has taken the refund, and has not sent the money yet
	PaymentFailed  PaymentState = "failed"  // the refund has not reached the buyer
	PaymentOpen    PaymentState = "open"    // the dispute is not decided
	PaymentWon     PaymentState = "won"     // the shop keeps the disputed money
	PaymentLost    PaymentState = "lost"    // the buyer keeps the disputed money
)

// Payment is a payment or a refund of an order, as a record of its own: no other order can be paid with the same
// reference of the same provider.
type Payment struct {
	Kind     PaymentKind
	State    PaymentState
	OrderNo  string
	Provider PaymentProvider
	// Reference is the provider's, the shop's own of an outside payment, or our number of a refund. If the refund was
	// made at the provider, it is the provider's id of the refund; see OwnRefund.
	Reference  string
	ProviderID string // the provider's id of a refund, or of the payment of an invoice; empty: there is none
	Refunds    string // of a refund or a dispute: the reference of the payment whose money goes back
	Amount     int64  // in the currency's minor unit
	Currency   string
	PaidAt     time.Time // when the money has moved, as the provider or the shop says; zero: it has not
	RecordedAt time.Time
	By         Actor  // who recorded an outside payment, or requested a refund
	ProductID  string // empty: an older build has recorded the payment
	Fee        *int64 // what the provider keeps of the payment; nil: not known (yet)
	// Subscription is the provider's id of the subscription that a payment has started. The order keeps it, and not the
	// record.
	Subscription string
	PeriodEnd    time.Time // of the period that an invoice pays for; zero: it pays for none
	PeriodStart  time.Time // the record does not keep it
	// Answers counts the provider's answers about a dispute. Counted is how much of a lost dispute counts as refunded;
	// it stays if the dispute is won after all.
	Answers int
	Counted int64
	// Returned is how much of an invoice or of a second payment has gone back. Uncounted is how much of its lost
	// disputes does not count in Returned; see Order.Uncounted.
	Returned  int64
	Uncounted int64
}

// Ref names the record of a payment or a refund of an owner.
func (p *Payment) Ref(owner Owner) Ref {
	switch {
	case (p.Kind == KindOfRefund || p.Kind == KindOfInvoiceRefund) && OwnRefund(p.Reference):
		return RefundRef(owner, p.Reference)
	case p.Kind == KindOfUnmatched: // whose reference may be that of a payment that fits, by a later answer
		return PaymentRef(owner, p.Provider, "unmatched/"+p.Reference)
	}
	return PaymentRef(owner, p.Provider, p.Reference)
}

// RefundRef names the refund of an owner with our number.
func RefundRef(owner Owner, number string) Ref { return PaymentRef(owner, "", number) }

// PaymentRef names the payment of an owner with a provider's reference.
func PaymentRef(owner Owner, provider PaymentProvider, reference string) Ref {
	name := sha256.Sum256([]byte(string(provider) + "\x00" + reference))
	return Ref{Kind: KindPayment, Owner: owner, ID: string(name[:PaymentNameSize])}
}

// PaymentNameSize is the length of the hash that names a payment.
const PaymentNameSize = 16

// PayOutside records a payment that the shop has received itself. Unlike a provider, the shop can be refused: only an
// unpaid or expired order can be paid so. Recording the same payment again is a no-op. AddPayment must create the
// payment's record in the same transaction.
type PayOutside struct {
	PayOrder        // Provider is ProviderOutside, and Payment is the shop's reference
	Amount   *int64 // what was paid; nil: the order's amount
}

func (c PayOutside) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if c.Amount != nil && *c.Amount != o.Amount {
		return Result{}, InvalidField("amount", fmt.Sprintf("must be the amount of the order, %d", o.Amount))
	}
	switch status := o.Status(now); {
	case !o.Interval.IsZero():
		return Result{}, ErrSubscriptionOutside
	case status == OrderUnpaid, status == OrderExpired:
		o.askSoon(now) // the checkout must end: the order is paid
		c.pay(r, status, now)
	case o.Provider == ProviderOutside && o.Payment == c.Payment && !o.PaidAt.IsZero():
	default:
		refused := invalidOrderState(status, "paid")
		refused.Message += ": create another order for this payment, or send the money back"
		return Result{}, refused
	}
	return Result{order: new(*o)}, nil
}

// AddUnmatched creates the record of a payment or an invoice at the provider that does not fit its order. It is a no-op
// if the record exists.
type AddUnmatched struct{ Payment Payment }

// DeviceID is empty: no device is touched.
func (AddUnmatched) DeviceID() string { return "" }

func (AddUnmatched) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c AddUnmatched) apply(r *Record, now time.Time) (Result, error) {
	return r.addFurther(c.Payment, KindOfUnmatched, now), nil
}

// AddPayment creates the record of an order's payment. It is a no-op if the record exists, or if the order was paid
// with another payment. It fails if the record is that of another order's payment.
type AddPayment struct {
	Order    Order // right after the payment
	Provider PaymentProvider
	Payment  string // the reference of the payment
	By       Actor  // who recorded an outside payment
	Fee      *int64 // what the provider keeps of the payment; nil: not known
}

// DeviceID is empty: no device is touched.
func (AddPayment) DeviceID() string { return "" }

func (AddPayment) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c AddPayment) apply(r *Record, now time.Time) (Result, error) {
	o := &c.Order
	switch {
	case o.Payment != c.Payment || o.PaidThrough() != c.Provider:
	case r.Payment == nil:
		r.Payment, r.Changed = &Payment{
			OrderNo: o.OrderNo, Provider: c.Provider, Reference: c.Payment, Amount: o.Amount,
			Currency: o.Currency, PaidAt: o.PaidAt, RecordedAt: now, By: c.By, Fee: c.Fee,
			ProductID: o.ProductID,
			PeriodEnd: o.PaidEnd,
		}, true
	case r.Payment.OrderNo != o.OrderNo:
		return Result{}, InvalidField("reference",
			"must be new for each payment: it is that of the payment of "+r.Payment.OrderNo)
	}
	return Result{order: new(*o)}, nil
}

// AddFee stores the fee in the record of a payment, an invoice or a second payment of an order: a provider may know its
// fee only after the payment is recorded. A known fee never changes, apart from that of a dispute; see NoteDispute.
// Result.Created reports that the record had no fee; then the same transaction must count the fee (CountFee). Otherwise
// AddFee is a no-op, as it is for a payment that has no record, or is of another order.
type AddFee struct {
	OrderNo string
	Fee     int64 // what the provider keeps of the payment, in the currency's minor unit
}

// DeviceID is empty: no device is touched.
func (AddFee) DeviceID() string { return "" }

func (AddFee) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c AddFee) apply(r *Record, _ time.Time) (Result, error) {
	if r.Payment == nil || r.Payment.OrderNo != c.OrderNo || r.Payment.Fee != nil {
		return Result{}, nil
	}
	switch r.Payment.Kind {
	case KindOfPayment, KindOfInvoice, KindOfSecond:
	default:
		return Result{}, nil
	}
	paid := *r.Payment
	paid.Fee = &c.Fee
	r.Payment, r.Changed = &paid, true
	return Result{Created: true}, nil
}

// CountFee adds the fee of a recorded payment to the sum of its order.
type CountFee struct {
	New bool // as AddFee has returned it: otherwise CountFee is a no-op
	Fee int64
}

// DeviceID is empty: no device is touched.
func (CountFee) DeviceID() string { return "" }

func (CountFee) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c CountFee) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if c.New {
		o.addFee(&c.Fee, nil)
		r.Changed = true
	}
	return Result{order: new(*o)}, nil
}
