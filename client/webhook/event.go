package webhook

import (
	"encoding/json"
	"fmt"

	"licet/client"
)

// Webhooks and the feed have the same events, so one function can process both.
type (
	// Event is a change, as the service reports it.
	Event = client.Event
	// Data contains the changed things right after the change. Other fields are nil.
	Data = client.EventData
	// Order is an order.
	Order = client.Order
	// License is a license, without its devices.
	License = client.License
	// Device is a device of a license. A device that found no free slot has zero times.
	Device = client.Device
	// Endpoint is an endpoint to which the service sends events.
	Endpoint = client.Webhook
)

// Types of events that the service always records. A newer service may send further types: acknowledge them too.
const (
	OrderCreated  = "order.created"
	OrderPaid     = "order.paid"
	OrderExpired  = "order.expired"
	OrderCanceled = "order.canceled"
	OrderRefunded = "order.refunded"
	// OrderRefundUpdated is a step of a refund that leaves the order paid: a part was refunded, the provider will send
	// the money later, or that has failed.
	OrderRefundUpdated       = "order.refund_updated"
	OrderPaymentSucceeded    = "order.payment_succeeded" // a further invoice of a subscription was paid
	OrderPaymentFailed       = "order.payment_failed"    // the subscription is past due
	OrderSubscriptionChanged = "order.subscription_changed"
	OrderDisputed            = "order.disputed" // the buyer disputes the payment, or that has ended
	LicenseIssued            = "license.issued"
	LicenseSuspended         = "license.suspended"
	LicenseReinstated        = "license.reinstated"
	LicenseRevoked           = "license.revoked"
	LicenseRenewed           = "license.renewed"
	LicenseUpdated           = "license.updated"
	LicenseExpired           = "license.expired"
	LicenseUpgraded          = "license.upgraded"       // an order was paid that names the trial
	LicenseDeleted           = "license.deleted"        // of a trial: it ended long ago, or was revoked; the last event
	LicenseExpiring          = "license.expiring"       // some days before the end, see client.Account.ExpiringDays
	WebhookDisabled          = "webhook.disabled"       // the service has disabled an endpoint
	BudgetWarning            = "account.budget_warning" // the account stores four fifths of what it may
)

// Types of events that the service records only while an endpoint or a reader of the feed listens to them.
const (
	LicenseActivated    = "license.activated"     // the first device of the license
	LicenseLimitReached = "license.limit_reached" // at most once a minute and license
	DeviceBound         = "device.bound"
	DeviceRemoved       = "device.removed"
	DeviceLeaseLapsed   = "device.lease_lapsed"
	DeviceChanged       = "device.changed"
)

// Unreadable is the type of a placeholder for an event that the service can't read at present; see
// [client.EventUnreadable]. Only endpoints with all types, or with this type, receive it.
const Unreadable = client.EventUnreadable

// Ping is the type of a test message. A test message is no event: nothing has changed, its sequence is 0, and no
// other call knows its id.
const Ping = "webhook.ping"

// parseEvent reads an event whose signature is valid. Unknown members are only in Raw: a newer service may send
// some.
func parseEvent(id string, body []byte) (*Event, error) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if e.ID != id || e.Type == "" {
		return nil, fmt.Errorf("%w: the id differs from webhook-id, or the type is missing", ErrEvent)
	}
	return &e, nil
}
