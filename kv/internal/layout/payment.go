package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

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
		textField(9, &p.Kind), textField(10, &p.State), customField(11, &p.Fee, appendAmount, decodeAmount),
		textField(12, &p.ProviderID), timeField(13, &p.PeriodEnd), textField(16, &p.Refunds),
		numberField(17, &p.Answers), numberField(18, &p.Counted), numberField(19, &p.Returned),
		textField(20, &p.ProductID), numberField(21, &p.Uncounted),
		writersField(PaymentWriter, &s.Writers), unknownFields(&s.Unknown),
	}
}

// appendAmount appends an amount that may be unknown, and then is not written.
func appendAmount(b []byte, num protowire.Number, amount *int64) []byte {
	if amount == nil {
		return b
	}
	return appendCount(b, num, int(*amount))
}

func decodeAmount(f Field) (*int64, error) { return new(int64(f.varint)), nil }

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
