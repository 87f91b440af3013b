package layout

import (
	"time"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// Entry is a listing entry with a value; the zero Entry means no entry.
type Entry struct{ Key, Value string }

// SaleEntry returns the entry of a payment among the sales of its owner; none if reports don't show the payment.
func SaleEntry(ref licensing.Ref, p *licensing.Payment) Entry {
	sale, ok := p.Sale()
	if !ok {
		return Entry{}
	}
	return Entry{
		Key:   keyspace.SaleKey(ref, sale.At),
		Value: string(saleTable(&sale).value()),
	}
}

// saleTable lists the fields of a sale. Its time is in the key.
func saleTable(s *licensing.Sale) fieldTable {
	return fieldTable{
		textField(1, &s.Kind), numberField(2, &s.Amount), textField(3, &s.Currency), textField(4, &s.ProductID),
	}
}

// DecodeSale decodes the value of the sale at a position in its listing.
func DecodeSale(position string, value []byte) (licensing.Sale, error) {
	if len(position) != keyspace.TimeSize+licensing.PaymentNameSize {
		return licensing.Sale{}, ErrMalformed
	}
	s := licensing.Sale{At: keyspace.ReadTime(position)}
	err := DecodeValue(value, saleTable(&s).read)
	if err == nil && (!s.Kind.Known() || s.Currency == "" || s.ProductID == "" || s.Amount < 0) {
		err = ErrMalformed
	}
	return s, err
}

// ReadBooks decodes the value of BooksKey.
func ReadBooks(value []byte) (time.Time, error) {
	if len(value) != keyspace.TimeSize {
		return time.Time{}, ErrMalformed
	}
	return keyspace.ReadTime(string(value)), nil
}
