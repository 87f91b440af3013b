package service

import (
	"context"
	"slices"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Products offers the use cases of products.
type Products struct{ *core }

// PutProduct creates or replaces a product, and reports whether it created the product.
func (p *Products) PutProduct(
	ctx context.Context, cmd licensing.PutProduct,
) (product licensing.Product, created bool, err error) {
	if err := p.budgets.learn(ctx, cmd.Owner); err != nil {
		return licensing.Product{}, false, err
	}
	result, err := p.engine.Do(ctx, licensing.ProductRef(cmd.Owner, cmd.ID), cmd)
	if err != nil {
		return licensing.Product{}, false, err
	}
	return *result.Product, result.Created, nil
}

// DeleteProduct deletes a product; see licensing.DeleteProduct.
func (p *Products) DeleteProduct(ctx context.Context, owner licensing.Owner, id string) error {
	_, err := p.engine.Do(ctx, licensing.ProductRef(owner, id), licensing.DeleteProduct{})
	return err
}

// Product returns a product of an owner. The read is linearizable.
func (p *Products) Product(
	ctx context.Context, owner licensing.Owner, id string,
) (product licensing.Product, err error) {
	return admitted(ctx, p.core, owner, func(node.Place) (licensing.Product, error) {
		return p.readProduct(ctx, owner, id)
	})
}

func (c *core) readProduct(ctx context.Context, owner licensing.Owner, id string) (licensing.Product, error) {
	loaded, err := c.cfg.Records.Load(ctx, store.Want{Ref: licensing.ProductRef(owner, id)})
	if err != nil {
		return licensing.Product{}, err
	}
	if loaded[0].Record.Product == nil {
		return licensing.Product{}, licensing.ErrProductNotFound
	}
	return *loaded[0].Record.Product, nil
}

// loadProduct loads the product of a new order or of new licenses, along with the claim of the
// request. In test mode, loadProduct returns a new product in place of a missing one, and the write
// that creates it, for commitWithProduct. In live mode, the product is nil if it is missing.
func (c *core) loadProduct(
	ctx context.Context, owner licensing.Owner, id string, claim *node.Claim,
) (product *licensing.Product, newProduct []store.Write, err error) {
	ref := licensing.ProductRef(owner, id)
	loaded, err := c.engine.LoadWithClaim(ctx, claim, store.Want{Ref: ref})
	if err != nil {
		return nil, nil, err
	}
	product = loaded[0].Record.Product
	if product == nil && owner.Mode == licensing.Test {
		product = &licensing.Product{ID: id, Owner: owner, Terms: licensing.DefaultTerms(), CreatedAt: c.engine.Now()}
		newProduct = []store.Write{{Ref: ref, Record: licensing.Record{Product: product}}}
	}
	return product, newProduct, nil
}

// commitWithProduct commits the writes of a request along with newProduct, see loadProduct. If another
// request has created the product first, commitWithProduct returns ErrClaimTaken.
func (c *core) commitWithProduct(
	ctx context.Context, claim *node.Claim, newProduct []store.Write, writes ...store.Write,
) error {
	if len(newProduct) == 0 {
		return c.engine.CommitClaim(ctx, claim, nil, writes...)
	}
	return c.engine.CommitInTurn(ctx, newProduct[0].Ref, claim, slices.Concat(writes, newProduct)...)
}
