package client

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// ProductService defines products.
type ProductService struct{ client *Client }

// Product is a product and the terms of its licenses.
type Product struct {
	ProductID               string `json:"product_id"`
	Name                    string `json:"name"`
	KeyPrefix               string `json:"key_prefix"`
	MaxDevices              int    `json:"max_devices"` // 0: unlimited
	Validity                string `json:"validity"`    // an ISO 8601 duration; empty: forever
	ValidityFrom            string `json:"validity_from"`
	Grace                   string `json:"grace"` // after the end of a license, such as P7D; empty: none
	SelfServiceDeactivation bool   `json:"self_service_deactivation"`
	RemovalsPerMonth        int    `json:"removals_per_month"` // 0: any number
	DeviceMode              string `json:"device_mode"`        // bound, or leased: floating licenses
	LeaseSeconds            int    `json:"lease_seconds"`      // 0: no leases
	MaxLeaseSeconds         int    `json:"max_lease_seconds"`  // 0: no leases
	// InactiveAfter is how long a device must be unseen before an activation of a full license may take its slot;
	// empty: no device loses its slot.
	InactiveAfter string       `json:"inactive_after"`
	DeviceMatch   *DeviceMatch `json:"device_match"` // nil: devices with a new id are new
	// Receipt reports whether activations, validations and trials carry a receipt even if they do not ask for one.
	Receipt         bool   `json:"receipt"`
	ReceiptValidity string `json:"receipt_validity"` // an ISO 8601 duration
	// RevocationMaxAge is how long programs accept a receipt without a newer list of revocations, an ISO 8601 duration;
	// empty: until the end of the receipt.
	RevocationMaxAge string `json:"revocation_max_age"`
	// Entitlements of new licenses, as they were put: a value may be an object with an end.
	Entitlements Entitlements    `json:"entitlements"`
	Trial        TrialTerms      `json:"trial"`   // zero: the product can't be tried
	Billing      *Billing        `json:"billing"` // nil: orders are paid once
	Metadata     json.RawMessage `json:"metadata"`
	CreatedAt    time.Time       `json:"created_at"`
	AccountID    string          `json:"account_id"`
	Mode         string          `json:"mode"`
}

// DeviceMatch says which unknown devices are bound devices that have changed.
type DeviceMatch struct {
	AtLeast         int `json:"at_least"`                    // how many components must be equal
	ChangesPerMonth int `json:"changes_per_month,omitempty"` // of a license; 0 in ProductTerms: 4
}

// ProductTerms describes a product completely. A field that is not set has the default of a new product, which the
// comment names.
type ProductTerms struct {
	Name                    string `json:"name,omitempty"`
	KeyPrefix               string `json:"key_prefix,omitempty"`    // LIC
	MaxDevices              *int   `json:"max_devices,omitempty"`   // 3; 0 is unlimited
	Validity                string `json:"validity,omitempty"`      // forever; else an ISO 8601 duration
	ValidityFrom            string `json:"validity_from,omitempty"` // issue, or activation
	Grace                   string `json:"grace,omitempty"`         // none
	SelfServiceDeactivation bool   `json:"self_service_deactivation,omitempty"`
	RemovalsPerMonth        int    `json:"removals_per_month,omitempty"` // any number
	DeviceMode              string `json:"device_mode,omitempty"`        // bound; or leased, for floating licenses
	LeaseSeconds            int    `json:"lease_seconds,omitempty"`      // needed along with leased
	MaxLeaseSeconds         int    `json:"max_lease_seconds,omitempty"`  // LeaseSeconds

	InactiveAfter string       `json:"inactive_after,omitempty"` // never; else an ISO 8601 duration of at least P1D
	DeviceMatch   *DeviceMatch `json:"device_match,omitempty"`   // none

	Receipt         bool   `json:"receipt,omitempty"`          // only requests that ask for a receipt get one
	ReceiptValidity string `json:"receipt_validity,omitempty"` // P7D; else PT1M to P90D
	// RevocationMaxAge is how long a receipt counts without a newer list: until its end; else PT1M to P90D.
	RevocationMaxAge string `json:"revocation_max_age,omitempty"`
	Entitlements     any    `json:"entitlements,omitempty"` // a JSON object, see the reference
	Metadata         any    `json:"metadata,omitempty"`

	Trial   *TrialTerms `json:"trial,omitempty"`   // none
	Billing *Billing    `json:"billing,omitempty"` // none: orders are paid once
}

// Billing says how orders of a product are paid again and again.
type Billing struct {
	Interval string `json:"interval"` // an ISO 8601 duration, such as P1M or P1Y
	// Grace is between the end of the paid period and the end of the license; empty in ProductTerms: P3D.
	Grace string `json:"grace,omitempty"`
}

// Put creates or replaces the product with an id.
func (s *ProductService) Put(
	ctx context.Context, productID string, terms ProductTerms, options ...CallOption,
) (*Product, error) {
	return s.product(ctx, "PUT /v1/products/{product_id}", productID, terms, options)
}

// Get returns a product by its id.
func (s *ProductService) Get(ctx context.Context, productID string, options ...CallOption) (*Product, error) {
	return s.product(ctx, "GET /v1/products/{product_id}", productID, nil, options)
}

func (s *ProductService) product(
	ctx context.Context, route, productID string, in any, options []CallOption,
) (*Product, error) {
	p := new(Product)
	if err := s.client.do(ctx, route, []string{productID}, nil, in, p, options); err != nil {
		return nil, err
	}
	return p, nil
}

// Delete deletes a product. If the first response is lost, a retry may fail with ReasonProductNotFound
// although the product was deleted.
func (s *ProductService) Delete(ctx context.Context, productID string, options ...CallOption) error {
	var gone struct{}
	return s.client.do(ctx, "DELETE /v1/products/{product_id}", []string{productID}, nil, nil, &gone, options)
}

// List reads a page of products, the newest first.
func (s *ProductService) List(ctx context.Context, page Page, options ...CallOption) (*List[Product], error) {
	var listed struct {
		Products []Product `json:"products"`
		Next     string    `json:"next_cursor"`
	}
	if err := s.client.do(ctx, "GET /v1/products", nil, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Product]{listed.Products, listed.Next}, nil
}

// All yields all products, the newest first.
func (s *ProductService) All(ctx context.Context) iter.Seq2[Product, error] {
	return allPages(listPage, func(page Page) (*List[Product], error) { return s.List(ctx, page) })
}
