package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// PaymentsFamily begins the keys of payments.
const PaymentsFamily = "pa/"

// PaymentKey returns the key of a payment.
func PaymentKey(ref licensing.Ref) string { return OfOwner(ref.Owner, PaymentsFamily) + ref.ID }

// PaymentWriter is the number of the repeated field with the writers of a payment.
const PaymentWriter protowire.Number = 15

// Payment is the value of a payment. The hash of the provider and the reference, the account and the mode are in the
// key.
type Payment struct {
	Payment licensing.Payment
	Writers []Writer
	Unknown []byte // fields of a newer format, to be kept
}

func (s *Payment) table() fieldTable {
	p := &s.Payment
	return fieldTable{
		textField(1, &p.OrderNo), textField(2, &p.Provider), textField(3, &p.Reference), numberField(4, &p.Amount),
		textField(5, &p.Currency), timeField(6, &p.PaidAt), timeField(7, &p.RecordedAt), textField(8, &p.By),
		textField(20, &p.ProductID),
		writersField(PaymentWriter, &s.Writers), unknownFields(&s.Unknown),
	}
}

// Encode returns the value of a payment.
func (s *Payment) Encode() []byte { return s.table().value() }

// DecodePayment decodes the value of a payment.
func DecodePayment(value []byte) (*Payment, error) {
	s := &Payment{}
	err := DecodeValue(value, s.table().read)
	if err == nil && !licensing.ValidOrderNo(s.Payment.OrderNo) {
		err = ErrMalformed
	}
	return s, err
}

// ReadPaymentKey decodes the key of a payment behind its family.
func ReadPaymentKey(rest string) (ref licensing.Ref, ok bool) {
	return cutNamed(licensing.KindPayment, rest, licensing.PaymentNameSize)
}
