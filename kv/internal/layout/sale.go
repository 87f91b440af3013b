package layout

import (
	"encoding/binary"
	"time"

	"licet/licensing"
)

const (
	// SalesFamily begins the keys of payments and refunds by time.
	SalesFamily = "pt/"
	// BooksKey holds the time from which on each payment has an entry among the sales of its owner.
	BooksKey = CellPrefix + "books"
)

// SalesOf returns the listing of an owner's payments and refunds by time.
func SalesOf(owner licensing.Owner) string { return SalesFamily + OwnerPath(owner) }

// Entry is an entry of a listing with a value; the zero Entry is none.
type Entry struct{ Key, Value string }

// SaleEntry returns the entry of a payment among the sales of its owner; none if reports don't show the payment.
func SaleEntry(ref licensing.Ref, p *licensing.Payment) Entry {
	sale, ok := p.Sale()
	if !ok {
		return Entry{}
	}
	return Entry{
		Key:   InSlot(licensing.SlotOf(ref.Owner), SalesOf(ref.Owner)+TimeInKey(sale.At)+ref.ID),
		Value: string(saleTable(&sale).value()),
	}
}

// saleTable lists the fields of a sale. Its time is in the key.
func saleTable(s *licensing.Sale) fieldTable {
	return fieldTable{
		textField(1, &s.Kind), numberField(2, &s.Amount), textField(3, &s.Currency), textField(4, &s.ProductID),
	}
}

// ReadSaleKey decodes the key of a sale behind its family: which payment it is, and when it was paid.
func ReadSaleKey(rest string) (payment licensing.Ref, at time.Time, ok bool) {
	owner, rest, ok := CutOwner(rest)
	if !ok || len(rest) != TimeSize+licensing.PaymentNameSize {
		return payment, at, false
	}
	return licensing.Ref{Kind: licensing.KindPayment, Owner: owner, ID: rest[TimeSize:]}, readTime(rest), true
}

// DecodeSale decodes the value of the sale at a position in its listing.
func DecodeSale(position string, value []byte) (licensing.Sale, error) {
	if len(position) != TimeSize+licensing.PaymentNameSize {
		return licensing.Sale{}, ErrMalformed
	}
	s := licensing.Sale{At: readTime(position)}
	err := DecodeValue(value, saleTable(&s).read)
	if err == nil && (!s.Kind.Known() || s.Currency == "" || s.ProductID == "" || s.Amount < 0) {
		err = ErrMalformed
	}
	return s, err
}

// readTime returns the time at the beginning of a text, as TimeInKey has written it.
func readTime(text string) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64([]byte(text)))).UTC()
}

// ReadBooks decodes the value of BooksKey.
func ReadBooks(value []byte) (time.Time, error) {
	if len(value) != TimeSize {
		return time.Time{}, ErrMalformed
	}
	return readTime(string(value)), nil
}
