package kv

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
	productWriter    protowire.Number = 15 // repeated
)

// storedProduct is a product as its key holds it.
type storedProduct struct {
	product licensing.Product
	writers []writer
	unknown []byte // fields of a newer format, to be kept
}

func (s *storedProduct) encode() []byte {
	p := &s.product
	b := appendBytes([]byte{formatVersion}, productTerms, encodeTerms(p.Terms))
	b = appendTime(b, productCreatedAt, p.CreatedAt)
	b = appendString(b, productName, p.Name)
	b = appendString(b, productMetadata, p.Metadata)
	b = appendWriters(b, productWriter, s.writers)
	return append(b, s.unknown...)
}

// decodeProduct reads the value under a product's key.
func decodeProduct(ref licensing.Ref, value []byte) (*storedProduct, error) {
	s := &storedProduct{product: licensing.Product{ID: ref.ID, Owner: ref.Owner}}
	p := &s.product
	err := decodeValue(value, func(f field) (err error) {
		switch f.num {
		case productTerms:
			p.Terms, err = decodeTerms(f.bytes)
		case productCreatedAt:
			p.CreatedAt = f.time()
		case productName:
			p.Name = f.string()
		case productMetadata:
			p.Metadata = f.string()
		case productWriter:
			s.writers, err = decodeWriter(s.writers, f.bytes)
		default:
			s.unknown = append(s.unknown, f.raw...)
		}
		return err
	})
	return s, err
}
