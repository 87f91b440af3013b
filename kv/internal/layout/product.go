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
		messageField(6, &p.Rollout, rolloutTable),
		messageField(7, &p.Trial, trialTermsTable),
		textField(8, &p.TrialEntitlements),
		{9, periodVar{&p.Billing.Interval}},
		{10, periodVar{&p.Billing.Grace}},
		writersField(ProductWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// trialTermsTable lists the fields of the terms of trials.
func trialTermsTable(t *licensing.TrialTerms) fieldTable {
	return fieldTable{
		{1, periodVar{&t.Validity}}, numberField(2, &t.MaxDevices), boolField(3, &t.PerEmail),
		boolField(4, &t.Entitled), numberField(5, &t.Version),
	}
}

// rolloutTable lists the fields of a rollout.
func rolloutTable(o *licensing.Rollout) fieldTable {
	return fieldTable{
		termsField(1, &o.Terms),
		numberField(2, &o.Applies),
		boolField(3, &o.DryRun),
		textField(4, &o.By),
		timeField(5, &o.StartedAt),
		timeField(6, &o.EndedAt),
		boolField(7, &o.Canceled),
		boolField(8, &o.OverBudget),
		textField(9, &o.Cursor),
		timeField(10, &o.NextAt),
		numberField(11, &o.Counts.Licenses),
		numberField(12, &o.Counts.Updated),
		numberField(13, &o.Counts.LimitsKept),
		numberField(14, &o.Counts.Failed),
	}
}

// Encode returns the product's value.
func (s *Product) Encode() []byte { return s.table().value() }

// DecodeProduct decodes the value of a product.
func DecodeProduct(ref licensing.Ref, value []byte) (*Product, error) {
	s := &Product{Product: licensing.Product{ID: ref.ID, Owner: ref.Owner}}
	return s, DecodeValue(value, s.table().read)
}
