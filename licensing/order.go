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

// Order holds the facts of one order. A zero time or an empty string means that the fact does not
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

	// Disputes has the provider's ids of the open disputes, separated by spaces; see OpenDisputes. DisputeAskAt is when
	// a sweep asks the provider about them.
	Disputes     string
	DisputeAskAt time.Time

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
