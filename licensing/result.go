package licensing

import "time"

// Result is the result of a command: the state right after it and before the next command. Which
// fields are set depends on the command.
//
// An activation copies its Result several times. So the Result holds what only commands on other records return by
// pointers, and methods read these values.
type Result struct {
	License License
	Device  Device
	// LeaseLeft is how long the device still has its lease; 0: it has none. Clients count from when they sent the
	// request, so that their clocks don't matter.
	LeaseLeft time.Duration
	// Receipt are the times of the receipt that Activate, ValidateLicense or StartTrial leads to, of the state of
	// License and Device.
	Receipt ReceiptTimes
	// Invalid is the reason why the device may not use the license; empty if it may.
	Invalid Reason

	Bound   bool // Activate: the device was not bound
	Removed bool // RemoveDevice, DeactivateDevice: the device was bound; ForgetTrial: the trial was due
	Created bool // PutProduct, StartTrial: there was none
	// RefundDue: the order's money must be refunded, and the caller must do so: record the try with
	// TryRefund, ask the payment provider, and record the result with RefundOrder. See also Order.Due.
	RefundDue bool

	order    *Order
	refund   *Payment
	open     *Return
	settings *Settings
	sandbox  *SandboxOrder
	// Product is the product that was put or deleted. Callers must not change it.
	Product *Product
	// Endpoint is the webhook endpoint that was created, changed or deleted. Callers must not change
	// it.
	Endpoint *Endpoint
	// ReceiptKeys are the owner's receipt keys. Callers must not change them.
	ReceiptKeys *ReceiptKeys
	// Plan is what the license must get in the same transaction; nil: nothing. See ExtendLicense.
	Plan *Plan
	// Stored is the size of the owner's usage after AddUsage or SetUsage. Corrected is the change that SetUsage made.
	Stored, Corrected Size
	Trial             Trial
	// Back is how much more of an invoice has gone back; see NoteInvoiceRefund.
	Back int64
}

// WithOrder returns the result with another order.
func (r Result) WithOrder(o Order) Result {
	r.order = &o
	return r
}

// Order returns the order; the zero Order if the command was on another record.
func (r Result) Order() Order { return valueOf(r.order) }

// Refund returns the record of a refund that PutRefund must store in the same transaction; zero: none.
func (r Result) Refund() Payment { return valueOf(r.refund) }

// Return returns the open refund of a further payment that RequestReturn or TryReturn leads to; zero: none.
func (r Result) Return() Return { return valueOf(r.open) }

// Settings returns the owner's settings after ChangeSettings or FixKeyMatching.
func (r Result) Settings() Settings { return valueOf(r.settings) }

// Sandbox returns what the sandbox knows about the order after a command that plays in the sandbox.
func (r Result) Sandbox() SandboxOrder { return valueOf(r.sandbox) }

// valueOf returns the value at a pointer; the zero value if the pointer is nil.
func valueOf[T any](at *T) (value T) {
	if at != nil {
		value = *at
	}
	return value
}
