package node

import (
	"context"
	"slices"

	"licet/licensing"
	"licet/node/store"
)

// PutProduct describes a product, and tells whether there was none before.
func (n *Node) PutProduct(ctx context.Context, cmd licensing.PutProduct) (product licensing.Product, created bool, err error) {
	result, err := n.Do(ctx, licensing.ProductRef(cmd.Owner, cmd.ID), cmd)
	if err != nil {
		return licensing.Product{}, false, err
	}
	return *result.Product, result.Created, nil
}

// DeleteProduct removes a product; see licensing.DeleteProduct.
func (n *Node) DeleteProduct(ctx context.Context, owner licensing.Owner, id string) error {
	_, err := n.Do(ctx, licensing.ProductRef(owner, id), licensing.DeleteProduct{})
	return err
}

// Product looks a product of an owner up, linearizably.
func (n *Node) Product(ctx context.Context, owner licensing.Owner, id string) (product licensing.Product, err error) {
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return licensing.Product{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	loaded, err := n.cfg.Store.Load(ctx, store.Want{Ref: licensing.ProductRef(owner, id)})
	if err != nil {
		return licensing.Product{}, err
	}
	if loaded[0].Record.Product == nil {
		return licensing.Product{}, licensing.ErrProductNotFound
	}
	return *loaded[0].Record.Product, nil
}

// productToSell reads a product that an order or licenses are to be made of, along
// with the claim of the request, and judges that. In test mode a product that does
// not exist is made, by the writes along, see commitWithProduct; else it is nil.
func (n *Node) productToSell(ctx context.Context, owner licensing.Owner, id string, c *claim) (product *licensing.Product, along []store.Write, err error) {
	ref := licensing.ProductRef(owner, id)
	loaded, err := n.loadWithClaim(ctx, c, store.Want{Ref: ref})
	if err != nil {
		return nil, nil, err
	}
	product = loaded[0].Record.Product
	if product == nil && owner.Mode == licensing.Test {
		product = &licensing.Product{ID: id, Owner: owner, Terms: licensing.DefaultTerms(), CreatedAt: n.Now()}
		along = []store.Write{{Ref: ref, Record: licensing.Record{Product: product}}}
	}
	return product, along, nil
}

// commitWithProduct stores what a request comes to, as commitClaim does, along with the
// product that the request makes. A record must not be in two Commits of one store at a
// time, and so the product is written in a turn of its mailbox. A request that had to wait
// for its turn fails with ErrClaimTaken: the product was most likely made meanwhile, and
// then the request needs no turn.
func (n *Node) commitWithProduct(ctx context.Context, c *claim, along []store.Write, writes ...store.Write) error {
	if len(along) == 0 {
		return n.commitClaim(ctx, c, nil, writes...)
	}
	turn := &call{}
	turn.work = func(ctx context.Context) (licensing.Result, error) {
		if turn.done != nil { // it has waited
			return licensing.Result{}, store.ErrClaimTaken
		}
		return licensing.Result{}, n.commitClaim(ctx, c, nil, slices.Concat(writes, along)...)
	}
	_, err := n.doCall(ctx, along[0].Ref, turn)
	return err
}
