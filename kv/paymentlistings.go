package kv

import (
	"context"
	"fmt"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// ListPayments reads a page of the records of an order's payments.
func (s *views) ListPayments(
	ctx context.Context, owner licensing.Owner, orderNo string, page store.Page,
) (store.List[licensing.Payment], error) {
	read := func(ctx context.Context, positions []string) ([]*licensing.Payment, error) {
		keys := make([]string, len(positions))
		for i, position := range positions {
			if len(position) <= keyspace.TimeSize {
				return nil, layout.Internal(fmt.Errorf("the listing of payments: %w", layout.ErrMalformed))
			}
			keys[i] = keyspace.PaymentKey(licensing.Ref{Owner: owner, ID: position[keyspace.TimeSize:]})
		}
		found, err := s.etcd.GetAll(ctx, "list_payments", keys)
		if err != nil {
			return nil, err
		}
		payments := make([]*licensing.Payment, len(positions))
		for i, kv := range found {
			if kv == nil {
				continue
			}
			stored, err := layout.DecodePayment(kv.Value)
			if s.etcd.Unreadable(keys[i], "a payment", err) {
				continue
			}
			payments[i] = &stored.Payment
		}
		return payments, nil
	}
	return collect(ctx, s.walkFrom(owner, keyspace.PaymentsOf(owner, orderNo), page.Before), page, read, nil)
}
