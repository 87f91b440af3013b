package webhook

import (
	"encoding/json"
	"fmt"
	"time"
)

// Type is the kind of an event. There may be kinds that this package does not
// know yet: answer to them as to the others.
type Type string

// The kinds that are always recorded.
const (
	OrderCreated      Type = "order.created"
	OrderPaid         Type = "order.paid"
	OrderExpired      Type = "order.expired"
	OrderCanceled     Type = "order.canceled"
	OrderRefunded     Type = "order.refunded"
	LicenseIssued     Type = "license.issued"
	LicenseSuspended  Type = "license.suspended"
	LicenseReinstated Type = "license.reinstated"
	LicenseRevoked    Type = "license.revoked"
	LicenseRenewed    Type = "license.renewed"
	LicenseUpdated    Type = "license.updated"
	LicenseExpired    Type = "license.expired"
)

// The kinds that are recorded while somebody listens to them.
const (
	LicenseActivated    Type = "license.activated"     // its first device of all
	LicenseLimitReached Type = "license.limit_reached" // at most once a minute and license
	DeviceBound         Type = "device.bound"
	DeviceRemoved       Type = "device.removed"
)

// Event is one change, as the service tells of it.
type Event struct {
	ID        string    `json:"id"` // the same whenever and however often it is sent
	Type      Type      `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the change
	// Sequence counts the events of one order or license: 1, 2, 3, ... without a gap.
	Sequence int64 `json:"sequence"`
	// Revision is the store's, of the change. Of two events of one order or license
	// the later has the greater one, or the same.
	Revision int64 `json:"revision"`
	// Actor is who made the change: the public id of an API key, or end_user,
	// provider or system.
	Actor string `json:"actor"`
	Data  Data   `json:"data"`
}

// Data is what was changed, as it was right after the change. What an event is
// not about is nil.
type Data struct {
	Order   *Order   `json:"order"`
	License *License `json:"license"`
	Device  *Device  `json:"device"` // the one that is meant, of a license's event
}

// Order is an order. Empty texts and zero times stand for null.
type Order struct {
	OrderNo     string          `json:"order_no"`
	Status      string          `json:"status"`
	ProductID   string          `json:"product_id"`
	Amount      int64           `json:"amount"` // in the currency's minor unit
	Currency    string          `json:"currency"`
	Description string          `json:"description"`
	BuyerEmail  string          `json:"buyer_email"`
	Metadata    json.RawMessage `json:"metadata"`
	PayURL      string          `json:"pay_url"` // empty unless it can be paid
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	PaidAt      time.Time       `json:"paid_at"`
	CanceledAt  time.Time       `json:"canceled_at"`
	RefundedAt  time.Time       `json:"refunded_at"`
	LicenseKey  string          `json:"license_key"` // from payment on
	Late        bool            `json:"late"`        // paid after it had expired
	SuccessURL  string          `json:"success_url"`
	StateReason string          `json:"state_reason"`
	RefundDue   bool            `json:"refund_due"` // money is to go back, and the provider has not confirmed it
	AccountID   string          `json:"account_id"`
	Mode        string          `json:"mode"`
}

// License is a license without its devices. Empty texts and zero times stand for
// null.
type License struct {
	LicenseKey     string          `json:"license_key"`
	Status         string          `json:"status"`
	ProductID      string          `json:"product_id"`
	OrderNo        string          `json:"order_no"`    // empty: granted without an order
	MaxDevices     int             `json:"max_devices"` // 0: unlimited
	CurrentDevices int             `json:"current_devices"`
	ActivatedAt    time.Time       `json:"activated_at"` // zero: never
	ExpiresAt      time.Time       `json:"expires_at"`   // zero: never
	CreatedAt      time.Time       `json:"created_at"`
	AccountID      string          `json:"account_id"`
	Mode           string          `json:"mode"`
	Metadata       json.RawMessage `json:"metadata"`
	SuspendedAt    time.Time       `json:"suspended_at"`
	RevokedAt      time.Time       `json:"revoked_at"`
	StateReason    string          `json:"state_reason"`
}

// Device is a device of a license. One that found no slot has neither time.
type Device struct {
	DeviceID   string    `json:"device_id"`
	DeviceName string    `json:"device_name"`
	BoundAt    time.Time `json:"bound_at"`
	LastSeenAt time.Time `json:"last_seen_at"`
}

// parseEvent reads an event whose signature holds. Members that are not known
// here are skipped, since the service may gain some.
func parseEvent(id string, body []byte) (*Event, error) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if e.ID != id || e.Type == "" {
		return nil, fmt.Errorf("%w: its id is not webhook-id, or it has no type", ErrEvent)
	}
	return &e, nil
}
