package node

import (
	"context"

	"licet"
)

// PutProduct describes a product, and tells whether there was none before.
func (n *Node) PutProduct(ctx context.Context, cmd licet.PutProduct) (product licet.Product, created bool, err error) {
	result, err := n.Do(ctx, licet.ProductRef(cmd.Owner, cmd.ID), cmd)
	if err != nil {
		return licet.Product{}, false, err
	}
	return *result.Product, result.Created, nil
}

// DeleteProduct removes a product; see licet.DeleteProduct.
func (n *Node) DeleteProduct(ctx context.Context, owner licet.Owner, id string) error {
	_, err := n.Do(ctx, licet.ProductRef(owner, id), licet.DeleteProduct{})
	return err
}

// Product looks a product of an owner up, linearizably.
func (n *Node) Product(ctx context.Context, owner licet.Owner, id string) (product licet.Product, err error) {
	if err := n.admission.enter(ctx); err != nil {
		return licet.Product{}, err
	}
	defer func() { n.admission.leave(err) }()
	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: licet.ProductRef(owner, id)})
	if err != nil {
		return licet.Product{}, err
	}
	if loaded[0].Record.Product == nil {
		return licet.Product{}, licet.ErrProductNotFound
	}
	return *loaded[0].Record.Product, nil
}
