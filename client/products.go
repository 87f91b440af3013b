package client

import (
	"context"
	"encoding/json"
	"time"
)

// Product is what is sold, and the terms of its licenses.
type Product struct {
	ProductID               string          `json:"product_id"`
	Name                    string          `json:"name"`
	KeyPrefix               string          `json:"key_prefix"`
	MaxDevices              int             `json:"max_devices"` // 0: unlimited
	Validity                string          `json:"validity"`    // an ISO 8601 duration; empty: for ever
	ValidityFrom            string          `json:"validity_from"`
	SelfServiceDeactivation bool            `json:"self_service_deactivation"`
	RemovalsPerMonth        int             `json:"removals_per_month"` // 0: any number
	Metadata                json.RawMessage `json:"metadata"`
	CreatedAt               time.Time       `json:"created_at"`
	AccountID               string          `json:"account_id"`
	Mode                    string          `json:"mode"`
}

// ProductTerms says all there is to say of a product. What is left out is as in
// a product that nobody has described.
type ProductTerms struct {
	Name                    string `json:"name,omitempty"`
	KeyPrefix               string `json:"key_prefix,omitempty"`    // LIC
	MaxDevices              *int   `json:"max_devices,omitempty"`   // 3; 0 is unlimited
	Validity                string `json:"validity,omitempty"`      // for ever; else an ISO 8601 duration
	ValidityFrom            string `json:"validity_from,omitempty"` // issue, or activation
	SelfServiceDeactivation bool   `json:"self_service_deactivation,omitempty"`
	RemovalsPerMonth        int    `json:"removals_per_month,omitempty"` // any number
	Metadata                any    `json:"metadata,omitempty"`
}

// PutProduct describes a product, whether there is one of that id or not.
func (c *Client) PutProduct(ctx context.Context, productID string, terms ProductTerms, options ...CallOption) (*Product, error) {
	return c.product(ctx, "PUT /v1/products/{product_id}", productID, terms, options)
}

// Product looks a product up.
func (c *Client) Product(ctx context.Context, productID string, options ...CallOption) (*Product, error) {
	return c.product(ctx, "GET /v1/products/{product_id}", productID, nil, options)
}

func (c *Client) product(ctx context.Context, route, productID string, in any, options []CallOption) (*Product, error) {
	p := new(Product)
	if err := c.do(ctx, route, []string{productID}, nil, in, p, options); err != nil {
		return nil, err
	}
	return p, nil
}

// DeleteProduct removes a product. Where a first answer was lost and it was sent
// again, it may fail with ReasonProductNotFound although it has worked.
func (c *Client) DeleteProduct(ctx context.Context, productID string, options ...CallOption) error {
	var gone struct{}
	return c.do(ctx, "DELETE /v1/products/{product_id}", []string{productID}, nil, nil, &gone, options)
}

// ListProducts reads one page of products, the newest first.
func (c *Client) ListProducts(ctx context.Context, page Page, options ...CallOption) (*List[Product], error) {
	var listed struct {
		Products []Product `json:"products"`
		Next     string    `json:"next_cursor"`
	}
	if err := c.do(ctx, "GET /v1/products", nil, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Product]{listed.Products, listed.Next}, nil
}
