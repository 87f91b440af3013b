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
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// workerTTL is for how many seconds the claims of a worker that is dead, paused or
	// cut off are still there.
	workerTTL = 10
	// claimsPage is how many claims are read at a time.
	claimsPage = 1000
	// maxWorkers bounds the workers that one look at them finds.
	maxWorkers = 1000
	// claimTries bounds how often a claim is tried that something came in between of.
	claimTries = 4
)

// Work runs do as a worker, under a lease. A store is one worker: it must not be
// called again before it has ended.
func (s *Store) Work(ctx context.Context, do func(ctx context.Context, w store.DeliveryWorker) error) error {
	// The worker's key comes first, so that there is no claim without its worker.
	_, err := s.etcd.UnderLease(ctx, "lease on deliveries", workerTTL, layout.WorkerKey(s.incarnation), "",
		func(ctx context.Context, lease clientv3.LeaseID) error {
			return do(ctx, &worker{store: s, lease: lease, held: make(map[string]struct{})})
		})
	return err
}

// worker is this store while it works under a lease.
type worker struct {
	store *Store
	lease clientv3.LeaseID

	mu   sync.Mutex
	held map[string]struct{} // endpoints that it holds, or is about to claim
}

// Self is the store's incarnation.
func (w *worker) Self() store.Incarnation { return w.store.incarnation }

// Workers lists all that are up. One that is dead may be among them for some seconds.
func (w *worker) Workers(ctx context.Context) ([]store.Incarnation, error) {
	response, err := w.store.etcd.List(ctx, "list_workers", layout.WorkersPrefix, clientv3.WithPrefix(),
		clientv3.WithLimit(maxWorkers), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var workers []store.Incarnation
	for _, kv := range response.Kvs {
		if by, ok := readIncarnation(kv.Key[len(layout.WorkersPrefix):]); ok {
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

// Claims returns the worker of each claimed endpoint. Claims removes a claim of this worker that no holder in this
// process has: a request whose caller had given up put the claim, and the claim would keep other workers off.
func (w *worker) Claims(ctx context.Context) (map[string]store.Incarnation, error) {
	before := w.holds()
	claims := make(map[string]store.Incarnation)
	var ghosts []*mvccpb.KeyValue
	from, end := clientv3.GetPrefixRangeEnd(layout.WorkersPrefix),
		clientv3.GetPrefixRangeEnd(layout.DeliveryClaimsPrefix)
	for {
		response, err := w.store.etcd.Page(ctx, "list_delivery_claims", from, end, claimsPage, 0)
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			endpoint := string(kv.Key[len(layout.DeliveryClaimsPrefix):])
			by, ok := readIncarnation(kv.Value)
			switch {
			case !ok:
				w.store.etcd.Unreadable(string(kv.Key), "g/"+endpoint, layout.ErrMalformed)
			case by == w.Self() && !before[endpoint]:
				ghosts = append(ghosts, kv)
			default:
				claims[endpoint] = by
			}
		}
		if !response.More {
			break
		}
		from = etcd.After(response.Kvs[len(response.Kvs)-1].Key)
	}
	now := w.holds()
	for _, kv := range ghosts {
		if endpoint := string(kv.Key[len(layout.DeliveryClaimsPrefix):]); now[endpoint] {
			claims[endpoint] = w.Self()
		} else if err := w.store.unclaim(ctx, kv); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

func (w *worker) holds() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	holds := make(map[string]bool, len(w.held))
	for endpoint := range w.held {
		holds[endpoint] = true
	}
	return holds
}

func (w *worker) drop(endpoint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, endpoint)
}

// unclaim removes a claim as it was read, where also holds what else is demanded.
func (s *Store) unclaim(ctx context.Context, claim *mvccpb.KeyValue, also ...clientv3.Cmp) error {
	unchanged := clientv3.Compare(clientv3.ModRevision(string(claim.Key)), "=", claim.ModRevision)
	_, err := s.etcd.Txn(ctx, "unclaim", append(also, unchanged), []clientv3.Op{clientv3.OpDelete(string(claim.Key))},
		nil)
	if err != nil {
		return fmt.Errorf("%w: remove a claim: %w", licensing.ErrUnavailable, err)
	}
	return nil
}

// Claim takes an endpoint, if it is free and still in its owner's record. What is
// compared with that record is all that keeps deliveries from going on of an
// endpoint that was deleted, and its data swept, meanwhile.
func (w *worker) Claim(ctx context.Context, owner licensing.Owner, endpoint string) (store.DeliveryHold, bool, error) {
	w.mu.Lock()
	_, held := w.held[endpoint]
	w.held[endpoint] = struct{}{}
	w.mu.Unlock()
	if held {
		return nil, false, nil
	}
	fence, err := w.claim(ctx, owner, endpoint)
	if err != nil || fence == 0 {
		w.drop(endpoint)
		return nil, false, err
	}
	return &holder{worker: w, owner: owner, endpoint: endpoint, fence: fence}, true, nil
}

// claim returns the revision at which the claim was made; 0 where it was not.
func (w *worker) claim(ctx context.Context, owner licensing.Owner, endpoint string) (fence int64, err error) {
	s, claim, record := w.store, layout.DeliveryClaimKey(endpoint), layout.WebhooksKey(owner)
	for range claimTries {
		found, err := s.etcd.GetAll(ctx, "read_claim", []string{record, claim})
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
		response, err := s.etcd.Resolve(ctx, "claim", &inDoubt,
			[]clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(claim), "=", 0),
				clientv3.Compare(clientv3.ModRevision(record), "=", found[0].ModRevision),
			},
			[]clientv3.Op{clientv3.OpPut(claim, string(s.incarnation[:]), clientv3.WithLease(w.lease))},
			[]clientv3.Op{clientv3.OpGet(claim)})
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return 0, etcd.ErrLeaseLost
		case err != nil:
			return 0, err
		case response.Succeeded:
			return response.Header.Revision, nil
		}
		// The endpoint was free when it was read. So a claim by this worker and lease comes from an earlier copy of
		// this request, or from a request whose caller has given up.
		if have := etcd.First(response.Responses, 0); have != nil {
			if slices.Equal(have.Value, s.incarnation[:]) && have.Lease == int64(w.lease) {
				return have.CreateRevision, nil
			}
			return 0, nil
		}
	}
	return 0, nil
}

// dislodge removes a claim without a holder: its worker no longer exists, although the claim should have ended with
// the lease, or the claim belongs to an earlier lease of this worker. Late transactions of such a holder fail,
// since they compare the old claim.
func (w *worker) dislodge(ctx context.Context, claim *mvccpb.KeyValue) (free bool, err error) {
	by, ok := readIncarnation(claim.Value)
	if ok && by == w.Self() {
		return true, w.store.unclaim(ctx, claim)
	}
	worker := layout.WorkerKey(by)
	found, err := w.store.etcd.GetAll(ctx, "read_worker", []string{worker})
	if err != nil || found[0] != nil {
		return false, err
	}
	return true, w.store.unclaim(ctx, claim, clientv3.Compare(clientv3.CreateRevision(worker), "=", 0))
}
