package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// MaxRedact bounds the orders that one redaction works on. A buyer may have any
// number: whoever asks again goes on with the rest.
const MaxRedact = 100

// Redactions remove what is noted of a buyer.
type Redactions struct{ *core }

// Redact removes what a shop has noted of a buyer from the buyer's orders, up to
// MaxRedact of them, and from their licenses; see licensing.RedactOrder. It tells how
// many it has redacted, and whether that were all that there were when it began. An
// order that is redacted is no longer listed as the buyer's, so that asking again
// goes on where an earlier one has ended, or broke off.
//
// With once it tells what all requests with it have redacted, and goes on until
// there is nothing left; from then on the answer is the same, and replayed is true.
func (r *Redactions) Redact(ctx context.Context, owner licensing.Owner, buyerEmail string, once *node.Once) (done licensing.Redaction, replayed bool, err error) {
	return idempotent(ctx, r.core, owner, once, nil, func(_ node.Place, claim *node.Claim) (done licensing.Redaction, replayed bool, err error) {
		if done, err = r.beginRedaction(ctx, claim); err != nil || done.Complete {
			return done, err == nil, err
		}
		done, err = r.redactSome(ctx, owner, buyerEmail)
		if err == nil && once != nil {
			done, err = r.addRedaction(ctx, claim, done)
		}
		if done.Orders > 0 && licensing.NotExecuted(err) {
			err = fmt.Errorf("%w: orders are redacted, and that is not remembered: %w", licensing.ErrOutcomeUnknown, err)
		}
		return done, false, err
	})
}

// beginRedaction claims the Idempotency-Key before any order is redacted, so that no
// other request can have it. It answers what is remembered of earlier requests.
func (r *Redactions) beginRedaction(ctx context.Context, claim *node.Claim) (licensing.Redaction, error) {
	var before licensing.Redaction
	err := untilClaimed(func() error {
		if _, err := r.engine.LoadWithClaim(ctx, claim); err != nil {
			return err
		}
		if !claim.Once() || claim.Replayed() {
			before = redacted(claim)
			return nil
		}
		claim.Effect = licensing.Claim{Redaction: new(licensing.Redaction)}
		return r.engine.CommitClaim(ctx, claim, nil)
	})
	return before, err
}

// redacted is what is remembered of earlier requests.
func redacted(claim *node.Claim) (before licensing.Redaction) {
	if claim.Replayed() && claim.Earlier.Redaction != nil {
		before = *claim.Earlier.Redaction
	}
	return before
}

// redactSome redacts the newest of a buyer's orders, some at a time. With an error
// it still tells how many it has redacted.
func (r *Redactions) redactSome(ctx context.Context, owner licensing.Owner, buyerEmail string) (licensing.Redaction, error) {
	refs, keys, more, err := r.ordersToRedact(ctx, owner, buyerEmail)
	if err != nil {
		return licensing.Redaction{}, err
	}
	var orders, licenses atomic.Int64
	all, err := r.doEach(ctx, refs, func(ctx context.Context, ref licensing.Ref) error {
		result, err := r.redactOrder(ctx, ref, buyerEmail, keys[ref])
		switch {
		case errors.Is(err, licensing.ErrOrderNotFound):
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
func (r *Redactions) ordersToRedact(ctx context.Context, owner licensing.Owner, buyerEmail string) (refs []licensing.Ref, keys map[licensing.Ref]licensing.LicenseKey, more bool, err error) {
	if err := r.lists.enter(ctx); err != nil {
		return nil, nil, false, err
	}
	defer r.lists.leave()
	list, err := r.cfg.Queries.ListOrders(ctx, owner, buyerEmail, store.Page{Limit: MaxRedact, Scan: store.MaxListScan}, nil)
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
func (r *Redactions) redactOrder(ctx context.Context, ref licensing.Ref, buyerEmail string, key licensing.LicenseKey) (licensing.Result, error) {
	return r.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		for {
			result, err := r.redactWith(ctx, ref, buyerEmail, key)
			if err != nil || result.Order.LicenseKey == key {
				return result, err
			}
			key = result.Order.LicenseKey
		}
	})
}

// redactWith redacts an order that is held, if it has this license.
func (r *Redactions) redactWith(ctx context.Context, ref licensing.Ref, buyerEmail string, key licensing.LicenseKey) (licensing.Result, error) {
	order := node.Step{Ref: ref, Cmd: licensing.RedactOrder{BuyerEmail: buyerEmail, LicenseKey: key}}
	if key == "" {
		return r.engine.SwapTogether(ctx, order)
	}
	license := node.Step{Ref: licensing.LicenseRef(key), Cmd: licensing.RedactLicense{Target: licensing.Target{Key: key}}, Guarded: true}
	return r.engine.WithRecordLock(ctx, license.Ref, func(ctx context.Context) (licensing.Result, error) {
		return r.engine.SwapTogether(ctx, order, license)
	})
}

// addRedaction adds what was redacted now to what is remembered of all requests with
// an Idempotency-Key, and answers that. It is stored after the orders, since so many
// are more than one transaction: where that fails, the same request again counts only
// what it still finds.
func (r *Redactions) addRedaction(ctx context.Context, claim *node.Claim, done licensing.Redaction) (licensing.Redaction, error) {
	var sum licensing.Redaction
	err := untilClaimed(func() error {
		if _, err := r.engine.LoadWithClaim(ctx, claim); err != nil {
			return err
		}
		sum = redacted(claim)
		sum.Orders += done.Orders
		sum.Licenses += done.Licenses
		sum.Complete = sum.Complete || done.Complete
		claim.Effect = licensing.Claim{Redaction: &sum}
		if claim.Replayed() {
			claim.Effect.CreatedAt = claim.Earlier.CreatedAt
		}
		return r.engine.CommitClaim(ctx, claim, nil)
	})
	if err != nil {
		return done, err
	}
	return sum, nil
}
