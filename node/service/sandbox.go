package service

import (
	"context"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Sandboxes keeps what the sandbox knows about orders.
type Sandboxes struct {
	*core
	orders *Orders
}

// Sandbox returns an order and what the sandbox knows about it. It returns ErrOrderNotFound if no order has the number.
func (s *Sandboxes) Sandbox(
	ctx context.Context, orderNo string,
) (order licensing.Order, played licensing.SandboxOrder, err error) {
	owner, found, err := s.orders.OwnerOfOrder(ctx, orderNo)
	switch {
	case err != nil:
		return order, played, err
	case !found:
		return order, played, licensing.ErrOrderNotFound
	}
	_, err = admitted(ctx, s.core, owner, func(node.Place) (none struct{}, err error) {
		loaded, err := s.cfg.Records.Load(ctx, store.Want{Ref: licensing.OrderRef(owner, orderNo)},
			store.Want{Ref: licensing.SandboxRef(owner, orderNo)})
		switch {
		case err != nil:
			return none, err
		case loaded[0].Record.Order == nil:
			return none, licensing.ErrOrderNotFound
		}
		if order = *loaded[0].Record.Order; loaded[1].Record.Sandbox != nil {
			played = *loaded[1].Record.Sandbox
		}
		return none, nil
	})
	return order, played, err
}

// PlayInSandbox runs a command on what the sandbox knows about an order of test mode. The order must exist.
func (s *Sandboxes) PlayInSandbox(
	ctx context.Context, order licensing.Order, cmd licensing.Command,
) (licensing.SandboxOrder, error) {
	if order.Owner.Mode != licensing.Test {
		return licensing.SandboxOrder{}, licensing.ErrNotInSandbox
	}
	result, err := s.engine.Do(ctx, licensing.SandboxRef(order.Owner, order.OrderNo), cmd)
	return result.Sandbox(), err
}

// sandboxAhead is how far EachSandboxDue looks ahead while nothing is due. It is less than the shortest interval of
// billing, so each subscription is found before its first invoice is due.
const sandboxAhead = 5 * time.Second

// EachSandboxDue calls ask for each order whose subscription in the sandbox renews or ends by now. The order has only
// its number and owner. Calls may run at the same time.
//
// EachSandboxDue is meant to be called each second. While nothing is due soon, only the calls after sandboxAhead read
// the store.
func (s *Sweeps) EachSandboxDue(ctx context.Context, ask func(context.Context, licensing.Order) error) error {
	now, err := s.timeToActBy()
	if err != nil || now.UnixNano() < s.sandboxFrom.Load() {
		return err
	}
	later := now.Add(sandboxAhead)
	slots, err := s.cfg.Queries.DueSlots(ctx, licensing.DueSandbox, store.DueSpan{Until: later})
	if err == nil && len(slots) > 0 {
		err = s.eachDue(ctx, licensing.DueSandbox, store.DueSpan{Until: now},
			func(ctx context.Context, ref licensing.Ref) error {
				return ask(ctx, licensing.Order{OrderNo: ref.ID, Owner: ref.Owner})
			})
	}
	if err == nil && len(slots) == 0 {
		s.sandboxFrom.Store(later.UnixNano())
	}
	return err
}
