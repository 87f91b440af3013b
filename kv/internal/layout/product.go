package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of a stored product. Its id, account and mode are in its key.
const (
	productTerms     protowire.Number = 1
	productCreatedAt protowire.Number = 2
	productName      protowire.Number = 3
	productMetadata  protowire.Number = 4
	ProductWriter    protowire.Number = 15 // repeated
)

// Product is a product as its key holds it.
type Product struct {
	Product licensing.Product
	Writers []Writer
	Unknown []byte // fields of a newer format, to be kept
}

// Encode returns the product's value.
func (s *Product) Encode() []byte {
	p := &s.Product
	b := appendBytes([]byte{formatVersion}, productTerms, encodeTerms(p.Terms))
	b = appendTime(b, productCreatedAt, p.CreatedAt)
	b = appendString(b, productName, p.Name)
	b = appendString(b, productMetadata, p.Metadata)
	b = appendWriters(b, ProductWriter, s.Writers)
	return append(b, s.Unknown...)
}

// DecodeProduct reads the value under a product's key.
func DecodeProduct(ref licensing.Ref, value []byte) (*Product, error) {
	s := &Product{Product: licensing.Product{ID: ref.ID, Owner: ref.Owner}}
	p := &s.Product
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case productTerms:
			p.Terms, err = decodeTerms(f.Bytes)
		case productCreatedAt:
			p.CreatedAt = f.time()
		case productName:
			p.Name = f.string()
		case productMetadata:
			p.Metadata = f.string()
		case ProductWriter:
			s.Writers, err = decodeWriter(s.Writers, f.Bytes)
		default:
			s.Unknown = append(s.Unknown, f.raw...)
		}
		return err
	})
	return s, err
}
