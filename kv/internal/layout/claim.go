package layout

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// ClaimWriter is the number of the repeated field with the writers of a claim.
const ClaimWriter protowire.Number = 15

func claimTable(c *licensing.Claim, writers *[]Writer) fieldTable {
	return fieldTable{
		arrayField(1, c.Fingerprint[:]),
		timeField(2, &c.CreatedAt),
		textField(3, &c.OrderNo),
		textField(16, &c.Number),
		{6, licenseKeyVar{&c.LicenseKey}},
		pointerField(4, &c.Grant, grantTable),
		pointerField(5, &c.Refusal, refusalTable),
		textField(12, &c.APIKeyID),
		textField(14, &c.EndpointID),
		textField(11, &c.ProductID),
		pointerField(13, &c.Redaction, redactionTable),
		writersField(ClaimWriter, writers),
	}
}

func grantTable(g *licensing.GrantProgress) fieldTable {
	return fieldTable{
		arrayField(1, g.Seed[:]), termsField(2, &g.Terms), numberField(3, &g.Quantity), numberField(4, &g.Done),
	}
}

func refusalTable(r *licensing.Error) fieldTable {
	return fieldTable{textField(1, &r.Reason), textField(2, &r.Message)}
}

func redactionTable(r *licensing.Redaction) fieldTable {
	return fieldTable{numberField(1, &r.Orders), numberField(2, &r.Licenses), boolField(3, &r.Complete)}
}

// EncodeClaim returns the value of a claim on an Idempotency-Key.
func EncodeClaim(c *licensing.Claim, writers []Writer) []byte { return claimTable(c, &writers).value() }

// DecodeClaim decodes a claim's value, and returns the claim and its writers.
func DecodeClaim(value []byte) (*licensing.Claim, []Writer, error) {
	c := &licensing.Claim{}
	var writers []Writer
	err := DecodeValue(value, claimTable(c, &writers).read)
	return c, writers, err
}

// fill copies a field of a fixed length into array.
func (f Field) fill(array []byte) error {
	if len(f.Bytes) != len(array) {
		return fmt.Errorf("%w: field %d has %d bytes, not %d", ErrMalformed, f.Num, len(f.Bytes), len(array))
	}
	copy(array, f.Bytes)
	return nil
}
