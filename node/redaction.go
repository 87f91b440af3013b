package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"licet/licensing"
	"licet/node/store"
)

// MaxRedact bounds the orders that one redaction works on. A buyer may have any
// number: whoever asks again goes on with the rest.
const MaxRedact = 100

// Redact removes what a shop has noted of a buyer from the buyer's orders, up to
// MaxRedact of them, and from their licenses; see licensing.RedactOrder. It tells how
// many it has redacted, and whether that were all that there were when it began. An
// order that is redacted is no longer listed as the buyer's, so that asking again
// goes on where an earlier one has ended, or broke off.
//
// With once it tells what all requests with it have redacted, and goes on until
// there is nothing left; from then on the answer is the same, and replayed is true.
func (n *Node) Redact(ctx context.Context, owner licensing.Owner, buyerEmail string, once *Once) (done licensing.Redaction, replayed bool, err error) {
	if err := n.enter(); err != nil {
		return done, false, err
	}
	defer n.work.Done()
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return done, false, err
	}
	defer func() { n.admission.leave(who, err) }()
	c, end, err := n.begin(owner, once, nil)
	if err != nil {
		return done, false, err
	}
	defer end()
	if done, err = n.beginRedaction(ctx, c); err != nil || done.Complete {
		return done, err == nil, err
	}
	done, err = n.redactSome(ctx, owner, buyerEmail)
	if err == nil && once != nil {
		done, err = n.addRedaction(ctx, c, done)
	}
	if done.Orders > 0 && licensing.NotExecuted(err) {
		err = fmt.Errorf("%w: orders are redacted, and that is not remembered: %w", licensing.ErrOutcomeUnknown, err)
	}
	return done, false, err
}

// beginRedaction claims the Idempotency-Key before any order is redacted, so that no
// other request can have it. It answers what is remembered of earlier requests.
func (n *Node) beginRedaction(ctx context.Context, c *claim) (licensing.Redaction, error) {
	for range createTries {
		_, err := n.loadWithClaim(ctx, c)
		switch {
		case err != nil:
			return licensing.Redaction{}, err
		case c.once == nil || c.replayed():
			return c.redacted(), nil
		}
		c.effect = licensing.Claim{Redaction: new(licensing.Redaction)}
		if err := n.commitClaim(ctx, c, nil); !errors.Is(err, store.ErrClaimTaken) {
			return licensing.Redaction{}, err
		}
	}
	return licensing.Redaction{}, licensing.ErrUnavailable
}

// redacted is what is remembered of earlier requests.
func (c *claim) redacted() (before licensing.Redaction) {
	if c.replayed() && c.earlier.Redaction != nil {
		before = *c.earlier.Redaction
	}
	return before
}

// redactSome redacts the newest of a buyer's orders, some at a time. With an error
// it still tells how many it has redacted.
func (n *Node) redactSome(ctx context.Context, owner licensing.Owner, buyerEmail string) (licensing.Redaction, error) {
	refs, keys, more, err := n.ordersToRedact(ctx, owner, buyerEmail)
	if err != nil {
		return licensing.Redaction{}, err
	}
	var orders, licenses atomic.Int64
	all, err := n.doEach(ctx, refs, func(ctx context.Context, ref licensing.Ref) error {
		result, err := n.redactOrder(ctx, ref, buyerEmail, keys[ref])
		switch {
		case isAny(err, licensing.ErrOrderNotFound):
			return nil // another one was first
		case err != nil:
			return err
		}
		orders.Add(1)
		if result.Order.LicenseKey != "" {
			licenses.Add(1)
		}
		return nil
	})
	if err == nil && !all {
		err = licensing.ErrUnavailable // the time was over
	}
	done := licensing.Redaction{Orders: int(orders.Load()), Licenses: int(licenses.Load()), Complete: err == nil && !more}
	if done.Orders > 0 && licensing.NotExecuted(err) {
		return done, nil // the rest is as it was for certain, and can be asked for
	}
	return done, err
}

// ordersToRedact reads which orders of a buyer are the newest, the licenses of those
// that have one, and whether there are more. The page itself is large, and counts as
// one of a list.
func (n *Node) ordersToRedact(ctx context.Context, owner licensing.Owner, buyerEmail string) (refs []licensing.Ref, keys map[licensing.Ref]licensing.LicenseKey, more bool, err error) {
	if err := n.enterPage(ctx); err != nil {
		return nil, nil, false, err
	}
	defer n.leavePage()
	list, err := n.cfg.Store.ListOrders(ctx, owner, buyerEmail, store.Page{Limit: MaxRedact, Scan: store.MaxListScan}, nil)
	if err != nil {
		return nil, nil, false, err
	}
	keys = make(map[licensing.Ref]licensing.LicenseKey, len(list.Items))
	for i := range list.Items {
		ref := licensing.OrderRef(owner, list.Items[i].OrderNo)
		refs, keys[ref] = append(refs, ref), list.Items[i].LicenseKey
	}
	return refs, keys, list.Next != "", nil
}

// redactOrder redacts an order along with its license, in one transaction: once the
// order does not name the buyer any more, nobody finds the license. The license's
// key is as it was listed; the order may have been paid since.
func (n *Node) redactOrder(ctx context.Context, ref licensing.Ref, buyerEmail string, key licensing.LicenseKey) (licensing.Result, error) {
	return n.hold(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		for {
			result, err := n.redactWith(ctx, ref, buyerEmail, key)
			if err != nil || result.Order.LicenseKey == key {
				return result, err
			}
			key = result.Order.LicenseKey
		}
	})
}

// redactWith redacts an order that is held, if it has this license.
func (n *Node) redactWith(ctx context.Context, ref licensing.Ref, buyerEmail string, key licensing.LicenseKey) (licensing.Result, error) {
	order := step{ref: ref, cmd: licensing.RedactOrder{BuyerEmail: buyerEmail, LicenseKey: key}}
	if key == "" {
		return n.swapTogether(ctx, order)
	}
	license := step{ref: licensing.LicenseRef(key), cmd: licensing.RedactLicense{Target: licensing.Target{Key: key}}, guarded: true}
	return n.hold(ctx, license.ref, func(ctx context.Context) (licensing.Result, error) {
		return n.swapTogether(ctx, order, license)
	})
}

// addRedaction adds what was redacted now to what is remembered of all requests with
// an Idempotency-Key, and answers that. It is stored after the orders, since so many
// are more than one transaction: where that fails, the same request again counts only
// what it still finds.
func (n *Node) addRedaction(ctx context.Context, c *claim, done licensing.Redaction) (licensing.Redaction, error) {
	for range createTries {
		if _, err := n.loadWithClaim(ctx, c); err != nil {
			return done, err
		}
		sum := c.redacted()
		sum.Orders += done.Orders
		sum.Licenses += done.Licenses
		sum.Complete = sum.Complete || done.Complete
		c.effect = licensing.Claim{Redaction: &sum}
		if c.replayed() {
			c.effect.CreatedAt = c.earlier.CreatedAt
		}
		switch err := n.commitClaim(ctx, c, nil); {
		case err == nil:
			return sum, nil
		case !errors.Is(err, store.ErrClaimTaken):
			return done, err
		}
	}
	return done, licensing.ErrUnavailable
}
