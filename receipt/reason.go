package receipt

import (
	"errors"
	"fmt"
)

// Reason is why a document is refused. The words are part of the format: each client has the same.
type Reason string

const (
	// Malformed is a document that is not one of this format: not three parts, not base64url, not JSON, with a
	// duplicate member, a member of the wrong type, a missing member, or too large.
	Malformed Reason = "malformed"
	// Algorithm is a document signed by another algorithm than Ed25519.
	Algorithm Reason = "algorithm"
	// Type is a document of another kind, such as a list in the place of a receipt.
	Type Reason = "type"
	// UnknownKey is a document signed by a key that is not the root key, or not in the set of receipt keys.
	UnknownKey Reason = "key"
	// Signature is a document that was altered, or whose signer is not the owner of the key that the document names.
	Signature Reason = "signature"
	// Audience is a document of another account, mode or product.
	Audience Reason = "audience"
	// Device is a receipt of another device.
	Device Reason = "device"
	// Nonce is a receipt that does not answer this request.
	Nonce Reason = "nonce"
	// NotYetValid is a document from the future: the device's clock is behind, or was set back.
	NotYetValid Reason = "not_yet_valid"
	// Expired is a document whose end has passed.
	Expired Reason = "expired"
	// ClockSetBack is a clock behind the newest time of the service that the device has seen.
	ClockSetBack Reason = "clock_set_back"
	// Older is a document older than the newest that the device has seen.
	Older Reason = "older"
	// Stale is a receipt that needs a newer list of revocations before it counts again.
	Stale Reason = "stale"
	// Voided is a receipt that the service has revoked, or of a license that is revoked or suspended.
	Voided Reason = "voided"
)

// Kind is which document is refused.
type Kind string

// The kinds of documents.
const (
	KeySetDocument      Kind = "keys"
	ReceiptDocument     Kind = "receipt"
	RevocationsDocument Kind = "revocations"
)

// Error is the refusal of a document.
type Error struct {
	Reason   Reason
	Document Kind
	Detail   string // for a log: names the member or the part, never the content of the document
}

func (e *Error) Error() string { return "receipt: " + string(e.Reason) + ": " + e.Detail }

// in notes which document an [*Error] refuses.
func in(document Kind, err error) error {
	var refused *Error
	if errors.As(err, &refused) {
		refused.Document = document
	}
	return err
}

func refuse(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
