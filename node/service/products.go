package service

import (
	"context"
	"slices"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Products are what a shop says of what it sells.
type Products struct{ *core }

// PutProduct describes a product, and tells whether there was none before.
func (p *Products) PutProduct(ctx context.Context, cmd licensing.PutProduct) (product licensing.Product, created bool, err error) {
	result, err := p.engine.Do(ctx, licensing.ProductRef(cmd.Owner, cmd.ID), cmd)
	if err != nil {
		return licensing.Product{}, false, err
	}
	return *result.Product, result.Created, nil
}

// DeleteProduct removes a product; see licensing.DeleteProduct.
func (p *Products) DeleteProduct(ctx context.Context, owner licensing.Owner, id string) error {
	_, err := p.engine.Do(ctx, licensing.ProductRef(owner, id), licensing.DeleteProduct{})
	return err
}

// Product looks a product of an owner up, linearizably.
func (p *Products) Product(ctx context.Context, owner licensing.Owner, id string) (product licensing.Product, err error) {
	return admitted(ctx, p.core, owner, func(node.Place) (product licensing.Product, err error) {
		loaded, err := p.cfg.Records.Load(ctx, store.Want{Ref: licensing.ProductRef(owner, id)})
		if err != nil {
			return licensing.Product{}, err
		}
		if loaded[0].Record.Product == nil {
			return licensing.Product{}, licensing.ErrProductNotFound
		}
		return *loaded[0].Record.Product, nil
	})
}

// productToSell reads a product that an order or licenses are to be made of, along
// with the claim of the request, and judges that. In test mode a product that does
// not exist is made, by the writes along, see commitWithProduct; else it is nil.
func (c *core) productToSell(ctx context.Context, owner licensing.Owner, id string, claim *node.Claim) (product *licensing.Product, along []store.Write, err error) {
	ref := licensing.ProductRef(owner, id)
	loaded, err := c.engine.LoadWithClaim(ctx, claim, store.Want{Ref: ref})
	if err != nil {
		return nil, nil, err
	}
	product = loaded[0].Record.Product
	if product == nil && owner.Mode == licensing.Test {
		product = &licensing.Product{ID: id, Owner: owner, Terms: licensing.DefaultTerms(), CreatedAt: c.engine.Now()}
		along = []store.Write{{Ref: ref, Record: licensing.Record{Product: product}}}
	}
	return product, along, nil
}

// commitWithProduct stores what a request comes to along with the product that the request
// makes, see productToSell. Where another request has made the product meanwhile, it fails
// with ErrClaimTaken.
func (c *core) commitWithProduct(ctx context.Context, claim *node.Claim, along []store.Write, writes ...store.Write) error {
	if len(along) == 0 {
		return c.engine.CommitClaim(ctx, claim, nil, writes...)
	}
	return c.engine.CommitInTurn(ctx, along[0].Ref, claim, slices.Concat(writes, along)...)
}
