package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// SandboxWriter is the number of the repeated field with the writers of a record of the sandbox.
const SandboxWriter protowire.Number = 15

// Sandbox is the value of what the sandbox knows about an order. The order's number and the account are in the key.
type Sandbox struct {
	Sandbox licensing.SandboxOrder
	Writers []Writer
	Unknown []byte // fields of a newer format, to be kept
}

func (s *Sandbox) table() fieldTable {
	o, subscription := &s.Sandbox, &s.Sandbox.Subscription
	return fieldTable{
		numberField(1, &o.Attempt), textField(2, &o.Outcome), timeField(3, &o.PaidAt),
		boolField(4, &o.RefundFails), textField(5, &o.RefundNo), timeField(6, &o.RefundEnds),
		numberField(7, &subscription.Ahead), numberField(8, &subscription.Unpaid),
		numberField(9, &subscription.Periods), timeField(10, &subscription.EndedAt),
		numberField(11, &subscription.Amount), textField(12, &subscription.Changed),
		timeField(13, &subscription.ChangedFrom),
		writersField(SandboxWriter, &s.Writers), unknownFields(&s.Unknown),
	}
}

// Encode returns the value.
func (s *Sandbox) Encode() []byte { return s.table().value() }

// DecodeSandbox decodes the value of what the sandbox knows about an order.
func DecodeSandbox(value []byte) (*Sandbox, error) {
	s := &Sandbox{}
	err := DecodeValue(value, s.table().read)
	if err == nil && s.Sandbox.Attempt < 0 {
		err = ErrMalformed
	}
	return s, err
}
