package licensing

import (
	"strings"
	"time"
)

// OrderStatus is the state of an order at one moment. Like a license's, it follows from the facts and
// the time.
type OrderStatus string

// The order states.
const (
	OrderUnpaid   OrderStatus = "unpaid"
	OrderPaid     OrderStatus = "paid"
	OrderExpired  OrderStatus = "expired"
	OrderCanceled OrderStatus = "canceled"
	OrderRefunded OrderStatus = "refunded"
)

// OrderStatuses lists the order states.
func OrderStatuses() []OrderStatus {
	return []OrderStatus{OrderUnpaid, OrderPaid, OrderExpired, OrderCanceled, OrderRefunded}
}

// MaxAmount is the most that an order may cost, in minor units of its currency.
const MaxAmount = 1_000_000_000_000

// Order contains the facts of one order. A zero time or an empty string means that the fact does not
// apply.
type Order struct {
	OrderNo     string
	Owner       Owner
	ProductID   string
	Description string
	BuyerEmail  string
	Metadata    string // a compact JSON object, or empty
	SuccessURL  string
	// PayHash is the SHA-256 of the pay token, which allows its holder to pay. The token itself is never stored.
	PayHash [32]byte
	// PaySeed has what the pay token is derived from. It is zero once the order is paid or canceled, or its expiry is
	// recorded: then no pay_url is shown, and PayHash recognizes the token.
	PaySeed PaySeed
	// Terms are the product's terms when the order was created. The license gets these terms if the
	// product no longer exists when the order is paid. Of a paid order for several licenses, Terms are those of all its
	// licenses.
	Terms Terms

	CreatedAt  time.Time
	ExpiresAt  time.Time
	CanceledAt time.Time
	ExpiredAt  time.Time // when a sweep recorded the expiry: the order is expired for every clock

	// UpgradeOf is the first key of a trial that the payment makes the paid license; zero: it issues a license.
	UpgradeOf  LicenseKey
	LicenseKey LicenseKey // of the first license
	Late       bool       // paid after it had expired
	OrderOthers
	// Attempt counts the attempts to pay through the provider; see StartCheckout. Checkout is the provider's id of the
	// latest attempt's checkout, which the provider ends at CheckoutEnds.
	Attempt      int
	Checkout     string
	CheckoutEnds time.Time
	// AskAt is when a sweep asks the provider about the checkout, or about the subscription once the order has one;
	// zero: nothing remains to be asked.
	AskAt time.Time
	// AskFailures counts the failed questions since the latest answer; see PutOffAsk.
	AskFailures int

	OrderDisputes

	// Quantity is how many licenses the order is for; 0: one. LicensesIssued and KeySeed are zero then; see Issued and
	// Key.
	Quantity       int
	LicensesIssued int
	KeySeed        KeySeed

	// StateReason is the shop's reason for the cancellation or refund; empty if the shop gave none.
	StateReason string

	OrderPayment
	OrderSubscription
	OrderReturns

	Sequence uint64 // of its latest event; 0: none
}

// PaySeed is what the pay token of an order is derived from, besides the order's number. Without the master key it
// reveals nothing about the token.
type PaySeed struct {
	MasterID string
	Salt     [16]byte // random, so that the token is not derivable from the master key and the order's number
}

// Status returns the order's state at now.
func (o *Order) Status(now time.Time) OrderStatus {
	switch {
	case !o.RefundedAt.IsZero():
		return OrderRefunded
	case !o.CanceledAt.IsZero():
		return OrderCanceled
	case !o.PaidAt.IsZero():
		return OrderPaid
	case !o.ExpiredAt.IsZero() || !o.ExpiresAt.After(now):
		return OrderExpired
	default:
		return OrderUnpaid
	}
}

// FoldEmail returns the form of an e-mail address that identifies a buyer. Addresses that differ only
// in case have the same form.
func FoldEmail(address string) string { return strings.ToLower(address) }

const (
	orderPrefix   = "ord_"
	orderIDLength = SlotLength + 26 // the slot and a ULID
)

// NewOrderNo returns the number of an owner's new order: ord_, the owner's slot and a ULID, which sorts the orders of
// an owner by time.
func NewOrderNo(owner Owner, ulid string) string {
	return orderPrefix + SlotOf(owner).String() + ulid
}

// FirstOrderNo returns a text that sorts behind the numbers of all orders that an owner has created before a time, and
// before the numbers of all other orders of the owner.
func FirstOrderNo(owner Owner, created time.Time) string {
	var ulid [10]byte // the milliseconds; the random part is left out
	ms := max(created.UnixMilli(), 0)
	for i := len(ulid) - 1; i >= 0; i-- {
		ulid[i], ms = Crockford[ms%32], ms/32
	}
	return NewOrderNo(owner, string(ulid[:]))
}

// ValidOrderNo reports whether text is in the form of an order number. No other text can be an
// order's, so the service answers without a request to the store.
func ValidOrderNo(text string) bool {
	id, found := strings.CutPrefix(text, orderPrefix)
	if !found || len(id) != orderIDLength {
		return false
	}
	for i := range len(id) {
		if strings.IndexByte(Crockford, id[i]) < 0 {
			return false
		}
	}
	return true
}

// MaxQuantity is the greatest number of licenses of one order, and of one grant.
const MaxQuantity = 1000

// SizeOfLicenses returns about how much the licenses of an order take, which is more than most take.
func SizeOfLicenses(n int) Size { return Size{Bytes: 512 * int64(n), Keys: 3 * int64(n)} }

// KeySeed is what the keys of many licenses derive from, together with the id key of the store. So a node that
// continues the issue of these licenses makes the same keys.
type KeySeed [32]byte

// Licenses returns how many licenses the order is for.
func (o *Order) Licenses() int { return max(o.Quantity, 1) }

// Issued returns how many licenses the order has.
func (o *Order) Issued() int {
	switch {
	case o.LicenseKey.IsZero():
		return 0
	case o.Quantity > 1:
		return o.LicensesIssued
	}
	return 1
}

// Issuing reports whether the order is paid, and some of its licenses are still to be issued; see IssueLicenses. An
// open refund of all that is left of the payment stops the issue.
func (o *Order) Issuing() bool { return o.LacksLicenses() && !o.EndsWithRefund() }

// LacksLicenses reports whether the order is paid, and has fewer licenses than it is for.
func (o *Order) LacksLicenses() bool {
	return !o.LicenseKey.IsZero() && o.RefundedAt.IsZero() && o.LicensesIssued < o.Quantity
}

// IssueLicenses issues the next licenses of a paid order. It is a no-op if the order has other licenses than From says,
// since another node was first, or if the issue was stopped: so it may be repeated. It is also a no-op if an earlier
// command in the same transaction has issued licenses: a transaction has room for only some.
type IssueLicenses struct {
	From int          // how many licenses the order has
	Keys []LicenseKey // of the next licenses, see keyring.LicenseKeys.OrderKey
	// Disputed: a dispute is about to suspend the licenses of the order. No refund stops the issue: if the refund
	// failed while the dispute is open, licenses that are issued later would be valid.
	Disputed bool
}

// DeviceID is empty: no device is touched.
func (IssueLicenses) DeviceID() string { return "" }

func (IssueLicenses) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c IssueLicenses) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if (o.Issuing() || c.Disputed && o.LacksLicenses()) && o.LicensesIssued == c.From && len(r.Issued) == 0 {
		keys := c.Keys[:min(len(c.Keys), o.Quantity-o.LicensesIssued)]
		o.LicensesIssued += len(keys)
		r.issue(o.Terms, System, now, keys...)
	}
	return Result{order: new(*o)}, nil
}

// issue issues licenses of the record's order.
func (r *Record) issue(terms Terms, by Actor, now time.Time, keys ...LicenseKey) {
	o := r.Order
	for _, key := range keys {
		l := terms.Issue(key, o.Owner, o.ProductID, o.OrderNo, now)
		if !o.PaidEnd.IsZero() {
			l.Validity, l.ExpiresAt = Period{}, o.PaidUntil(o.PaidEnd)
		}
		r.Issued = append(r.Issued, l)
		r.recordLicense(l, EventLicenseIssued, by, now, nil)
	}
}

// A decision about an order of several licenses may change all of them, and one transaction has room for only some. So
// the transaction that decides changes the first license, and stores in the order what the others must get. Each
// further transaction changes some of them, if the order still says so (ChangeOthers): a later decision replaces the
// earlier decision, each license gets a decision once, and any node can continue.

// OthersChange is what the licenses of an order besides the first one must still get.
type OthersChange byte

// The changes of the other licenses.
const (
	OthersDone      OthersChange = iota // nothing
	OthersSuspend                       // a dispute has suspended the first license; see SuspendForDispute
	OthersReinstate                     // the last dispute has ended
	OthersRevoke                        // the order is refunded, which is final
)

// OrderOthers is what the licenses of an order besides the first one must still get.
type OrderOthers struct {
	Others     OthersChange
	OthersFrom uint16 // the index of the first license that must still get it; 0: none must
}

// decideOthers stores what the licenses besides the first one must get.
func (o *Order) decideOthers(change OthersChange) {
	if o.Issued() > 1 {
		o.OrderOthers = OrderOthers{Others: change, OthersFrom: 1}
	}
}

// ChangeOthers records that the next licenses of an order besides the first one get what they must get. The same
// transaction changes these licenses if Result.Created is true. Otherwise ChangeOthers is a no-op: another call was
// first, or there is a later decision.
type ChangeOthers struct {
	Now OrderOthers // as the order had it
	To  int         // the index behind the last license that changes
}

// DeviceID is empty: no device is touched.
func (ChangeOthers) DeviceID() string { return "" }

func (ChangeOthers) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c ChangeOthers) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	due := o.Others != OthersDone && o.OrderOthers == c.Now
	if due {
		if o.OthersFrom, r.Changed = uint16(c.To), true; c.To >= o.Issued() {
			o.OrderOthers = OrderOthers{}
		}
	}
	return Result{order: new(*o), Created: due}, nil
}

// OthersCommand returns the command that gives a license of the order what it must get. A reason that is too large to
// be stored a thousand times, whatever the owner's budget, stays with the order and its first license.
func OthersCommand(o *Order, key LicenseKey) Command {
	if o.Others == OthersRevoke {
		revoke := o.Revocation(key)
		if len(revoke.Reason) > MaxSmallReason {
			revoke.Reason = ""
		}
		return revoke
	}
	return SuspendForDispute{
		Target: Target{Key: key, By: Provider}, Begin: o.Others == OthersSuspend, End: o.Others == OthersReinstate,
	}
}

// Revocation returns the command that revokes a license of the order, which is refunded.
func (o *Order) Revocation(key LicenseKey) RevokeLicense {
	return RevokeLicense{Target: Target{Key: key, By: o.RefundBy}, Reason: o.StateReason}
}
