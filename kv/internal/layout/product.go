package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// ProductWriter is the number of the repeated field with the writers of a product.
const ProductWriter protowire.Number = 15

// Product is the value of a product. The product's id, account and mode are in the key.
type Product struct {
	Product licensing.Product
	Writers []Writer
	Unknown []byte // fields of a newer format, to be kept
}

func (s *Product) table() fieldTable {
	p := &s.Product
	return fieldTable{
		termsField(1, &p.Terms),
		timeField(2, &p.CreatedAt),
		textField(3, &p.Name),
		textField(4, &p.Metadata),
		textField(5, &p.Entitlements),
		writersField(ProductWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// Encode returns the product's value.
func (s *Product) Encode() []byte { return s.table().value() }

// DecodeProduct decodes the value of a product.
func DecodeProduct(ref licensing.Ref, value []byte) (*Product, error) {
	s := &Product{Product: licensing.Product{ID: ref.ID, Owner: ref.Owner}}
	return s, DecodeValue(value, s.table().read)
}
