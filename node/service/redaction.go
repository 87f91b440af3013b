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

// MaxRedact bounds the orders of one redaction, and the granted licenses. A buyer may have any number of both:
// repeating the request continues with the rest.
const MaxRedact = 100

// redactionBytes is how many bytes of reads a redacted order or granted license counts as, against the limit of its
// account: its transaction shares no request to etcd with other changes.
const redactionBytes = 64 << 10

// Redactions offers the use case that removes a buyer's personal data.
type Redactions struct{ *core }

// Redact removes a customer's personal data; see licensing.RedactOrder and licensing.RedactLicense. By an address: from
// up to MaxRedact of the buyer's orders and from their licenses, and from up to MaxRedact licenses that name the buyer
// themselves. By a reference: from up to MaxRedact licenses. Redact returns how many it has redacted, and whether these
// were all that existed when it began. What is redacted is no longer listed under the buyer, so repeating the request
// continues after an earlier one, even if the earlier redaction was interrupted. Redact refuses the zero Customer, as
// all licenses match it.
//
// With once, Redact returns the sum of all requests with the same key, and continues until nothing is left. From then
// on the answer stays the same, and replayed is true.
func (r *Redactions) Redact(
	ctx context.Context, owner licensing.Owner, customer licensing.Customer, once *node.Once,
) (done licensing.Redaction, replayed bool, err error) {
	if customer == (licensing.Customer{}) {
		return done, false, licensing.InvalidField("buyer_email", "is required unless customer_reference is set")
	}
	run := func(_ node.Place, claim *node.Claim) (done licensing.Redaction, replayed bool, err error) {
		if err := r.engine.TakeChange(owner); err != nil {
			return done, false, err
		}
		if done, err = r.beginRedaction(ctx, claim); err != nil || done.Complete {
			return done, err == nil, err
		}
		done, err = r.redactSome(ctx, owner, customer)
		if err == nil && once != nil {
			done, err = r.addRedaction(ctx, claim, done)
		}
		if done.Licenses+done.Orders > 0 && licensing.NotExecuted(err) {
			err = fmt.Errorf("%w: orders or licenses are redacted, but their count is not stored: %w",
				licensing.ErrOutcomeUnknown, err)
		}
		return done, false, err
	}
	return idempotent(ctx, r.core, owner, once, nil, run)
}

// beginRedaction stores the claim of the Idempotency-Key before any order is redacted, so that no
// other request can use the key. It returns the sum of earlier requests.
func (r *Redactions) beginRedaction(ctx context.Context, claim *node.Claim) (licensing.Redaction, error) {
	var before licensing.Redaction
	err := retryConflicts(maxClaimTries, func() error {
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

// redacted returns the sum of earlier requests that the claim contains.
func redacted(claim *node.Claim) (before licensing.Redaction) {
	if claim.Replayed() && claim.Earlier.Redaction != nil {
		before = *claim.Earlier.Redaction
	}
	return before
}

// redactSome redacts the newest of a customer's orders and licenses, some at the same time. It also returns along
// with an error how many it has redacted. Only some redactions are under way at the same time.
func (r *Redactions) redactSome(
	ctx context.Context, owner licensing.Owner, customer licensing.Customer,
) (licensing.Redaction, error) {
	if err := r.redactions.enter(ctx, owner); err != nil {
		return licensing.Redaction{}, err
	}
	defer r.redactions.leave(owner)
	refs, keys, more, err := r.toRedact(ctx, owner, customer)
	if err != nil {
		return licensing.Redaction{}, err
	}
	var orders, licenses atomic.Int64
	all, err := r.doEach(ctx, refs, func(ctx context.Context, ref licensing.Ref) error {
		if r.engine.TakeChange(owner) != nil {
			return store.ErrReserve // another request can redact the record
		}
		store.ReadsOf(ctx).Note(redactionBytes)
		result, err := r.redactRecord(ctx, ref, customer, keys[ref])
		switch {
		case errors.Is(err, licensing.ErrOrderNotFound), errors.Is(err, licensing.ErrLicenseNotFound):
			return nil // another request has redacted the record
		case err != nil:
			return err
		}
		if ref.Kind == licensing.KindOrder {
			orders.Add(1)
		}
		if ref.Kind == licensing.KindLicense {
			licenses.Add(1)
		}
		order := result.Order()
		licenses.Add(int64(order.Issued()))
		return nil
	})
	if err == nil && !all {
		err = licensing.ErrUnavailable // ctx has ended
	}
	done := licensing.Redaction{
		Orders: int(orders.Load()), Licenses: int(licenses.Load()), Complete: err == nil && !more,
	}
	if done.Orders+done.Licenses > 0 && licensing.NotExecuted(err) {
		return done, nil // the rest is unchanged, and another request can redact it
	}
	return done, err
}

// toRedact returns the newest orders and licenses of a customer, the keys of these licenses, and whether the customer
// has more of either. By an address, only granted licenses are among the licenses. The pages are large, so they count
// as a page of a list.
func (r *Redactions) toRedact(
	ctx context.Context, owner licensing.Owner, customer licensing.Customer,
) (refs []licensing.Ref, keys map[licensing.Ref]licensing.LicenseKey, more bool, err error) {
	if err := r.lists.enter(ctx, owner); err != nil {
		return nil, nil, false, err
	}
	defer r.lists.leave(owner)
	page := store.Page{Limit: MaxRedact, Scan: store.MaxListScan}
	var list store.List[licensing.Order]
	if customer.BuyerEmail != "" {
		if list, err = r.cfg.Queries.ListOrders(ctx, owner, customer.BuyerEmail, page, nil); err != nil {
			return nil, nil, false, err
		}
	}
	page.Scan = 2 * MaxRedact // the licenses of the orders come first
	licenses, err := r.cfg.Queries.ListLicenses(ctx, owner, customer, page,
		func(v *store.LicenseView) bool { return v.License.OrderNo == "" || customer.BuyerEmail == "" })
	if err != nil {
		return nil, nil, false, err
	}
	keys = make(map[licensing.Ref]licensing.LicenseKey, len(licenses.Items))
	for i := range list.Items {
		refs = append(refs, licensing.OrderRef(owner, list.Items[i].OrderNo))
	}
	for i := range licenses.Items {
		key := licenses.Items[i].License.Key
		ref := licensing.LicenseRef(key)
		refs, keys[ref] = append(refs, ref), key
	}
	return refs, keys, list.Next != "" || licenses.Next != "", nil
}

// redactRecord redacts an order, or a license that names the customer itself.
func (r *Redactions) redactRecord(
	ctx context.Context, ref licensing.Ref, customer licensing.Customer, key licensing.LicenseKey,
) (licensing.Result, error) {
	if ref.Kind == licensing.KindOrder {
		return r.redactOrder(ctx, ref, customer.BuyerEmail)
	}
	redact := licensing.RedactLicense{Target: licensing.Target{Key: key}, Of: customer}
	return r.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		return r.engine.SwapTogether(ctx, node.Step{Ref: ref, Cmd: redact})
	})
}

// redactOrder redacts an order along with its first license, in one transaction: once the order no longer names the
// buyer, no search finds its licenses. The other licenses are redacted before, once they have got what they must still
// get: a refund gives them its reason. If the order changes meanwhile, redactOrder starts again.
func (r *Redactions) redactOrder(
	ctx context.Context, ref licensing.Ref, buyerEmail string,
) (result licensing.Result, err error) {
	for {
		order, err := r.readOrder(ctx, ref.Owner, ref.ID)
		if err == nil {
			order, err = r.changeOthers(ctx, order, r.engine.LockAndSwap)
		}
		if err == nil {
			err = r.redactOthers(ctx, &order)
		}
		if err == nil {
			result, err = r.redactFirst(ctx, &order, buyerEmail)
		}
		if now := result.Order(); err != nil || now.BuyerEmail == "" {
			return result, err
		}
	}
}

// redactOthers redacts the licenses of an order besides the first. It skips licenses that the store lacks. Most orders
// have no other licenses.
func (r *Redactions) redactOthers(ctx context.Context, order *licensing.Order) error {
	for _, key := range r.firstKeys(order, 1, order.Issued()) {
		redact := licensing.RedactLicense{Target: licensing.Target{Key: key}}
		_, err := r.engine.Do(ctx, licensing.LicenseRef(key), redact)
		if err != nil && !errors.Is(err, licensing.ErrLicenseNotFound) {
			return err
		}
	}
	return nil
}

// redactFirst redacts an order and its first license, if the order has not changed since it was read. If the store
// lacks the license, it redacts the order alone.
func (r *Redactions) redactFirst(
	ctx context.Context, order *licensing.Order, buyerEmail string,
) (licensing.Result, error) {
	key := order.LicenseKey
	steps := []node.Step{{
		Ref: licensing.OrderRef(order.Owner, order.OrderNo),
		Cmd: licensing.RedactOrder{BuyerEmail: buyerEmail, LicenseKey: key, Sequence: order.Sequence,
			LicensesIssued: order.LicensesIssued},
	}}
	if !key.IsZero() {
		target := licensing.Target{Key: key}
		steps = append(steps, node.Step{
			Ref: licensing.LicenseRef(key), Guarded: true, Then: func(first licensing.Result) licensing.Command {
				if order := first.Order(); order.BuyerEmail != "" { // it has changed: neither is redacted
					return licensing.SuspendForDispute{Target: target}
				}
				return licensing.RedactLicense{Target: target}
			},
		})
	}
	result, err := r.engine.LockAndSwap(ctx, steps...)
	if errors.Is(err, licensing.ErrLicenseNotFound) {
		return r.engine.LockAndSwap(ctx, steps[0])
	}
	return result, err
}

// addRedaction adds the result of this request to the stored sum of an Idempotency-Key, and returns
// the sum. The sum is stored after the orders, since redacting them takes more than one transaction.
// If that fails, a repeated request counts only the orders that it still finds.
func (r *Redactions) addRedaction(
	ctx context.Context, claim *node.Claim, done licensing.Redaction,
) (licensing.Redaction, error) {
	var sum licensing.Redaction
	err := retryConflicts(maxClaimTries, func() error {
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
