package licensing

import (
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
// A lost dispute counts as refunded, as far as the payment is not refunded already. While a dispute is open, the order
// names it, and a sweep asks about it in case callbacks do not come.

// ErrDisputeAnswered is the result of PutDispute if another answer about the dispute was recorded since the record was
// read: the caller must ask the provider again.
var ErrDisputeAnswered = errors.New("another answer about the dispute was recorded meanwhile")

// DisputeReason is the state_reason of a license that is suspended because the buyer disputes its payment. A license
// with any other reason was suspended by the shop, and stays so after the dispute.
const DisputeReason = "The buyer disputes the payment."

const (
	// disputeAsk is the pause between two questions of a sweep about an open dispute, which lasts for weeks.
	disputeAsk = 24 * time.Hour
	// maxOpenDisputes bounds the open disputes of an order about which a sweep asks.
	maxOpenDisputes = 8
)

// OpenDisputes returns the provider's ids of the open disputes of the order's payment.
func (o *Order) OpenDisputes() []string { return strings.Fields(o.Disputes) }

// setDispute notes whether a dispute is open.
func (o *Order) setDispute(id string, open bool, now time.Time) {
	ids := slices.DeleteFunc(o.OpenDisputes(), func(other string) bool { return other == id })
	if open && len(ids) < maxOpenDisputes {
		ids = append(ids, id)
	}
	o.Disputes = strings.Join(ids, " ")
	switch {
	case len(ids) == 0:
		o.DisputeAskAt = time.Time{}
	case o.DisputeAskAt.IsZero():
		o.DisputeAskAt = now.Add(disputeAsk)
	}
}

// disputesDue returns when a sweep asks the provider about the open disputes.
func (o *Order) disputesDue() Due {
	if o.DisputeAskAt.IsZero() {
		return Due{}
	}
	return Due{Kind: DueCheckout, At: o.DisputeAskAt}
}

// NoteDispute records what the payment provider has answered about a dispute of the order's payment. PutDispute must
// store Result.Refund, the dispute's record, in the same transaction.
//
// If a lost dispute leaves nothing of the payment, the order is refunded: its licenses must be revoked before, and the
// first one in the same transaction. If the order has more licenses than are revoked, NoteDispute changes nothing, and
// Result.Refund is zero.
type NoteDispute struct {
	Recorded *Payment // the record of the dispute, as it was read before the provider was asked; nil: there was none
	Dispute  Payment  // the answer: Provider, Reference, Amount, Currency, State, Fee
	Revoked  int      // how many licenses of an order for several licenses are revoked by now, with the first one
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
	d := c.record(o, &before, now)
	after := *o
	after.Refunded += d.counts() - before.counts()
	after.Refunds += countedDisputes(&d) - countedDisputes(&before)
	after.setDispute(d.Reference, d.State == PaymentOpen, now)
	ends := o.RefundedAt.IsZero() && d.counts() > 0 && after.Refunded == after.PaidAmount()
	if ends && o.LicensesIssued > c.Revoked {
		return Result{Order: *o}, nil
	}
	if ends {
		after.RefundedAt, after.RefundBy = now, Provider
		after.endSubscription(now)
	}
	r.Changed = r.Changed || after != *o
	*o = after
	if c.Recorded == nil || before.State != d.State {
		r.recordOrder(EventOrderDisputed, Provider, now, disputeMember(&d))
	}
	if ends {
		r.recordOrder(EventOrderRefunded, Provider, now)
	}
	return Result{Order: *o, Refund: d}, nil
}

// record returns the record of the dispute after the answer.
func (c NoteDispute) record(o *Order, before *Payment, now time.Time) Payment {
	d := c.Dispute
	d.Kind, d.OrderNo, d.Refunds, d.ProductID = KindOfDispute, o.OrderNo, o.Payment, o.ProductID
	d.Answers, d.Counted = before.Answers+1, before.Counted
	if c.Recorded != nil {
		d.Amount = before.Amount
	}
	switch {
	case d.State == PaymentLost && before.State == PaymentLost:
		d.PaidAt = before.PaidAt
	case d.State == PaymentLost:
		d.PaidAt, d.Counted = now, min(d.Amount, max(o.Refundable(), 0))
	default:
		d.PaidAt = time.Time{}
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
	Dispute Payment // as NoteDispute has returned it; zero: nothing is to be stored
}

// DeviceID is empty: no device is touched.
func (PutDispute) DeviceID() string { return "" }

func (PutDispute) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c PutDispute) apply(r *Record, now time.Time) (Result, error) {
	if c.Dispute.Reference == "" {
		return Result{}, nil
	}
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
		return Result{Order: *o}, nil
	}
	o.DisputeAskAt, r.Changed = now.Add(disputeAsk), true
	return Result{Order: *o, Created: true}, nil
}

// HoldLicense suspends a license while the buyer disputes its payment, or ends such a suspension. Suspensions by the
// shop and revoked licenses stay as they are. With neither Begin nor End it is a no-op.
type HoldLicense struct {
	Target
	Begin, End bool
}

// DeviceID is empty: no device is touched.
func (HoldLicense) DeviceID() string { return "" }

func (HoldLicense) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c HoldLicense) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	switch held := !l.SuspendedAt.IsZero(); {
	case !l.RevokedAt.IsZero():
	case c.Begin && !held:
		l.SuspendedAt, l.StateReason = now, DisputeReason
		r.recordLicense(l, EventLicenseSuspended, c.By, now, nil)
	case c.End && held && l.StateReason == DisputeReason:
		l.SuspendedAt, l.StateReason = time.Time{}, ""
		r.recordLicense(l, EventLicenseReinstated, c.By, now, nil)
	}
	return Result{License: *l}, nil
}
