package licensing

import "time"

// PutProduct creates or replaces a product. It replaces everything but CreatedAt.
type PutProduct struct {
	ID       string
	Owner    Owner
	Name     string
	Terms    Terms
	Metadata string
}

// DeviceID is empty: no device is touched.
func (PutProduct) DeviceID() string { return "" }

func (c PutProduct) growth(r *Record, _ time.Time) Growth {
	if r.Product == nil {
		return OrdinaryGrowth
	}
	// The terms of all products have about the same size.
	return growthFrom(len(r.Product.Name)+len(r.Product.Metadata), len(c.Name)+len(c.Metadata))
}

func (c PutProduct) apply(r *Record, now time.Time) (Result, error) {
	before := r.Product
	next := &Product{ID: c.ID, Owner: c.Owner, Name: c.Name, Terms: c.Terms, Metadata: c.Metadata, CreatedAt: now}
	if before != nil {
		next.CreatedAt = before.CreatedAt
	}
	if before == nil || *before != *next {
		r.Product, r.Changed = next, true
	}
	return Result{Product: r.Product, Created: before == nil}, nil
}

// DeleteProduct deletes a product. Licenses that were issued for the product, and its unpaid orders,
// keep their terms.
type DeleteProduct struct{}

// DeviceID is empty: no device is touched.
func (DeleteProduct) DeviceID() string { return "" }

func (DeleteProduct) growth(*Record, time.Time) Growth { return NoGrowth }

func (DeleteProduct) apply(r *Record, _ time.Time) (Result, error) {
	if r.Product == nil {
		return Result{}, ErrProductNotFound
	}
	gone := r.Product
	r.Product, r.Changed = nil, true
	return Result{Product: gone}, nil
}
