package deliveries

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// sweptEndpoints is how many deleted endpoints one sweep looks at.
	sweptEndpoints = 16
	// sweptPage is how many keys one request removes.
	sweptPage = 500
	// sweptDeliveries bounds about how many keys it removes.
	sweptDeliveries = 1000
)

// SweepWebhooks removes the keys of deliveries to deleted endpoints. As long as the x/w/ key of an endpoint exists, no
// other transaction writes keys of the endpoint: checkpoints compare the absence of the key, and claims and replays
// compare the owner's record, which lacks the endpoint. SweepWebhooks removes the x/w/ key and the claim last.
func (s *Store) SweepWebhooks(ctx context.Context) (removed int, err error) {
	deleted, err := s.etcd.List(ctx, "list_deleted_webhooks", layout.DeletedWebhooksPrefix, clientv3.WithPrefix(),
		clientv3.WithLimit(sweptEndpoints), clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	for _, kv := range deleted.Kvs {
		if removed >= sweptDeliveries {
			break
		}
		n, err := s.sweepEndpoint(ctx, string(kv.Key[len(layout.DeletedWebhooksPrefix):]))
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// sweepEndpoint removes some of what is left of an endpoint, or all.
func (s *Store) sweepEndpoint(ctx context.Context, endpoint string) (removed int, err error) {
	prefix, mark := layout.EndpointPrefix(endpoint), layout.DeletedWebhookKey(endpoint)
	end := clientv3.GetPrefixRangeEnd(prefix)
	marked := clientv3.Compare(clientv3.CreateRevision(mark), ">", 0)
	for removed < sweptDeliveries {
		page, err := s.etcd.Page(ctx, "sweep_webhooks", prefix, end, sweptPage, 0, clientv3.WithKeysOnly())
		if err != nil {
			return removed, err
		}
		compares, then := []clientv3.Cmp{marked}, []clientv3.Op(nil)
		if len(page.Kvs) > 0 {
			last := etcd.After(page.Kvs[len(page.Kvs)-1].Key)
			then = []clientv3.Op{clientv3.OpDelete(prefix, clientv3.WithRange(last))}
		} else {
			compares = append(compares, clientv3.Compare(clientv3.CreateRevision(prefix).WithRange(end), "=", 0))
			then = []clientv3.Op{clientv3.OpDelete(mark), clientv3.OpDelete(layout.DeliveryClaimKey(endpoint))}
		}
		response, err := s.etcd.Txn(ctx, "sweep_webhooks", compares, then, nil)
		if err != nil {
			// Whatever happened, the next sweep goes on from there.
			return removed, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		if !response.Succeeded {
			return removed, nil // another node is at it
		}
		for _, r := range response.Responses {
			removed += int(r.GetResponseDeleteRange().Deleted)
		}
		if len(page.Kvs) == 0 {
			return removed, nil
		}
	}
	return removed, nil
}
