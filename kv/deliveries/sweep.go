package deliveries

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

const (
	// sweepEndpoints is how many deleted endpoints one sweep looks at.
	sweepEndpoints = 16
	// sweepPage is how many keys one request removes.
	sweepPage = 500
	// sweepDeliveries bounds about how many keys one sweep removes.
	sweepDeliveries = 1000
)

// SweepWebhooks removes the keys of deliveries to deleted endpoints. As long as the x/w/ key of an endpoint exists, no
// other transaction writes keys of the endpoint: checkpoints compare the absence of the key, and leases and replays
// compare the owner's record, which lacks the endpoint. SweepWebhooks removes the x/w/ key and the lease last.
func (s *Store) SweepWebhooks(ctx context.Context) (removed int, err error) {
	deleted, err := s.etcd.PageInSlots(ctx, "list_deleted_webhooks", etcd.Family(keyspace.DeletedWebhooksFamily), "",
		sweepEndpoints, 0, clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	for _, kv := range deleted.Kvs {
		if removed >= sweepDeliveries {
			break
		}
		endpoint, _ := keyspace.CutFamily(string(kv.Key), keyspace.DeletedWebhooksFamily)
		n, err := s.sweepEndpoint(ctx, endpoint)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// sweepEndpoint removes some or all of the remaining keys of an endpoint. The pending messages go first, and the
// progress, which names the owner of the endpoint, goes last.
func (s *Store) sweepEndpoint(ctx context.Context, endpoint string) (removed int, err error) {
	owner, err := s.ownerOf(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	prefix, mark := keyspace.EndpointPrefix(endpoint), keyspace.DeletedWebhookKey(endpoint)
	end := clientv3.GetPrefixRangeEnd(prefix)
	marked := clientv3.Compare(clientv3.CreateRevision(mark), ">", 0)
	from := keyspace.DeliveriesPrefix(endpoint, keyspace.KeyOfPending)
	for removed < sweepDeliveries {
		page, err := s.etcd.Page(ctx, "sweep_webhooks", from, end, sweepPage, 0, clientv3.WithKeysOnly())
		if err != nil {
			return removed, err
		}
		if len(page.Kvs) == 0 && from != prefix {
			from = prefix
			continue
		}
		compares, then := []clientv3.Cmp{marked}, []clientv3.Op(nil)
		if len(page.Kvs) > 0 {
			last := etcd.After(page.Kvs[len(page.Kvs)-1].Key)
			then = []clientv3.Op{clientv3.OpDelete(from, clientv3.WithRange(last), clientv3.WithPrevKV())}
		} else {
			compares = append(compares, clientv3.Compare(clientv3.CreateRevision(prefix).WithRange(end), "=", 0))
			then = []clientv3.Op{clientv3.OpDelete(mark), clientv3.OpDelete(keyspace.DeliveryLeaseKey(endpoint))}
		}
		response, err := s.etcd.Txn(ctx, "sweep_webhooks", compares, then, nil)
		if err != nil {
			// Whatever happened, the next sweep continues from there.
			return removed, fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
		}
		if !response.Succeeded {
			return removed, nil // another node sweeps this endpoint
		}
		for _, r := range response.Responses {
			removed += int(r.GetResponseDeleteRange().Deleted)
		}
		if len(page.Kvs) == 0 {
			return removed, nil
		}
		s.noteGrowth(owner, response.Header.Revision, grown(then, response.Responses))
	}
	return removed, nil
}

// ownerOf returns the owner of an endpoint, whom the progress of the endpoint names, or else a replay. The owner is
// zero if there is neither.
func (s *Store) ownerOf(ctx context.Context, endpoint string) (owner licensing.Owner, err error) {
	found, err := s.etcd.Txn(ctx, "read_endpoint_owner", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.ProgressKey(endpoint)),
		clientv3.OpGet(keyspace.DeliveriesPrefix(endpoint, keyspace.KeyOfReplay), clientv3.WithPrefix(),
			clientv3.WithLimit(1)),
	}, nil)
	if err != nil {
		return owner, etcd.Unavailable(err)
	}
	// A value that can't be read must not stop the sweep: then the next recount counts what the sweep has removed.
	if kv := etcd.First(found.Responses, 0); kv != nil {
		if progress, err := layout.DecodeProgress(kv.Value); err == nil {
			return progress.Owner, nil
		}
	}
	if kv := etcd.First(found.Responses, 1); kv != nil {
		if named, _, err := layout.DecodeReplay("", kv.Value); err == nil {
			return named, nil
		}
	}
	return owner, nil
}
