package node

import (
	"context"
	"errors"
	"time"

	"licet"
)

// Once makes something happen once, however often it is asked for: it carries
// what an Idempotency-Key and its request boil down to.
type Once struct {
	Hash        string   // of the Idempotency-Key, 16 bytes
	Fingerprint [32]byte // SHA-256 of the request: another one under the same key is refused
}

// creation is what is known before something is made or changed for an owner.
type creation struct {
	once  *Once // nil: the request came without an Idempotency-Key
	ref   licet.Ref
	token Token        // of an earlier claim of the key
	claim *licet.Claim // the earlier claim, if it is live

	product *licet.Product
	make    []Write // the product, where it is to be made along
}

// begin marks a request with an Idempotency-Key as being worked on here. Two
// nodes may still meet: then the store tells who was first.
func (n *Node) begin(owner licet.Owner, once *Once) (end func(), err error) {
	if once == nil {
		return func() {}, nil
	}
	ref := licet.ClaimRef(owner, once.Hash)
	n.onceLock.Lock()
	defer n.onceLock.Unlock()
	if _, busy := n.atOnce[ref]; busy {
		return nil, licet.ErrRequestInProgress
	}
	n.atOnce[ref] = struct{}{}
	return func() {
		n.onceLock.Lock()
		defer n.onceLock.Unlock()
		delete(n.atOnce, ref)
	}, nil
}

// prepare reads, in one round trip, what a creation needs to know: the product
// and the claim of the Idempotency-Key. A live claim of another request is
// ErrIdempotencyKeyReused; one of the same request is left to the caller, and
// so is a product that is nil because there is none.
func (n *Node) prepare(ctx context.Context, owner licet.Owner, productID string, once *Once) (*creation, error) {
	c := &creation{once: once}
	wants := []Want{{Ref: licet.ProductRef(owner, productID)}}
	if once != nil {
		c.ref = licet.ClaimRef(owner, once.Hash)
		wants = append(wants, Want{Ref: c.ref})
	}
	loaded, err := n.cfg.Store.Load(ctx, wants...)
	if err != nil {
		return nil, err
	}
	if once != nil {
		if err := c.heed(loaded[1], n.Now()); err != nil {
			return nil, err
		}
	}
	c.product = loaded[0].Record.Product
	if c.product == nil && owner.Mode == licet.Test {
		c.product = &licet.Product{ID: productID, Owner: owner, Terms: licet.DefaultTerms(), CreatedAt: n.Now()}
		c.make = []Write{{Ref: wants[0].Ref, Record: licet.Record{Product: c.product}}}
	}
	return c, nil
}

// recallClaim reads the claim of an Idempotency-Key. One of another request is
// ErrIdempotencyKeyReused.
func (n *Node) recallClaim(ctx context.Context, owner licet.Owner, once *Once) (*creation, error) {
	c := &creation{once: once}
	if once == nil {
		return c, nil
	}
	c.ref = licet.ClaimRef(owner, once.Hash)
	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: c.ref})
	if err != nil {
		return nil, err
	}
	return c, c.heed(loaded[0], n.Now())
}

// heed takes in what is stored of the Idempotency-Key.
func (c *creation) heed(stored Snapshot, now time.Time) (err error) {
	c.token = stored.Token
	c.claim, err = c.once.earlier(stored.Record.Claim, now)
	return err
}

// earlier gives what is remembered of the same request; nil where nothing is.
func (o *Once) earlier(claim *licet.Claim, now time.Time) (*licet.Claim, error) {
	switch {
	case claim == nil || !claim.Live(now):
		return nil, nil
	case claim.Fingerprint != o.Fingerprint:
		return nil, licet.ErrIdempotencyKeyReused
	default:
		return claim, nil
	}
}

// claimed adds to the writes of a creation the claim that remembers it.
func (n *Node) claimed(c *creation, claim licet.Claim, writes ...Write) Change {
	writes = append(writes, c.make...)
	if c.once != nil {
		claim.Fingerprint = c.once.Fingerprint
		if claim.CreatedAt.IsZero() {
			claim.CreatedAt = n.Now()
		}
		writes = append(writes, Write{Ref: c.ref, Token: c.token, Record: licet.Record{Claim: &claim}})
	}
	return Change{Writes: writes}
}

var errClaimLost = errors.New("another request with the same Idempotency-Key was first")

// refuse answers a refusal that the same request is to get again, whatever has
// changed by then: it is remembered before it is told.
func (n *Node) refuse(ctx context.Context, c *creation, refusal *licet.Error) error {
	if c.once == nil {
		return refusal
	}
	c.make = nil
	outcome, err := n.cfg.Store.Commit(ctx, n.claimed(c, licet.Claim{Refusal: refusal}))
	switch {
	case err != nil:
		return err
	case !outcome.Landed:
		return errClaimLost
	default:
		return refusal
	}
}
