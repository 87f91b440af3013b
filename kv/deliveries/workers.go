package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// workerTTL is the TTL of a worker's etcd lease, in seconds: how long the leases of a worker that is dead, paused
	// or cut off still exist.
	workerTTL = 10
	// leasesPage is how many leases are read at a time.
	leasesPage = 1000
	// maxWorkers bounds how many workers one read finds.
	maxWorkers = 1000
	// acquireTries bounds how often a worker tries to lease an endpoint whose keys change meanwhile.
	acquireTries = 4
)

// Work registers the store as a worker, under an etcd lease, and runs do. A store is one worker: Work must not be
// called again before it has returned.
func (s *Store) Work(ctx context.Context, do func(ctx context.Context, w store.DeliveryWorker) error) error {
	// The worker's key comes first, so that there is no lease without its worker.
	_, err := s.etcd.UnderLease(ctx, "lease on deliveries", workerTTL, keyspace.WorkerKey(s.incarnation), "",
		func(ctx context.Context, id clientv3.LeaseID) error {
			return do(ctx, &worker{store: s, etcdLease: id, leases: make(map[string]struct{})})
		})
	return err
}

// worker is this store while it is registered as a worker.
type worker struct {
	store     *Store
	etcdLease clientv3.LeaseID // the worker's key and its leases on endpoints are attached to it

	mu     sync.Mutex
	leases map[string]struct{} // endpoints that the worker has leased, or is about to lease
}

// Self is the store's incarnation.
func (w *worker) Self() store.Incarnation { return w.store.incarnation }

// Workers lists all workers that are up. A dead worker stays in the list for some seconds.
func (w *worker) Workers(ctx context.Context) ([]store.Incarnation, error) {
	response, err := w.store.etcd.List(ctx, "list_workers", keyspace.WorkersPrefix, clientv3.WithPrefix(),
		clientv3.WithLimit(maxWorkers), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var workers []store.Incarnation
	for _, kv := range response.Kvs {
		if by, ok := readIncarnation(kv.Key[len(keyspace.WorkersPrefix):]); ok {
			workers = append(workers, by)
		}
	}
	return workers, nil
}

func readIncarnation(b []byte) (by store.Incarnation, ok bool) {
	if len(b) != len(by) {
		return by, false
	}
	return store.Incarnation(b), true
}

// Leases returns the worker of each leased endpoint. Leases removes a lease of this worker that no holder in this
// process has: a request whose caller had given up put the lease, and the lease would keep other workers off.
func (w *worker) Leases(ctx context.Context) (map[string]store.Incarnation, error) {
	before := w.leased()
	leases := make(map[string]store.Incarnation)
	var ghosts []*mvccpb.KeyValue
	from, end := clientv3.GetPrefixRangeEnd(keyspace.WorkersPrefix),
		clientv3.GetPrefixRangeEnd(keyspace.DeliveryLeasesPrefix)
	for {
		response, err := w.store.etcd.Page(ctx, "list_delivery_leases", from, end, leasesPage, 0)
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			endpoint := string(kv.Key[len(keyspace.DeliveryLeasesPrefix):])
			by, ok := readIncarnation(kv.Value)
			switch {
			case !ok:
				w.store.etcd.Unreadable(string(kv.Key), "cell/g/"+endpoint, layout.ErrMalformed)
			case by == w.Self() && !before[endpoint]:
				ghosts = append(ghosts, kv)
			default:
				leases[endpoint] = by
			}
		}
		if !response.More {
			break
		}
		from = etcd.After(response.Kvs[len(response.Kvs)-1].Key)
	}
	now := w.leased()
	for _, kv := range ghosts {
		if endpoint := string(kv.Key[len(keyspace.DeliveryLeasesPrefix):]); now[endpoint] {
			leases[endpoint] = w.Self()
		} else if err := w.store.removeLease(ctx, kv); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// leased returns the endpoints that the worker has leased, or is about to lease.
func (w *worker) leased() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	leased := make(map[string]bool, len(w.leases))
	for endpoint := range w.leases {
		leased[endpoint] = true
	}
	return leased
}

func (w *worker) drop(endpoint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.leases, endpoint)
}

// removeLease removes a lease that is as it was read, if the compares in also hold.
func (s *Store) removeLease(ctx context.Context, lease *mvccpb.KeyValue, also ...clientv3.Cmp) error {
	unchanged := clientv3.Compare(clientv3.ModRevision(string(lease.Key)), "=", lease.ModRevision)
	_, err := s.etcd.Txn(ctx, "release_delivery_lease", append(also, unchanged),
		[]clientv3.Op{clientv3.OpDelete(string(lease.Key))}, nil)
	if err != nil {
		return fmt.Errorf("%w: remove a lease: %w", licensing.ErrUnavailable, err)
	}
	return nil
}

// Acquire leases an endpoint that is free and still in its owner's record. Only the compare of that record prevents a
// lease on an endpoint that was deleted meanwhile, and whose keys a sweep has removed.
func (w *worker) Acquire(
	ctx context.Context, owner licensing.Owner, endpoint string,
) (store.DeliveryLease, bool, error) {
	w.mu.Lock()
	_, leased := w.leases[endpoint]
	w.leases[endpoint] = struct{}{}
	w.mu.Unlock()
	if leased {
		return nil, false, nil
	}
	fence, err := w.acquire(ctx, owner, endpoint)
	if err != nil || fence == 0 {
		w.drop(endpoint)
		return nil, false, err
	}
	return &holder{worker: w, owner: owner, endpoint: endpoint, fence: fence}, true, nil
}

// acquire returns the CreateRevision of the new lease; 0 if the endpoint is not free, or does not exist.
func (w *worker) acquire(ctx context.Context, owner licensing.Owner, endpoint string) (fence int64, err error) {
	s, lease, record := w.store, keyspace.DeliveryLeaseKey(endpoint), keyspace.WebhooksKey(owner)
	for range acquireTries {
		found, err := s.etcd.GetAll(ctx, "read_delivery_lease", []string{record, lease})
		if err != nil {
			return 0, err
		}
		if at, err := layout.EndpointAt(owner, found[0].GetValue(), endpoint, 0); err != nil || !at.Found {
			return 0, err
		}
		if found[1] != nil {
			if free, err := w.dislodge(ctx, found[1]); err != nil || !free {
				return 0, err
			}
		}
		var inDoubt bool
		response, err := s.etcd.Resolve(ctx, "acquire_delivery_lease", &inDoubt,
			[]clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(lease), "=", 0),
				clientv3.Compare(clientv3.ModRevision(record), "=", found[0].ModRevision),
			},
			[]clientv3.Op{clientv3.OpPut(lease, string(s.incarnation[:]), clientv3.WithLease(w.etcdLease))},
			[]clientv3.Op{clientv3.OpGet(lease)})
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return 0, etcd.ErrLeaseLost
		case err != nil:
			return 0, err
		case response.Succeeded:
			return response.Header.Revision, nil
		}
		// The endpoint was free when it was read. So a lease under this etcd lease comes from an earlier copy of
		// this request, or from a request whose caller has given up.
		if have := etcd.First(response.Responses, 0); have != nil {
			if slices.Equal(have.Value, s.incarnation[:]) && have.Lease == int64(w.etcdLease) {
				return have.CreateRevision, nil
			}
			return 0, nil
		}
	}
	return 0, nil
}

// dislodge removes a lease without a holder: its worker no longer exists, although the lease should have ended with
// the worker's etcd lease, or the lease is of this worker, from before Work was called again. Late transactions of such
// a holder fail, since they compare the old lease.
func (w *worker) dislodge(ctx context.Context, lease *mvccpb.KeyValue) (free bool, err error) {
	by, ok := readIncarnation(lease.Value)
	if ok && by == w.Self() {
		return true, w.store.removeLease(ctx, lease)
	}
	worker := keyspace.WorkerKey(by)
	found, err := w.store.etcd.GetAll(ctx, "read_worker", []string{worker})
	if err != nil || found[0] != nil {
		return false, err
	}
	return true, w.store.removeLease(ctx, lease, clientv3.Compare(clientv3.CreateRevision(worker), "=", 0))
}
