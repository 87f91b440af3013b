package service

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// An order may be for many licenses. Its payment issues the first of them in its own transaction, and stores the seed
// of all keys. Each further transaction issues as many again, and stores in the order how many there are: so an order
// has exactly as many licenses as it says, and any node can continue the issue. The node that records the payment
// continues at once, as far as the time of its caller allows. A repeated payment and a sweep of any node do the rest.

// answerTime is the part of a caller's time that the issue of an order's other licenses leaves for the answer.
const answerTime = time.Second

// RefuseLicenses returns an error if there is no room for the licenses of an order that is about to be paid, and that
// is for many. Callers ask before the buyer is charged: once an order is paid, nothing refuses its licenses.
func (o *Orders) RefuseLicenses(ctx context.Context, order *licensing.Order) error {
	if order.Quantity <= 1 || !order.PaidAt.IsZero() || !order.CanceledAt.IsZero() {
		return nil
	}
	if err := o.engine.RefuseGrowth(); err != nil {
		return err
	}
	return o.budgets.admitLicenses(ctx, order.Owner, order.Quantity)
}

// newKeys sets the keys of the first licenses of an order in its payment.
func (c *core) newKeys(pay *licensing.PayOrder, order *licensing.Order) (err error) {
	if order.Quantity <= 1 {
		pay.Key, err = c.mint(order.Owner, pay.Terms)
		return err
	}
	if _, err := io.ReadFull(c.cfg.Entropy, pay.Seed[:]); err != nil {
		return fmt.Errorf("make a seed for license keys: %w", err)
	}
	first := make([]licensing.LicenseKey, min(order.Quantity, store.MaxNewLicenses))
	for i := range first {
		first[i] = c.cfg.LicenseKeys.SeededKey(pay.Seed, pay.Terms.KeyPrefix, order.Owner, i)
	}
	pay.Key, pay.More = first[0], first[1:]
	return nil
}

// firstKeys returns the first keys of the licenses of an order from index from up to index to.
func (c *core) firstKeys(order *licensing.Order, from, to int) []licensing.LicenseKey {
	keys := make([]licensing.LicenseKey, 0, max(to-from, 0))
	for i := from; i < to; i++ {
		keys = append(keys, c.cfg.LicenseKeys.OrderKey(order, i))
	}
	return keys
}

// issueRest issues the licenses that a paid order still lacks, with commands that do runs. With disputed, no refund
// stops the issue: see licensing.IssueLicenses. It also returns the order along with an error, as of its latest
// license.
func (c *core) issueRest(
	ctx context.Context, order licensing.Order, disputed bool,
	do func(context.Context, licensing.Ref, licensing.Command) (licensing.Result, error),
) (licensing.Order, error) {
	for order.Issuing() || disputed && order.LacksLicenses() {
		from := order.LicensesIssued
		result, err := do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.IssueLicenses{
			From: from, Keys: c.firstKeys(&order, from, min(from+store.MaxNewLicenses, order.Quantity)),
			Disputed: disputed,
		})
		if err != nil {
			return order, err
		}
		order = result.Order()
	}
	return order, nil
}

// issueNow issues the licenses that a paid order still lacks, in the time that ctx has left. It does not fail, since
// the payment is stored: a sweep issues the rest.
func (c *core) issueNow(ctx context.Context, order licensing.Order) licensing.Order {
	if !order.Issuing() {
		return order
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
		defer cancel()
	}
	order, err := c.issueRest(ctx, order, false, c.engine.Do)
	if err != nil {
		c.cfg.Log.Debug().Err(err).Str("order_no", order.OrderNo).Int("licenses_issued", order.LicensesIssued).
			Msg("can't issue all licenses of an order now; a sweep continues")
	}
	return order
}

// IssueLicensesDue issues the licenses that paid orders still lack.
func (s *Sweeps) IssueLicensesDue(ctx context.Context) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	return s.eachDue(ctx, licensing.DueIssue, store.DueSpan{Until: now},
		func(ctx context.Context, ref licensing.Ref) error {
			order, err := s.readOrder(ctx, ref.Owner, ref.ID)
			if err == nil {
				_, err = s.issueRest(ctx, order, false, s.engine.DoInBackground)
			}
			return err
		})
}

// revokeOthers revokes the licenses of an order, whose refund is being recorded, from index from on, except the first
// one. Some licenses are revoked at the same time. A reason that is too large to be stored a thousand times, whatever
// the owner's budget, stays with the order and its first license.
func (o *Orders) revokeOthers(ctx context.Context, order *licensing.Order, from int) error {
	reason := order.StateReason
	if len(reason) > licensing.MaxSmallReason {
		reason = ""
	}
	commands := make(map[licensing.Ref]licensing.Command)
	var refs []licensing.Ref
	for _, key := range o.firstKeys(order, max(from, 1), order.Issued()) {
		ref := licensing.LicenseRef(key)
		refs, commands[ref] = append(refs, ref), licensing.RevokeLicense{
			Target: licensing.Target{Key: key, By: order.RefundBy}, Reason: reason,
		}
	}
	return o.doAll(ctx, refs, commands)
}

// doAll runs a command on each of some licenses, some at the same time.
func (o *Orders) doAll(ctx context.Context, refs []licensing.Ref, commands map[licensing.Ref]licensing.Command) error {
	all, err := o.doEach(ctx, refs, func(ctx context.Context, ref licensing.Ref) error {
		_, err := o.engine.Do(ctx, ref, commands[ref])
		return err
	})
	if err == nil && !all {
		err = licensing.ErrUnavailable // ctx has ended
	}
	return err
}

// OrderKeys returns the keys that the licenses of an order have now. Along with an error it returns their first keys.
func (o *Orders) OrderKeys(ctx context.Context, order *licensing.Order) ([]licensing.LicenseKey, error) {
	keys := o.firstKeys(order, 0, order.Issued())
	if len(keys) <= 1 { // the order has the key that the license has now
		return keys, nil
	}
	_, err := admittedToList(ctx, o.core, order.Owner, func() (none struct{}, err error) {
		current := slices.Clone(keys)
		err = o.readCurrentKeys(ctx, order.Owner, current)
		if err == nil {
			keys = current
		}
		return none, err
	})
	return keys, err
}
