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
		return done, false, licensing.InvalidField("buyer_email", "is required, unless customer_reference is given")
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
	err := retryConflicts(func() error {
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

// redacted returns the sum of earlier requests that the claim holds.
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

// toRedact returns the newest orders and licenses of a customer, the keys of these licenses and of orders with a
// license, and whether the customer has more of either. By an address, only granted licenses are among the licenses.
// The pages are large, so they count as a page of a list.
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
	keys = make(map[licensing.Ref]licensing.LicenseKey, len(list.Items)+len(licenses.Items))
	for i := range list.Items {
		ref := licensing.OrderRef(owner, list.Items[i].OrderNo)
		refs, keys[ref] = append(refs, ref), list.Items[i].LicenseKey
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
		return r.redactOrder(ctx, ref, customer.BuyerEmail, key)
	}
	redact := licensing.RedactLicense{Target: licensing.Target{Key: key}, Of: customer}
	return r.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		return r.engine.SwapTogether(ctx, node.Step{Ref: ref, Cmd: redact})
	})
}

// redactOrder redacts an order along with its license, in one transaction: once the order no longer
// names the buyer, no search finds the license. key is the license key of the list; the order may have
// been paid since. The other licenses of the order are redacted before.
func (r *Redactions) redactOrder(
	ctx context.Context, ref licensing.Ref, buyerEmail string, key licensing.LicenseKey,
) (licensing.Result, error) {
	if err := r.redactOthers(ctx, ref); err != nil {
		return licensing.Result{}, err
	}
	return r.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		for {
			result, err := r.redactWith(ctx, ref, buyerEmail, key)
			if err != nil || result.Order().LicenseKey == key {
				return result, err
			}
			key = result.Order().LicenseKey
		}
	})
}

// redactOthers redacts the licenses of an order besides the first. Most orders have none.
func (r *Redactions) redactOthers(ctx context.Context, ref licensing.Ref) error {
	order, err := r.readOrder(ctx, ref.Owner, ref.ID)
	if err != nil {
		return err
	}
	for _, key := range r.firstKeys(&order, 1, order.Issued()) {
		redact := licensing.RedactLicense{Target: licensing.Target{Key: key}}
		if _, err := r.engine.Do(ctx, licensing.LicenseRef(key), redact); err != nil {
			return err
		}
	}
	return nil
}

// redactWith redacts an order, if it has this license. The caller holds the order's record lock.
func (r *Redactions) redactWith(
	ctx context.Context, ref licensing.Ref, buyerEmail string, key licensing.LicenseKey,
) (licensing.Result, error) {
	order := node.Step{Ref: ref, Cmd: licensing.RedactOrder{BuyerEmail: buyerEmail, LicenseKey: key}}
	if key.IsZero() {
		return r.engine.SwapTogether(ctx, order)
	}
	redact := licensing.RedactLicense{Target: licensing.Target{Key: key}}
	license := node.Step{Ref: licensing.LicenseRef(key), Cmd: redact, Guarded: true}
	return r.engine.WithRecordLock(ctx, license.Ref, func(ctx context.Context) (licensing.Result, error) {
		return r.engine.SwapTogether(ctx, order, license)
	})
}

// addRedaction adds the result of this request to the stored sum of an Idempotency-Key, and returns
// the sum. The sum is stored after the orders, since redacting them takes more than one transaction.
// If that fails, a repeated request counts only the orders that it still finds.
func (r *Redactions) addRedaction(
	ctx context.Context, claim *node.Claim, done licensing.Redaction,
) (licensing.Redaction, error) {
	var sum licensing.Redaction
	err := retryConflicts(func() error {
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
