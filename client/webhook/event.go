package webhook

import (
	"encoding/json"
	"fmt"

	"licet/client"
)

// What is sent is what the feed has, so that one function can take the events of both.
type (
	// Event is one change, as the service tells of it.
	Event = client.Event
	// Data is what was changed, as it was right after the change. What an event is
	// not about is nil.
	Data = client.EventData
	// Order is an order.
	Order = client.Order
	// License is a license, without its devices.
	License = client.License
	// Device is a device of a license. One that found no slot has neither time.
	Device = client.Device
	// Endpoint is an endpoint that events are sent to.
	Endpoint = client.Webhook
)

// Types of events that are always recorded. There may be types that are not listed
// here yet: answer to those as to the others.
const (
	OrderCreated      = "order.created"
	OrderPaid         = "order.paid"
	OrderExpired      = "order.expired"
	OrderCanceled     = "order.canceled"
	OrderRefunded     = "order.refunded"
	LicenseIssued     = "license.issued"
	LicenseSuspended  = "license.suspended"
	LicenseReinstated = "license.reinstated"
	LicenseRevoked    = "license.revoked"
	LicenseRenewed    = "license.renewed"
	LicenseUpdated    = "license.updated"
	LicenseExpired    = "license.expired"
	WebhookDisabled   = "webhook.disabled" // the service has given an endpoint up
)

// Types that are recorded while somebody listens to them.
const (
	LicenseActivated    = "license.activated"     // its first device of all
	LicenseLimitReached = "license.limit_reached" // at most once a minute and license
	DeviceBound         = "device.bound"
	DeviceRemoved       = "device.removed"
)

// Unreadable is the type of a placeholder for an event that the service can't read at present, see
// [client.EventUnreadable]. Only endpoints with all types, or with this one, get it.
const Unreadable = client.EventUnreadable

// Ping is the type of a message that tries the endpoint. It is no event: nothing has
// happened, its sequence is 0, and its id is known nowhere else.
const Ping = "webhook.ping"

// parseEvent reads an event whose signature holds. Members that are not known
// here are only in its Raw, since the service may gain some.
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
