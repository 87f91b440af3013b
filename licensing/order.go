package licensing

import (
	"strings"
	"time"
)

// OrderStatus is what an order is at one moment. Like a license's it follows
// from the facts and the time.
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

// Order holds the facts of one order. Zero times and empty strings stand for
// "not so".
type Order struct {
	OrderNo     string
	Owner       Owner
	ProductID   string
	Amount      int64  // in the currency's minor unit
	Currency    string // ISO 4217, upper case
	Description string
	BuyerEmail  string
	Metadata    string // a compact JSON object, or empty
	SuccessURL  string
	PayToken    string // 128 random bits in hex; whoever has it may pay
	// Terms are the product's when the order was made. They are what is
	// issued if the product is gone by the time the order is paid.
	Terms Terms

	CreatedAt  time.Time
	ExpiresAt  time.Time
	PaidAt     time.Time
	CanceledAt time.Time
	RefundedAt time.Time
	ExpiredAt  time.Time // when a sweep recorded the expiry; the status does not wait for it

	LicenseKey LicenseKey
	Late       bool   // paid after it had expired
	Payment    string // the provider's reference of the payment
	// RefundDue tells that the money must go back through the provider: the shop
	// wants it to, or it came for a canceled order. It is cleared when the refund is
	// recorded, and where the provider has refused it for good.
	RefundDue     bool
	RefundBy      Actor     // who wants it to
	RefundTries   int       // how often the provider was about to be asked for it, for earlier wishes too
	RefundRetryAt time.Time // when it is to be asked again, unless somebody does before; zero: at once, since it was not yet

	// StateReason is why it was canceled, or its money is to go back or has gone,
	// in the shop's words; empty where no reason was given.
	StateReason string

	Sequence uint64 // of its latest event; 0: there was none
}

// Status computes the order's state at now.
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

// FoldEmail gives the form of an e-mail address that tells one buyer from
// another: the case of its letters does not.
func FoldEmail(address string) string { return strings.ToLower(address) }

const (
	orderPrefix   = "ord_"
	orderIDLength = 1 + 26 // the cell character and a ULID
)

// NewOrderNo gives an order number: ord_, the cell character and a ULID, which
// orders them by time.
func NewOrderNo(cell byte, ulid string) string {
	return orderPrefix + string(cell) + ulid
}

// ValidOrderNo reports whether text has the form of an order number. What has
// not is no order's, which needs no look into the store.
func ValidOrderNo(text string) bool {
	id, found := strings.CutPrefix(text, orderPrefix)
	if !found || len(id) != orderIDLength {
		return false
	}
	for i := range len(id) {
		if strings.IndexByte(crockford, id[i]) < 0 {
			return false
		}
	}
	return true
}
