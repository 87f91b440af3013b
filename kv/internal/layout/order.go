package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/licensing/keyring"
)

// OrderWriter is the number of the repeated field with the writers of an order.
const OrderWriter protowire.Number = 15

// Order is the value of an order. The order's number, account and mode are in the key.
type Order struct {
	Order     licensing.Order
	Writers   []Writer
	LastEvent keyspace.Location // of the order's latest event
	Unknown   []byte            // fields of a newer format, to be kept
}

// table lists the fields of an order.
func (s *Order) table() fieldTable {
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
		{8, clearTokenVar{&o.PayHash}},
		termsField(9, &o.Terms),
		timeField(10, &o.CreatedAt),
		timeField(11, &o.ExpiresAt),
		timeField(12, &o.PaidAt),
		timeField(13, &o.CanceledAt),
		timeField(14, &o.RefundedAt),
		timeField(16, &o.ExpiredAt),
		{17, licenseKeyVar{&o.LicenseKey}},
		boolField(18, &o.Late),
		textField(19, &o.Payment),
		{20, refundDueVar{o}},
		textField(25, &o.RefundBy),
		numberField(21, &o.RefundTries),
		timeField(22, &o.RefundRetryAt),
		textField(23, &o.StateReason),
		{26, arrayOrNone(o.PayHash[:])},
		textField(27, &o.PaySeed.MasterID),
		{28, arrayOrNone(o.PaySeed.Salt[:])},
		{29, licenseKeyVar{&o.UpgradeOf}},
		textField(30, &o.Provider),
		numberField(31, &o.Attempt),
		textField(32, &o.Checkout),
		timeField(33, &o.CheckoutEnds),
		textField(40, &o.Subscription),
		textField(41, &o.SubscriptionStatus),
		timeField(42, &o.PaidEnd),
		timeField(43, &o.CancelAt),
		{44, periodVar{&o.Interval}},
		{49, periodVar{&o.BillingGrace}},
		numberField(50, &o.Answers),
		numberField(51, &o.Invoices),
		numberField(52, &o.Invoiced),
		boolField(53, &o.EndDue),
		messageField(60, &o.Change, changeTable),
		textField(67, &o.RefusedChanges),
		pointerField(61, &o.Next, planTable),
		pointerField(62, &o.Plan, planTable),
		numberField(63, &o.Returned),
		numberField(64, &o.InvoiceRefunds),
		customField(56, &o.Returns, appendReturns, func(f Field) (*[]licensing.Return, error) {
			return decodeReturn(o.OpenReturns(), f)
		}),
		customField(59, &o.Fee, appendAmount, decodeAmount),
		timeField(45, &o.AskAt),
		numberField(66, &o.AskFailures),
		numberField(34, &o.Paid),
		numberField(35, &o.Refunded),
		{36, refundingVar{o}},
		textField(46, &o.RefundNo),
		numberField(47, &o.Refunds),
		boolField(48, &o.RefundPending),
		boolField(70, &o.RefundEnds),
		textField(54, &o.Disputes),
		timeField(55, &o.DisputeAskAt),
		numberField(65, &o.Uncounted),
		numberField(37, &o.Quantity),
		numberField(38, &o.LicensesIssued),
		{39, arrayOrNone(o.KeySeed[:])},
		numberField(68, &o.Others),
		numberField(69, &o.OthersFrom),
		writersField(OrderWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// refundDueVar marks an open refund without a number of its own. An order with such a number has no mark: an older
// build would send all the money back under the number of the order.
type refundDueVar struct{ order *licensing.Order }

func (v refundDueVar) write(b []byte, num protowire.Number) []byte {
	return appendBool(b, num, v.order.RefundDue && v.order.RefundNo == "")
}
func (v refundDueVar) read(f Field) error {
	v.order.RefundDue = f.bool() || v.order.RefundDue
	return nil
}

// refundingVar is the amount of an open refund with a number of its own.
type refundingVar struct{ order *licensing.Order }

func (v refundingVar) write(b []byte, num protowire.Number) []byte {
	return appendUint(b, num, uint64(v.order.Refunding))
}
func (v refundingVar) read(f Field) error {
	v.order.RefundDue, v.order.Refunding = true, int64(f.varint)
	return nil
}

// changeTable lists the fields of an open change of a subscription.
func changeTable(c *licensing.SubscriptionChange) fieldTable {
	return fieldTable{
		textField(1, &c.Kind), textField(2, &c.Number), boolField(3, &c.Later), pointerField(4, &c.Plan, planTable),
	}
}

// planTable lists the fields of what a subscription pays for.
func planTable(p *licensing.Plan) fieldTable {
	return fieldTable{
		textField(1, &p.ProductID), numberField(2, &p.Amount), boolField(3, &p.SetMaximum),
		numberField(4, &p.MaxDevices), {5, termsOrNone{termsVar{&p.Terms}}}, timeField(6, &p.From),
	}
}

// returnTable lists the fields of an open refund of a further payment.
func returnTable(r *licensing.Return) fieldTable {
	return fieldTable{
		textField(1, &r.Number), textField(2, &r.Of), numberField(3, &r.Amount), textField(4, &r.By),
		boolField(5, &r.Second), boolField(6, &r.Pending), numberField(7, &r.Tries), timeField(8, &r.RetryAt),
		boolField(9, &r.Refused),
	}
}

func appendReturns(b []byte, num protowire.Number, list *[]licensing.Return) []byte {
	if list == nil {
		return b
	}
	for _, r := range *list {
		b = appendMessage(b, num, returnTable(&r))
	}
	return b
}

// decodeReturn appends the open refund in a field to the open refunds before.
func decodeReturn(before []licensing.Return, f Field) (*[]licensing.Return, error) {
	var r licensing.Return
	err := decodeMessage(f.Bytes, returnTable(&r).read)
	return new(append(slices.Clip(before), r)), err
}

// arrayOrNone is an array that is not written if every byte is zero: orders in events have no pay token, paid orders
// have no salt, and most orders have no seed of keys.
type arrayOrNone []byte

func (v arrayOrNone) write(b []byte, num protowire.Number) []byte {
	for _, c := range v {
		if c != 0 {
			return appendBytes(b, num, v)
		}
	}
	return b
}
func (v arrayOrNone) read(f Field) error { return f.fill(v) }

// clearTokenVar reads the pay token itself, which the first builds stored, as its hash. Nothing writes it again.
type clearTokenVar struct{ hash *[sha256.Size]byte }

func (v clearTokenVar) write(b []byte, _ protowire.Number) []byte { return b }
func (v clearTokenVar) read(f Field) error {
	*v.hash = keyring.HashPayToken(hex.EncodeToString(f.Bytes))
	return nil
}

// Encode returns the order's value.
func (s *Order) Encode() []byte {
	b := make([]byte, 1, 256+len(s.Order.Description)+len(s.Order.Metadata))
	b[0] = formatVersion
	return s.table().appendTo(b)
}

// DecodeOrder decodes the value of an order.
func DecodeOrder(ref licensing.Ref, value []byte) (*Order, error) {
	s := &Order{Order: licensing.Order{OrderNo: ref.ID, Owner: ref.Owner}}
	err := DecodeValue(value, s.table().read)
	return s, err
}
