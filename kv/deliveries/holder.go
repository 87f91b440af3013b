package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// pageSize is how many messages are read at a time.
	pageSize = 200
	// resumeTries bounds how often a holder starts its reads over because the history was compacted meanwhile.
	resumeTries = 3
)

// holder holds the lease on an endpoint. Three things guard all that it writes:
//
//   - The lease's CreateRevision: a holder that has lost the lease changes nothing any more, even if the holder
//     believes that its etcd lease lives.
//   - The revision of the endpoint's progress, which each transaction of the holder writes: of two copies of a
//     transaction, however late, only one lands.
//   - The absence of x/w/<endpoint>: a holder changes nothing while a sweep removes the endpoint.
type holder struct {
	worker   *worker
	owner    licensing.Owner
	endpoint string
	fence    int64 // the lease's CreateRevision

	mu       sync.Mutex
	lost     bool
	resumed  bool
	stored   layout.Progress // as it is stored, or would be if it were
	revision int64           // of the progress; 0: there is none
	pending  map[string]struct{}

	todo  []store.Checkpoint // checkpoints that are not laid out yet
	steps []checkpointStep   // transactions that are laid out and not made yet
}

// Resume reads the state of the endpoint's deliveries.
func (h *holder) Resume(ctx context.Context) (store.DeliveryState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.finish(ctx); err != nil {
		return store.DeliveryState{}, err
	}
	for try := 1; ; try++ {
		state, err := h.resume(ctx)
		if !errors.Is(err, rpctypes.ErrCompacted) || try == resumeTries {
			return state, err
		}
	}
}

func (h *holder) resume(ctx context.Context) (state store.DeliveryState, err error) {
	s := h.worker.store
	reads := append(h.guardReads(), clientv3.OpGet(keyspace.WebhooksKey(h.owner)))
	response, err := s.etcd.Txn(ctx, "resume_deliveries", nil, reads, nil)
	if err != nil {
		return state, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	at, err := h.readGuards(response)
	if err != nil {
		return state, err
	}
	state.Endpoint, err = layout.EndpointAt(h.owner, etcd.First(response.Responses, len(reads)-1).GetValue(),
		h.endpoint, response.Header.Revision)
	if err != nil {
		return store.DeliveryState{}, err
	}
	h.stored, h.revision = layout.Progress{Owner: h.owner}, at.revision
	if at.progress != nil {
		h.stored = *at.progress
	} else if at.revision != 0 {
		if err := h.rebuild(ctx, response.Header.Revision); err != nil {
			return store.DeliveryState{}, err
		}
	}
	h.pending = make(map[string]struct{})
	prefix := keyspace.DeliveriesPrefix(h.endpoint, keyspace.KeyOfPending)
	err = s.eachKey(ctx, "list_pending", prefix, prefix, response.Header.Revision, func(id string, value []byte) error {
		d := s.readDelivery(h.endpoint, id, store.DeliveryPending, value)
		h.pending[id] = struct{}{}
		state.Pending = append(state.Pending,
			store.PendingDelivery{EventID: id, Attempts: len(d.Attempts), Next: d.Next})
		return nil
	})
	if err != nil {
		return store.DeliveryState{}, err
	}
	if at.progress == nil {
		h.stored.Progress.Pending = len(h.pending)
	}
	h.resumed = true
	state.Progress, state.Found = h.stored.Progress, h.stored.Begun
	return state, nil
}

// eachKey reads keys of a kind from one on, page by page, at a revision or at the latest one.
func (s *Store) eachKey(
	ctx context.Context, operation, prefix, from string, revision int64, each func(id string, value []byte) error,
) error {
	for {
		page, err := s.etcd.Page(ctx, operation, from, clientv3.GetPrefixRangeEnd(prefix), pageSize, revision)
		if err != nil {
			return err
		}
		for _, kv := range page.Kvs {
			if err := each(string(kv.Key[len(prefix):]), kv.Value); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		from = etcd.After(page.Kvs[len(page.Kvs)-1].Key)
	}
}

// Jobs reads the replays that were asked for and are not done, the oldest first, and the
// endpoint. There are at most [store.MaxReplays], so that one transaction reads all of them.
func (h *holder) Jobs(ctx context.Context) ([]store.Replay, store.EndpointAt, error) {
	prefix := keyspace.DeliveriesPrefix(h.endpoint, keyspace.KeyOfReplay)
	response, err := h.worker.store.etcd.Txn(ctx, "list_replays", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.WebhooksKey(h.owner)), clientv3.OpGet(prefix, clientv3.WithPrefix()),
	}, nil)
	if err != nil {
		return nil, store.EndpointAt{}, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	at, err := layout.EndpointAt(h.owner, etcd.First(response.Responses, 0).GetValue(), h.endpoint,
		response.Header.Revision)
	if err != nil {
		return nil, at, err
	}
	var jobs []store.Replay
	for _, kv := range response.Responses[1].GetResponseRange().Kvs {
		id := string(kv.Key[len(prefix):])
		_, job, err := layout.DecodeReplay(id, kv.Value)
		if !h.worker.store.etcd.Unreadable(string(kv.Key), "v/"+h.endpoint+"/j"+id, err) {
			jobs = append(jobs, job)
		}
	}
	return jobs, at, nil
}

// Pending reads messages that are to be tried again.
func (h *holder) Pending(ctx context.Context, events ...string) ([]store.Delivery, error) {
	var found []store.Delivery
	for some := range slices.Chunk(events, etcd.MaxOps) {
		keys := make([]string, len(some))
		for i, event := range some {
			keys[i] = keyspace.PendingKey(h.endpoint, event)
		}
		kvs, err := h.worker.store.etcd.GetAll(ctx, "read_pending", keys)
		if err != nil {
			return nil, err
		}
		for i, kv := range kvs {
			if kv == nil {
				continue
			}
			found = append(found, h.worker.store.readDelivery(h.endpoint, some[i], store.DeliveryPending, kv.Value))
		}
	}
	return found, nil
}

// Dead reads messages that were given up, in the order of their ids.
func (h *holder) Dead(ctx context.Context, after string, limit int) ([]store.Delivery, error) {
	dead, _, err := h.worker.store.readDeliveries(ctx, h.endpoint, store.DeliveryDead, after, limit)
	return dead, err
}

// Release deletes the lease. If Release can't reach etcd, the lease ends with the worker's etcd lease.
func (h *holder) Release(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose()
	lease := keyspace.DeliveryLeaseKey(h.endpoint)
	var inDoubt bool
	_, err := h.worker.store.etcd.Resolve(ctx, "release_delivery_lease", &inDoubt,
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(lease), "=", h.fence)},
		[]clientv3.Op{clientv3.OpDelete(lease)}, nil)
	return err
}

// lose marks the lease of the holder as lost.
func (h *holder) lose() {
	if !h.lost {
		h.lost = true
		h.worker.drop(h.endpoint)
	}
}

// guards is what guards a holder's writes, as it was read.
type guards struct {
	progress *layout.Progress // nil: there is none, or it can't be read
	revision int64            // of the progress; 0: there is none
}

func (h *holder) guardReads() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(keyspace.DeliveryLeaseKey(h.endpoint)), clientv3.OpGet(keyspace.DeletedWebhookKey(h.endpoint)),
		clientv3.OpGet(keyspace.ProgressKey(h.endpoint)),
	}
}

func (h *holder) compares() []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(keyspace.DeliveryLeaseKey(h.endpoint)), "=", h.fence),
		clientv3.Compare(clientv3.CreateRevision(keyspace.DeletedWebhookKey(h.endpoint)), "=", 0),
		clientv3.Compare(clientv3.ModRevision(keyspace.ProgressKey(h.endpoint)), "=", h.revision),
	}
}

// readGuards reads the answers to guardReads, and fails where the lease is lost.
func (h *holder) readGuards(response *clientv3.TxnResponse) (guards, error) {
	lease, deleted, kv := etcd.First(response.Responses, 0), etcd.First(response.Responses,
		1), etcd.First(response.Responses, 2)
	if h.lost || lease == nil || lease.CreateRevision != h.fence || deleted != nil {
		h.lose()
		return guards{}, store.ErrLeaseLost
	}
	if kv == nil {
		return guards{}, nil
	}
	return guards{h.worker.store.readProgress(h.endpoint, kv.Value), kv.ModRevision}, nil
}
