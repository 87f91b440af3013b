package licensing

import "time"

// ChangeKind is what a shop changes about a subscription.
type ChangeKind string

// The kinds of changes.
const (
	ChangeEndNow ChangeKind = "end_now" // the subscription ends; see Order.EndDue, which stores it
	ChangeEnd    ChangeKind = "end"     // the subscription ends with its period
	ChangeResume ChangeKind = "resume"  // a subscription that would end with its period renews
)

// SubscriptionChange is a change of a subscription that the payment provider must make. The zero value is no change.
type SubscriptionChange struct {
	Kind ChangeKind
}

// changeRetry is when a sweep makes a change that the node of the request has not made.
const changeRetry = time.Minute

// ChangeDue reports whether the payment provider must change or end the subscription.
func (o *Order) ChangeDue() bool { return o.EndDue || o.Change.Kind != "" }

// ChangeSubscription stores the shop's request to change the subscription of an order. The node of the request asks the
// payment provider for the change, or else a sweep does, and NoteSubscription records the answer. So the change is made
// whatever dies meanwhile. A later request replaces an open request. To end a subscription that has ended, or that is
// being ended, is a no-op.
type ChangeSubscription struct{ Change SubscriptionChange }

// DeviceID is empty: no device is touched.
func (ChangeSubscription) DeviceID() string { return "" }

func (ChangeSubscription) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c ChangeSubscription) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	over := o.EndDue || o.SubscriptionStatus == SubscriptionCanceled
	switch kind := c.Change.Kind; {
	case !o.Subscribed():
		return Result{}, ErrNotSubscribed
	case over && (kind == ChangeEndNow || kind == ChangeEnd):
		return Result{Order: *o}, nil
	case over:
		return Result{}, ErrSubscriptionOver
	case kind == ChangeEndNow:
		o.endSubscription(now)
	default:
		o.Change, o.AskAt = c.Change, now.Add(changeRetry)
	}
	o.Answers++ // an answer to an earlier question does not know the change
	r.Changed = true
	return Result{Order: *o}, nil
}
