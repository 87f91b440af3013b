package kv

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// orderPage is how many orders one request reads: etcd allows 128 operations.
const orderPage = 100

// readUnpaidOrders counts the orders whose end is not recorded, which the index of due work has.
func (s *apiKeys) readUnpaidOrders(ctx context.Context, revision int64, found *masterUsage) error {
	prefix := layout.DuePrefix(licensing.DueOrderEnd)
	var unpaid []licensing.Ref
	count := func() error {
		reads := make([]clientv3.Op, len(unpaid))
		for i, ref := range unpaid {
			reads[i] = clientv3.OpGet(layout.RecordKey(ref), clientv3.WithRev(revision))
		}
		response, err := s.etcd.Txn(ctx, "scan_masters", nil, reads, nil)
		if err != nil {
			return etcd.Unavailable(err)
		}
		for i, ref := range unpaid {
			if err := found.countOrder(ref, etcd.First(response.Responses, i)); err != nil {
				return err
			}
		}
		unpaid = unpaid[:0]
		return nil
	}
	err := s.readFamily(ctx, prefix, revision, func(kv *mvccpb.KeyValue) error {
		// A key that is not in the form of an entry is left to verify.
		_, ref, ok := layout.DueRecord(licensing.DueOrderEnd, string(kv.Key[len(prefix):]), kv.Value)
		if !ok {
			return nil
		}
		if unpaid = append(unpaid, ref); len(unpaid) < orderPage {
			return nil
		}
		return count()
	})
	if err != nil || len(unpaid) == 0 {
		return err
	}
	return count()
}

// countOrder counts the master key from which an unpaid order's pay token is derived.
func (m *masterUsage) countOrder(ref licensing.Ref, kv *mvccpb.KeyValue) error {
	if kv == nil {
		return nil // reported by verify
	}
	stored, err := layout.DecodeOrder(ref, kv.Value)
	if err != nil {
		return layout.Internal(err)
	}
	if use := m.of(stored.Order.PayMaster); use != nil {
		use.Orders++
		use.Users = appendUser(use.Users, MasterUser{ID: ref.ID, Owner: ref.Owner})
	}
	return nil
}
