package layout

import (
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of a stored order. Its number, account and mode are in its key.
const (
	orderProduct     protowire.Number = 1
	orderAmount      protowire.Number = 2
	orderCurrency    protowire.Number = 3
	orderDescription protowire.Number = 4
	orderBuyerEmail  protowire.Number = 5
	orderMetadata    protowire.Number = 6
	orderSuccessURL  protowire.Number = 7
	orderPayToken    protowire.Number = 8 // the 16 bytes behind the hex text
	orderTerms       protowire.Number = 9
	orderCreatedAt   protowire.Number = 10
	orderExpiresAt   protowire.Number = 11
	orderPaidAt      protowire.Number = 12
	orderCanceledAt  protowire.Number = 13
	orderRefundedAt  protowire.Number = 14
	OrderWriter      protowire.Number = 15 // repeated
	orderExpiredAt   protowire.Number = 16
	orderLicenseKey  protowire.Number = 17
	orderLate        protowire.Number = 18
	orderPayment     protowire.Number = 19
	orderRefundDue   protowire.Number = 20
	orderRefundTries protowire.Number = 21
	orderRefundRetry protowire.Number = 22
	orderStateReason protowire.Number = 23
	orderEvents      protowire.Number = 24 // the first field: see locationAt
	orderRefundBy    protowire.Number = 25
)

// Order is an order as its key holds it.
type Order struct {
	Order     licensing.Order
	Writers   []Writer
	LastEvent Location // of its latest event
	Unknown   []byte   // fields of a newer format, to be kept
}

// Encode returns the order's value.
func (s *Order) Encode() ([]byte, error) {
	o := &s.Order
	token, err := hex.DecodeString(o.PayToken)
	if err != nil {
		return nil, ErrMalformed
	}
	b := make([]byte, 1, 256+len(o.Description)+len(o.Metadata))
	b[0] = formatVersion
	b = appendLastEvent(b, orderEvents, s.LastEvent, o.Sequence)
	b = appendString(b, orderProduct, o.ProductID)
	b = appendUint(b, orderAmount, uint64(o.Amount))
	b = appendString(b, orderCurrency, o.Currency)
	b = appendString(b, orderDescription, o.Description)
	b = appendString(b, orderBuyerEmail, o.BuyerEmail)
	b = appendString(b, orderMetadata, o.Metadata)
	b = appendString(b, orderSuccessURL, o.SuccessURL)
	b = appendBytes(b, orderPayToken, token)
	b = appendBytes(b, orderTerms, encodeTerms(o.Terms))
	b = appendTime(b, orderCreatedAt, o.CreatedAt)
	b = appendTime(b, orderExpiresAt, o.ExpiresAt)
	b = appendTime(b, orderPaidAt, o.PaidAt)
	b = appendTime(b, orderCanceledAt, o.CanceledAt)
	b = appendTime(b, orderRefundedAt, o.RefundedAt)
	b = appendTime(b, orderExpiredAt, o.ExpiredAt)
	b = appendString(b, orderLicenseKey, string(o.LicenseKey))
	b = appendBool(b, orderLate, o.Late)
	b = appendString(b, orderPayment, o.Payment)
	b = appendBool(b, orderRefundDue, o.RefundDue)
	b = appendString(b, orderRefundBy, string(o.RefundBy))
	b = appendUint(b, orderRefundTries, uint64(o.RefundTries))
	b = appendTime(b, orderRefundRetry, o.RefundRetryAt)
	b = appendString(b, orderStateReason, o.StateReason)
	b = appendWriters(b, OrderWriter, s.Writers)
	return append(b, s.Unknown...), nil
}

// DecodeOrder reads the value under an order's key.
func DecodeOrder(ref licensing.Ref, value []byte) (*Order, error) {
	s := &Order{Order: licensing.Order{OrderNo: ref.ID, Owner: ref.Owner}}
	o := &s.Order
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case orderProduct:
			o.ProductID = f.string()
		case orderAmount:
			o.Amount = int64(f.varint)
		case orderCurrency:
			o.Currency = f.string()
		case orderDescription:
			o.Description = f.string()
		case orderBuyerEmail:
			o.BuyerEmail = f.string()
		case orderMetadata:
			o.Metadata = f.string()
		case orderSuccessURL:
			o.SuccessURL = f.string()
		case orderPayToken:
			o.PayToken = hex.EncodeToString(f.Bytes)
		case orderTerms:
			o.Terms, err = decodeTerms(f.Bytes)
		case orderCreatedAt:
			o.CreatedAt = f.time()
		case orderExpiresAt:
			o.ExpiresAt = f.time()
		case orderPaidAt:
			o.PaidAt = f.time()
		case orderCanceledAt:
			o.CanceledAt = f.time()
		case orderRefundedAt:
			o.RefundedAt = f.time()
		case OrderWriter:
			s.Writers, err = decodeWriter(s.Writers, f.Bytes)
		case orderExpiredAt:
			o.ExpiredAt = f.time()
		case orderEvents:
			s.LastEvent, o.Sequence, err = f.lastEvent()
		case orderRefundBy:
			o.RefundBy = licensing.Actor(f.string())
		case orderLicenseKey:
			o.LicenseKey = licensing.LicenseKey(f.string())
		case orderLate:
			o.Late = f.bool()
		case orderPayment:
			o.Payment = f.string()
		case orderRefundDue:
			o.RefundDue = f.bool()
		case orderRefundTries:
			o.RefundTries = f.int()
		case orderRefundRetry:
			o.RefundRetryAt = f.time()
		case orderStateReason:
			o.StateReason = f.string()
		default:
			s.Unknown = append(s.Unknown, f.raw...)
		}
		return err
	})
	return s, err
}
