package layout

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// OrderWriter is the number of the repeated field with the writers of an order.
const OrderWriter protowire.Number = 15

// Order is the value of an order. The order's number, account and mode are in the key.
type Order struct {
	Order     licensing.Order
	Writers   []Writer
	LastEvent Location // of the order's latest event
	Unknown   []byte   // fields of a newer format, to be kept
}

// table lists the fields of an order. payToken holds the bytes that the hex text of the pay token stands for.
func (s *Order) table(payToken *[]byte) fieldTable {
	o := &s.Order
	return fieldTable{
		lastEventField(24, &s.LastEvent, &o.Sequence),
		textField(1, &o.ProductID),
		numberField(2, &o.Amount),
		textField(3, &o.Currency),
		textField(4, &o.Description),
		textField(5, &o.BuyerEmail),
		textField(6, &o.Metadata),
		textField(7, &o.SuccessURL),
		bytesField(8, payToken),
		termsField(9, &o.Terms),
		timeField(10, &o.CreatedAt),
		timeField(11, &o.ExpiresAt),
		timeField(12, &o.PaidAt),
		timeField(13, &o.CanceledAt),
		timeField(14, &o.RefundedAt),
		timeField(16, &o.ExpiredAt),
		textField(17, &o.LicenseKey),
		boolField(18, &o.Late),
		textField(19, &o.Payment),
		boolField(20, &o.RefundDue),
		textField(25, &o.RefundBy),
		numberField(21, &o.RefundTries),
		timeField(22, &o.RefundRetryAt),
		textField(23, &o.StateReason),
		writersField(OrderWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// Encode returns the order's value.
func (s *Order) Encode() ([]byte, error) {
	payToken, err := hex.DecodeString(s.Order.PayToken)
	if err != nil {
		return nil, ErrMalformed
	}
	b := make([]byte, 1, 256+len(s.Order.Description)+len(s.Order.Metadata))
	b[0] = formatVersion
	return s.table(&payToken).appendTo(b), nil
}

// DecodeOrder decodes the value of an order.
func DecodeOrder(ref licensing.Ref, value []byte) (*Order, error) {
	s := &Order{Order: licensing.Order{OrderNo: ref.ID, Owner: ref.Owner}}
	var payToken []byte
	err := DecodeValue(value, s.table(&payToken).read)
	s.Order.PayToken = hex.EncodeToString(payToken)
	return s, err
}
