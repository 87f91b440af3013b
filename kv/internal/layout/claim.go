package layout

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of a stored claim.
const (
	claimFingerprint protowire.Number = 1
	claimCreatedAt   protowire.Number = 2
	claimOrderNo     protowire.Number = 3
	claimGrant       protowire.Number = 4
	claimRefusal     protowire.Number = 5
	claimAPIKeyID    protowire.Number = 12
	claimLicenseKey  protowire.Number = 6
	claimRedaction   protowire.Number = 13
	claimEndpointID  protowire.Number = 14
	ClaimWriter      protowire.Number = 15 // repeated
)

const (
	grantSeed     protowire.Number = 1
	grantTerms    protowire.Number = 2
	grantQuantity protowire.Number = 3
	grantDone     protowire.Number = 4
)

const (
	redactionOrders   protowire.Number = 1
	redactionLicenses protowire.Number = 2
	redactionComplete protowire.Number = 3
)

const (
	refusalReason  protowire.Number = 1
	refusalMessage protowire.Number = 2
)

// EncodeClaim returns the value of a claim on an Idempotency-Key.
func EncodeClaim(c *licensing.Claim, writers []Writer) []byte {
	b := appendBytes([]byte{formatVersion}, claimFingerprint, c.Fingerprint[:])
	b = appendTime(b, claimCreatedAt, c.CreatedAt)
	b = appendString(b, claimOrderNo, c.OrderNo)
	b = appendString(b, claimLicenseKey, string(c.LicenseKey))
	if g := c.Grant; g != nil {
		m := appendBytes(nil, grantSeed, g.Seed[:])
		m = appendBytes(m, grantTerms, encodeTerms(g.Terms))
		m = appendUint(m, grantQuantity, uint64(g.Quantity))
		b = appendBytes(b, claimGrant, appendUint(m, grantDone, uint64(g.Done)))
	}
	if r := c.Refusal; r != nil {
		m := appendString(nil, refusalReason, string(r.Reason))
		b = appendBytes(b, claimRefusal, appendString(m, refusalMessage, r.Message))
	}
	b = appendString(b, claimAPIKeyID, c.APIKeyID)
	b = appendString(b, claimEndpointID, c.EndpointID)
	if r := c.Redaction; r != nil {
		m := appendUint(nil, redactionOrders, uint64(r.Orders))
		m = appendUint(m, redactionLicenses, uint64(r.Licenses))
		b = appendBytes(b, claimRedaction, appendBool(m, redactionComplete, r.Complete))
	}
	return appendWriters(b, ClaimWriter, writers)
}

// DecodeClaim decodes a claim's value, and returns the claim and its writers.
func DecodeClaim(value []byte) (*licensing.Claim, []Writer, error) {
	c := &licensing.Claim{}
	var writers []Writer
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case claimFingerprint:
			err = f.fill(c.Fingerprint[:])
		case claimCreatedAt:
			c.CreatedAt = f.time()
		case claimOrderNo:
			c.OrderNo = f.string()
		case claimLicenseKey:
			c.LicenseKey = licensing.LicenseKey(f.string())
		case claimGrant:
			c.Grant, err = decodeGrant(f.Bytes)
		case claimRefusal:
			c.Refusal, err = decodeRefusal(f.Bytes)
		case claimAPIKeyID:
			c.APIKeyID = f.string()
		case claimEndpointID:
			c.EndpointID = f.string()
		case claimRedaction:
			c.Redaction, err = decodeRedaction(f.Bytes)
		case ClaimWriter:
			writers, err = decodeWriter(writers, f.Bytes)
		}
		return err
	})
	return c, writers, err
}

func decodeGrant(message []byte) (*licensing.GrantProgress, error) {
	g := &licensing.GrantProgress{}
	err := decodeMessage(message, func(f Field) (err error) {
		switch f.Num {
		case grantSeed:
			err = f.fill(g.Seed[:])
		case grantTerms:
			g.Terms, err = decodeTerms(f.Bytes)
		case grantQuantity:
			g.Quantity = f.int()
		case grantDone:
			g.Done = f.int()
		}
		return err
	})
	return g, err
}

func decodeRefusal(message []byte) (*licensing.Error, error) {
	r := &licensing.Error{}
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case refusalReason:
			r.Reason = licensing.Reason(f.string())
		case refusalMessage:
			r.Message = f.string()
		}
		return nil
	})
	return r, err
}

func decodeRedaction(message []byte) (*licensing.Redaction, error) {
	r := &licensing.Redaction{}
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case redactionOrders:
			r.Orders = f.int()
		case redactionLicenses:
			r.Licenses = f.int()
		case redactionComplete:
			r.Complete = f.bool()
		}
		return nil
	})
	return r, err
}

// fill copies a field of a fixed length.
func (f Field) fill(into []byte) error {
	if len(f.Bytes) != len(into) {
		return fmt.Errorf("%w: field %d has %d bytes, not %d", ErrMalformed, f.Num, len(f.Bytes), len(into))
	}
	copy(into, f.Bytes)
	return nil
}
