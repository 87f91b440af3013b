package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// registrationTTL is how many seconds a node that is dead, paused or cut off
	// stays registered.
	registrationTTL = 10
	// maxNodes bounds how many nodes one read finds.
	maxNodes = 1000
	// stampEvery is how often a node stores its time.
	stampEvery = 500 * time.Millisecond
)

// errUnregistered reports that a node's registration is gone, though its lease may live, or that it must end because
// the node's clock was set.
var errUnregistered = fmt.Errorf("%w: the registration is gone or must end", licensing.ErrUnavailable)

// registrations keeps the registrations of nodes.
type registrations struct{ *core }

// Register keeps a node registered, under a lease, until ctx ends, and then removes the
// registration. Each half second Register stores the time that clock stamps along with what
// current returns, and gives clock all nodes' times. The incarnation of current never changes.
// Register does not fail: it tries again.
func (s *registrations) Register(ctx context.Context, current func() store.Registration, clock store.Stamper) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began, err := s.register(ctx, current, clock)
		if ctx.Err() != nil {
			return
		}
		s.log.Debug().Err(err).Msg("the registration of this node has ended; the node registers again")
		if began {
			attempt = 0
		}
		// Under the alarm NOSPACE no node can register, and a node without a registration
		// can still compare its clock.
		s.compareClocks(ctx, clock)
		backoff.Exponential{First: 100 * time.Millisecond, Longest: 5 * time.Second}.Wait(ctx, attempt)
	}
}

// register registers a node for as long as its lease lives, and reports whether it
// ever was registered.
func (s *registrations) register(
	ctx context.Context, current func() store.Registration, clock store.Stamper,
) (began bool, err error) {
	r := current()
	return s.etcd.UnderLease(ctx, "lease of the node", registrationTTL, keyspace.NodeKey(r.Incarnation),
		string(layout.EncodeNode(r, time.Time{})),
		func(ctx context.Context, lease clientv3.LeaseID) error {
			return s.keepStamping(ctx, current, clock, lease)
		})
}

// keepStamping stores a node's time each half second, until ctx ends or the registration is gone.
// Once keepStamping has returned, the registration may be removed: other nodes form majorities
// without the node, so the node no longer acts by its clock.
func (s *registrations) keepStamping(
	ctx context.Context, current func() store.Registration, clock store.Stamper, lease clientv3.LeaseID,
) error {
	defer clock.Leave()
	revision := int64(0) // not known
	for ctx.Err() == nil {
		now, stored, err := s.stamp(ctx, current(), clock, lease, revision)
		switch {
		case errors.Is(err, errUnregistered):
			return err
		case err != nil:
			s.log.Debug().Err(err).Msg("can't store this node's time")
			s.compareClocks(ctx, clock)
		default:
			revision = now
		}
		if stored || err != nil {
			backoff.Sleep(ctx, stampEvery)
		}
	}
	return nil
}

// stamp stores a node's time in its registration, and reads the times of all nodes in the same transaction. If the
// registration does not have the given revision, stamp stores nothing: so a delayed request never replaces a newer time
// by an older one. stamp returns the revision that the registration has now.
func (s *registrations) stamp(
	ctx context.Context, r store.Registration, clock store.Stamper, lease clientv3.LeaseID, revision int64,
) (now int64, stored bool, err error) {
	key := keyspace.NodeKey(r.Incarnation)
	list := clientv3.OpGet(keyspace.NodesPrefix, clientv3.WithPrefix(), clientv3.WithLimit(maxNodes))
	at, registerAgain := clock.Stamp()
	if registerAgain {
		return 0, false, errUnregistered
	}
	value := string(layout.EncodeNode(r, at))
	done, err := s.etcd.Txn(ctx, "stamp", []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", revision)},
		[]clientv3.Op{clientv3.OpPut(key, value, clientv3.WithLease(lease)), list}, []clientv3.Op{list})
	if err != nil {
		return 0, false, etcd.Unavailable(err)
	}
	kvs := done.Responses[len(done.Responses)-1].GetResponseRange().Kvs
	clock.Compare(s.stamps(kvs))
	for _, kv := range kvs {
		if string(kv.Key) == key {
			return kv.ModRevision, done.Succeeded, nil
		}
	}
	return 0, false, errUnregistered
}

// compareClocks reads the times of all nodes, and stores none.
func (s *registrations) compareClocks(ctx context.Context, clock store.Stamper) {
	_, _ = clock.Stamp() // stored nowhere
	response, err := s.listNodes(ctx)
	if err != nil {
		s.log.Debug().Err(err).Msg("can't read the other nodes' times")
		return
	}
	clock.Compare(s.stamps(response.Kvs))
}

// stamps returns the times in registrations. Nodes of an older version have none.
func (s *registrations) stamps(kvs []*mvccpb.KeyValue) (stamps []store.Stamp) {
	for _, kv := range kvs {
		r, at, err := layout.DecodeNode(string(kv.Key[len(keyspace.NodesPrefix):]), kv.Value)
		if err == nil && !at.IsZero() {
			stamps = append(stamps,
				store.Stamp{Node: r.Incarnation, At: at, Created: kv.CreateRevision, Version: kv.Version})
		}
	}
	return stamps
}

func (s *registrations) listNodes(ctx context.Context) (*clientv3.GetResponse, error) {
	return s.etcd.List(ctx, "nodes", keyspace.NodesPrefix, clientv3.WithPrefix(), clientv3.WithLimit(maxNodes))
}

// Nodes lists the nodes that are up and listen to other nodes, including this node. A dead node may be among them for
// some seconds.
func (s *registrations) Nodes(ctx context.Context) ([]store.Registration, error) {
	response, err := s.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	var nodes []store.Registration
	for _, kv := range response.Kvs {
		r, _, err := layout.DecodeNode(string(kv.Key[len(keyspace.NodesPrefix):]), kv.Value)
		if !s.etcd.Unreadable(string(kv.Key), "the registration of a node", err) && r.Address != "" {
			nodes = append(nodes, r)
		}
	}
	return nodes, nil
}
