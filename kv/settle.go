package kv

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// settle makes a transaction, and makes it again as it is for as long as its
// outcome is in doubt. The compares must see to it that it lands only once. It
// notes in doubted whether any attempt was in doubt: if so, a transaction that
// was lost may have been lost to an earlier copy of itself.
func (s *Store) settle(ctx context.Context, operation string, doubted *bool, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return nil, gaveUp(*doubted, ctx.Err())
		}
		response, err := s.txn(ctx, operation, compares, then, otherwise)
		switch classify(err) {
		case succeeded:
			return response, nil
		case refused:
			return nil, gaveUp(*doubted, err)
		case rejected:
			if !errors.Is(err, rpctypes.ErrLeaseNotFound) { // a lease may end at any time
				s.log.Error().Err(err).Str("operation", operation).Msg("etcd rejects a transaction's form")
			}
			if *doubted {
				return nil, gaveUp(*doubted, err)
			}
			return nil, broken(err)
		case unknown:
			*doubted = true
			s.metrics.SwapsReissued.Inc()
			pauseBeforeReissue(ctx, attempt)
		}
	}
}
