package licensing

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// A buyer may dispute a payment at the bank. The bank takes the money from the shop, and decides weeks later: the shop
// has won, or it has lost, and the buyer keeps the money. A decision may be reversed. So the answers about a dispute
// can go back, and its record counts them: NoteDispute carries the record that was read before the question, and
// PutDispute refuses an answer if another answer was recorded since.
//
// A lost dispute counts as refunded, as far as the payment is not refunded already, and the provider can't have taken a
// refund. A refund that the provider was not asked for ends if nothing is left for it: the provider refuses to refund a
// payment that was lost in a dispute. If the provider was asked, the answer may be lost, so the next try decides. What
// does not count is Order.Uncounted. Once more may count, as a refund was refused or has failed, a sweep asks about the
// dispute again, and NoteDispute counts again. While a dispute is open, the order names it, and a sweep asks about it
// in case callbacks do not come.

// ErrDisputeAnswered is the result of PutDispute if another answer about the dispute was recorded since the record was
// read: the caller must ask the provider again.
var ErrDisputeAnswered = errors.New("another answer about the dispute was recorded meanwhile")

// DisputeReason is the state_reason of a license that is suspended because the buyer disputes its payment. A license
// with any other reason was suspended by the shop, and stays so after the dispute.
const DisputeReason = "The buyer disputes the payment."

const (
	// disputeAsk is the pause between two questions of a sweep about an open dispute, which lasts for weeks.
	disputeAsk = 24 * time.Hour
	// MaxOpenDisputes is how many open disputes an order names. A sweep asks about these.
	MaxOpenDisputes = 8
)

// OrderDisputes contains the facts of the open disputes of an order.
type OrderDisputes struct {
	Disputes     string    // the provider's ids, separated by spaces; see OpenDisputes
	DisputeAskAt time.Time // when a sweep asks the provider about the disputes; zero: there is none to ask about
}

// OpenDisputes returns the provider's ids of the open disputes of the order's payments. If there are MaxOpenDisputes
// ids, the order may have more open disputes: see NoteDispute.Open.
func (o *OrderDisputes) OpenDisputes() []string { return strings.Fields(o.Disputes) }

// setDispute stores whether the dispute id is open, and that the disputes in others are open. If no sweep needs to ask
// about a dispute any more, setDispute clears DisputeAskAt. An order does not list lost disputes of its further
// payments: if the order has further payments, only EndDisputes clears DisputeAskAt.
func (o *Order) setDispute(id string, open bool, others []string, now time.Time) {
	ids := slices.DeleteFunc(o.OpenDisputes(), func(other string) bool { return other == id })
	if open {
		others = append(slices.Clone(others), id)
	}
	for _, other := range others {
		if len(ids) < MaxOpenDisputes && !slices.Contains(ids, other) {
			ids = append(ids, other)
		}
	}
	o.Disputes = strings.Join(ids, " ")
	switch asks := len(ids) > 0 || o.recounts(); {
	case !asks && o.Invoices == 0:
		o.DisputeAskAt = time.Time{}
	case asks && o.DisputeAskAt.IsZero():
		o.DisputeAskAt = now.Add(disputeAsk)
	}
}

// Recounts reports whether more of a lost dispute of a payment of the order may count. records are all records of the
// order's payments.
func (o *Order) Recounts(dispute *Payment, records []Payment) bool {
	if dispute.CountsLess() == 0 {
		return false
	}
	for i := range records {
		p := &records[i]
		if p.Reference == dispute.Refunds && (p.Kind == KindOfInvoice || p.Kind == KindOfSecond) {
			return o.disputableOf(p) > 0
		}
	}
	return o.recounts()
}

// recountDisputes makes a sweep ask again about the lost disputes of the payment, if more of them may count.
func (o *Order) recountDisputes(now time.Time) {
	if o.recounts() {
		o.DisputeAskAt = now
	}
}

// endUnfitRefund ends the open refund if a lost dispute has left too little for it, unless the provider may have taken
// the refund.
func (o *Order) endUnfitRefund() {
	if o.RefundDue && !o.refundAsked() && (o.Refundable() < 0 || o.Refundable() == 0 && o.OpenRefund() == 0) {
		if o.closeRefund(); !o.RefundDue && o.RefundedAt.IsZero() {
			o.RefundBy, o.StateReason = "", ""
		}
	}
}

// disputesDue returns when a sweep asks the provider about the open disputes.
func (o *OrderDisputes) disputesDue() Due {
	if o.DisputeAskAt.IsZero() {
		return Due{}
	}
	return Due{Kind: DueCheckout, At: o.DisputeAskAt}
}

// NoteDispute records what the payment provider has answered about a dispute of a payment of the order. PutDispute must
// store Result.Refund, the dispute's record, in the same transaction. If the payment is a further payment of the order,
// its record must change too: see CountFurther. NoteDispute fails with ErrInvoicesChanged if the further payments
// or their refunds have changed since the record was read, or if the order has changed since Open was read.
//
// The answer may suspend the licenses of the order, or end their suspension: see Suspension for the first license,
// which must change in the same transaction, and ChangeOthers for the others.
//
// If a lost dispute leaves nothing of the payment, the order is refunded: its first license must be revoked in the same
// transaction, and the others by ChangeOthers.
type NoteDispute struct {
	Recorded *Payment // the record of the dispute, as it was read before the provider was asked; nil: there was none
	Dispute  Payment  // the answer: Provider, Reference, Amount, Currency, State, Fee
	// Further is the further payment that the buyer disputes; nil: the buyer disputes the payment of the order.
	Further *FurtherDisputed
	// Suspend: a new open dispute suspends the licenses of the order.
	Suspend bool
	// Open has the provider's ids of the other open disputes of the order, from their records, and Seconds those of
	// them that are of second payments. If the answer ends the dispute, the caller must read them if the order names
	// MaxOpenDisputes, or if a dispute that it names may be of a second payment. Sequence is Order.Sequence as it was
	// read before; 0: the answer does not depend on them.
	Open, Seconds []string
	Sequence      uint64
}

// DeviceID is empty: no device is touched.
func (NoteDispute) DeviceID() string { return "" }

func (NoteDispute) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c NoteDispute) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	before := Payment{}
	if c.Recorded != nil {
		before = *c.Recorded
	}
	if f := c.Further; f != nil && (o.Invoices != f.Invoices || o.InvoiceRefunds != f.Refunds) {
		return Result{}, ErrInvoicesChanged
	}
	if c.Sequence != 0 && c.Sequence != o.Sequence {
		return Result{}, ErrInvoicesChanged
	}
	d := c.record(o, &before, now)
	after, count := *o, c.count(&before, &d)
	if c.Further == nil {
		after.Refunded += count.Back
		after.Uncounted += count.Uncounted
		after.Refunds += countedDisputes(&d) - countedDisputes(&before)
	}
	after.addFee(d.Fee, before.Fee)
	after.setDispute(d.Reference, d.State == PaymentOpen, c.Open, now)
	if c.Further == nil {
		after.recountDisputes(now)
	} else {
		after.countDispute(c.Further, count, now)
	}
	ends := c.Further == nil && o.RefundedAt.IsZero() && d.counts() > 0 && after.Refunded == after.PaidAmount()
	if ends {
		after.RefundedAt, after.RefundBy = now, Provider
		after.endSubscription(now)
	}
	switch suspension := c.Suspension(&after); {
	case ends:
		after.decideOthers(OthersRevoke)
	case !after.RefundedAt.IsZero(): // the licenses are revoked, or are to be
	case suspension.Begin:
		after.decideOthers(OthersSuspend)
	case suspension.End:
		after.decideOthers(OthersReinstate)
	}
	if before.State != d.State && d.State != PaymentOpen {
		after.retryRefundNow(c.Further, now)
	}
	after.endUnfitRefund()
	r.Changed = r.Changed || after != *o
	*o = after
	switch {
	case c.Recorded == nil || before.State != d.State:
		r.recordOrder(EventOrderDisputed, Provider, now, disputeMember(&d))
	case count.Back != 0 && !ends:
		r.recordOrder(EventOrderRefundUpdated, Provider, now)
	}
	if ends {
		r.recordOrder(EventOrderRefunded, Provider, now)
	}
	return Result{order: new(*o), refund: &d}, nil
}

// Suspension returns what the answer does to the suspension of the order's first license. order is as NoteDispute has
// returned it. An open dispute that is recorded already suspends nothing: the shop may have reinstated the license
// since. The end of a dispute ends the suspension, unless another dispute is open that is not of a second payment.
func (c NoteDispute) Suspension(order *Order) (suspension SuspendForDispute) {
	was := c.Recorded != nil && c.Recorded.State == PaymentOpen
	if c.Dispute.State == PaymentOpen {
		suspension.Begin = c.Suspend && !was
		return suspension
	}
	suspension.End = was
	for _, id := range slices.Concat(order.OpenDisputes(), c.Open) {
		suspension.End = suspension.End && (id == c.Dispute.Reference || slices.Contains(c.Seconds, id))
	}
	return suspension
}

// CountFurther returns what must change of the record of the further payment. dispute is the dispute's record, as
// NoteDispute has returned it.
func (c NoteDispute) CountFurther(dispute Payment) RefundInvoice {
	before := Payment{}
	if c.Recorded != nil {
		before = *c.Recorded
	}
	return c.count(&before, &dispute)
}

func (NoteDispute) count(before, after *Payment) RefundInvoice {
	return RefundInvoice{
		Back: after.counts() - before.counts(), Uncounted: after.CountsLess() - before.CountsLess(),
	}
}

// record returns the record of the dispute after the answer.
func (c NoteDispute) record(o *Order, before *Payment, now time.Time) Payment {
	d, room := c.Dispute, o.disputable()
	d.Kind, d.OrderNo, d.Refunds, d.ProductID = KindOfDispute, o.OrderNo, o.Payment, o.ProductID
	if f := c.Further; f != nil {
		room, d.Refunds, d.ProductID = o.disputableOf(&f.Payment), f.Payment.Reference, f.Payment.ProductID
	}
	d.Answers, d.Counted, d.Fee = before.Answers+1, before.Counted, cmp.Or(d.Fee, before.Fee)
	if c.Recorded != nil {
		d.Amount = before.Amount
	}
	if d.PaidAt = (time.Time{}); d.State == PaymentLost {
		d.Counted = min(d.Amount, before.counts()+max(room, 0))
		if d.PaidAt = before.PaidAt; before.State != PaymentLost {
			d.PaidAt = now
		}
	}
	return d
}

// counts returns how much of a dispute counts as refunded now.
func (p *Payment) counts() int64 {
	if p.Kind == KindOfDispute && p.State == PaymentLost {
		return p.Counted
	}
	return 0
}

// CountsLess returns how much of a lost dispute does not count as refunded.
func (p *Payment) CountsLess() int64 {
	if p.Kind == KindOfDispute && p.State == PaymentLost {
		return p.Amount - p.Counted
	}
	return 0
}

// countedDisputes returns 1 for a dispute that counts as refunded, or did: Order.Refunds counts these disputes too.
func countedDisputes(p *Payment) int {
	if p.Counted > 0 {
		return 1
	}
	return 0
}

// disputeMember is in each event EventOrderDisputed. Its names and values are part of the public contract.
func disputeMember(d *Payment) EventMember {
	value, err := json.Marshal(struct {
		Reference string       `json:"reference"`
		Status    PaymentState `json:"status"`
		Amount    int64        `json:"amount"`
	}{d.Reference, d.State, d.Amount})
	if err != nil {
		panic(err) // texts and a number
	}
	return EventMember{Name: "dispute", JSON: string(value)}
}

// PutDispute stores the record of a dispute. The same transaction changes the order. If another answer was recorded
// since, the result is ErrDisputeAnswered.
type PutDispute struct {
	Dispute Payment // as NoteDispute has returned it
}

// DeviceID is empty: no device is touched.
func (PutDispute) DeviceID() string { return "" }

func (PutDispute) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c PutDispute) apply(r *Record, now time.Time) (Result, error) {
	dispute, answers := c.Dispute, 0
	dispute.RecordedAt = now
	if stored := r.Payment; stored != nil {
		dispute.RecordedAt, answers = stored.RecordedAt, stored.Answers
	}
	if dispute.Answers != answers+1 {
		return Result{}, ErrDisputeAnswered
	}
	r.Payment, r.Changed = &dispute, true
	return Result{}, nil
}

// PlanDisputes plans the next question of a sweep about the open disputes of an order, if a question is due. Then
// Result.Created is true, and the caller must ask the provider.
type PlanDisputes struct{}

// DeviceID is empty: no device is touched.
func (PlanDisputes) DeviceID() string { return "" }

func (PlanDisputes) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (PlanDisputes) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.DisputeAskAt.IsZero() || o.DisputeAskAt.After(now) {
		return Result{order: new(*o)}, nil
	}
	o.DisputeAskAt, r.Changed = now.Add(disputeAsk), true
	return Result{order: new(*o), Created: true}, nil
}

// EndDisputes clears DisputeAskAt: no dispute of the order needs a question. EndDisputes is a no-op if the order has
// changed so that a dispute may need a question now.
type EndDisputes struct {
	Planned time.Time // Order.DisputeAskAt, as PlanDisputes has returned it
}

// DeviceID is empty: no device is touched.
func (EndDisputes) DeviceID() string { return "" }

func (EndDisputes) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c EndDisputes) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.DisputeAskAt.Equal(c.Planned) && o.Disputes == "" && !o.recounts() && !c.Planned.IsZero() {
		o.DisputeAskAt, r.Changed = time.Time{}, true
	}
	return Result{order: new(*o)}, nil
}

// SuspendForDispute suspends a license while the buyer disputes its payment, or ends such a suspension. Suspensions by
// the shop and revoked licenses stay as they are. It also moves the end of the license, as the lost dispute of an
// invoice takes back the period. With neither Begin nor End, and the same Period.From and Period.To, it is a no-op.
type SuspendForDispute struct {
	Target
	Begin, End bool
	Period     ReturnPeriod
}

// DeviceID is empty: no device is touched.
func (SuspendForDispute) DeviceID() string { return "" }

func (SuspendForDispute) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c SuspendForDispute) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	switch suspended := !l.SuspendedAt.IsZero(); {
	case !l.RevokedAt.IsZero():
	case c.Begin && !suspended:
		l.SuspendedAt, l.StateReason = now, DisputeReason
		r.recordLicense(l, EventLicenseSuspended, c.By, now, nil)
	case c.End && suspended && l.StateReason == DisputeReason:
		l.SuspendedAt, l.StateReason = time.Time{}, ""
		r.recordLicense(l, EventLicenseReinstated, c.By, now, nil)
	}
	if _, err := c.Period.apply(r, now); err != nil {
		return Result{}, err
	}
	return Result{License: *l}, nil
}
