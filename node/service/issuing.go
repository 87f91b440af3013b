package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// An order may be for many licenses. Its payment issues the first of them in its own transaction, and stores the seed
// of all keys. Each further transaction issues as many again, and stores in the order how many there are: so an order
// has exactly as many licenses as it says, and any node can continue the issue. The node that records the payment
// continues at once, as far as the time of its caller allows. A repeated payment and a sweep of any node do the rest.

// answerTime is the part of a caller's time that the issue or the changes of an order's other licenses leave for the
// answer.
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
	ctx, cancel := beforeAnswer(ctx)
	defer cancel()
	order, err := c.issueRest(ctx, order, false, c.engine.Do)
	if err != nil {
		c.cfg.Log.Debug().Err(err).Str("order_no", order.OrderNo).Int("licenses_issued", order.LicensesIssued).
			Msg("can't issue all licenses of an order now; a sweep continues")
	}
	return order
}

// beforeAnswer ends a context answerTime before its deadline.
func beforeAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-answerTime))
}

// othersAtOnce is how many licenses of an order one transaction changes. If another node changes one of them all the
// time, the transaction is lost to that node often.
const othersAtOnce = 8

// swaps runs steps as one transaction: one of the engine's functions.
type swaps func(context.Context, ...node.Step) (licensing.Result, error)

// changeOthers gives the licenses of an order besides the first one what they must still get: each change only as long
// as the order says so, since it writes the order too. It passes a license as swapOrPass does, so that the license does
// not hold up the others. It returns the order as of the latest change.
func (c *core) changeOthers(ctx context.Context, order licensing.Order, swap swaps) (licensing.Order, error) {
	atOnce := othersAtOnce
	for order.Others != licensing.OthersDone {
		now, from := order, int(order.OthersFrom)
		to := min(from+atOnce, order.Issued())
		steps := []node.Step{{
			Ref: licensing.OrderRef(order.Owner, order.OrderNo),
			Cmd: licensing.ChangeOthers{Now: now.OrderOthers, To: to},
		}}
		for _, key := range c.firstKeys(&order, from, to) {
			steps = append(steps, node.Step{
				Ref: licensing.LicenseRef(key), Then: func(changed licensing.Result) licensing.Command {
					if !changed.Created {
						return licensing.SuspendForDispute{Target: licensing.Target{Key: key, By: licensing.Provider}}
					}
					decided := changed.Order() // its reason may be redacted by now
					decided.OrderOthers = now.OrderOthers
					return licensing.OthersCommand(&decided, key)
				},
			})
		}
		result, err := swap(ctx, steps...)
		if lacksLicense(err) {
			if atOnce > 1 {
				atOnce = 1
				continue
			}
			result, err = c.pass(ctx, err, swap, steps)
		}
		if err != nil {
			return order, err
		}
		order = result.Order()
	}
	return order, nil
}

// changeOthersNow is changeOthers in the time that ctx has left. It does not fail, since the refund or the answer about
// the dispute is stored: a sweep changes the rest.
func (c *core) changeOthersNow(ctx context.Context, order licensing.Order) {
	ctx, cancel := beforeAnswer(ctx)
	defer cancel()
	order, err := c.changeOthers(ctx, order, c.engine.LockAndSwap)
	if err != nil {
		c.cfg.Log.Debug().Err(err).Str("order_no", order.OrderNo).Uint16("from", order.OthersFrom).
			Msg("can't change all licenses of an order now; a sweep continues")
	}
}

// lacksLicense reports whether a transaction has failed because the store can't read a license, or lacks the license.
func lacksLicense(err error) bool {
	return errors.Is(err, licensing.ErrInternal) || errors.Is(err, licensing.ErrLicenseNotFound)
}

// swapOrPass runs the steps of a transaction on an order. The last step changes a license of the order. If the store
// can't read the license, or lacks it, swapOrPass runs the other steps alone, and logs which change the license lacks.
// licet store verify reports the license too, or, once the license is readable again, that a revocation is missing; a
// missing suspension or reinstatement is only in the log. A license in a newer format is not passed: a node that can
// read the license must change it.
func (c *core) swapOrPass(ctx context.Context, swap swaps, steps ...node.Step) (licensing.Result, error) {
	result, err := swap(ctx, steps...)
	if lacksLicense(err) {
		return c.pass(ctx, err, swap, steps)
	}
	return result, err
}

// pass is swapOrPass after the transaction of all steps has failed with cause.
func (c *core) pass(ctx context.Context, cause error, swap swaps, steps []node.Step) (licensing.Result, error) {
	if errors.Is(cause, store.ErrNewerFormat) {
		return licensing.Result{}, cause
	}
	license := steps[len(steps)-1]
	result, err := swap(ctx, steps[:len(steps)-1]...)
	if err != nil {
		return result, err
	}
	if change := changeOf(license.Then(result)); change != "" {
		c.cfg.Log.Error().Err(cause).Str("order_no", result.Order().OrderNo).
			Stringer("license_id", license.Ref.LicenseID()).Str("lacks", change).
			Msg("can't change a license of an order: run licet store verify")
	}
	return result, nil
}

// changeOf names what a command changes of a license; empty: nothing.
func changeOf(cmd licensing.Command) string {
	suspension, _ := cmd.(licensing.SuspendForDispute)
	switch _, revokes := cmd.(licensing.RevokeLicense); {
	case revokes:
		return "revoke"
	case suspension.Begin:
		return "suspend"
	case suspension.End:
		return "reinstate"
	case !suspension.Period.From.Equal(suspension.Period.To):
		return "shorten"
	}
	return ""
}

// IssueLicensesDue issues the licenses that paid orders still lack, and gives the licenses of orders what they must
// still get.
func (s *Sweeps) IssueLicensesDue(ctx context.Context) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	return s.eachDue(ctx, licensing.DueIssue, store.DueSpan{Until: now},
		func(ctx context.Context, ref licensing.Ref) error {
			order, err := s.readOrder(ctx, ref.Owner, ref.ID)
			if err == nil {
				order, err = s.issueRest(ctx, order, false, s.engine.DoInBackground)
			}
			if err == nil {
				_, err = s.changeOthers(ctx, order, s.engine.LockAndSwapInBackground)
			}
			return err
		})
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
