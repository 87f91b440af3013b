package kv

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
	"licet/kv/internal/layout"
	"licet/node/store"
)

const (
	// registrationTTL is how many seconds a node that is dead, paused or cut off
	// stays registered.
	registrationTTL = 10
	// maxNodes bounds the nodes that one look at them finds.
	maxNodes = 1000
)

// Register keeps a node registered, under a lease, until ctx ends, and then
// removes it. Nothing but speed depends on it, so it fails in silence, and tries
// again.
func (s *Store) Register(ctx context.Context, r store.Registration) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began, err := s.register(ctx, r)
		if ctx.Err() != nil {
			return
		}
		s.log.Debug().Err(err).Msg("this node is not registered any more; it registers again")
		if began {
			attempt = 0
		}
		backoff.Exponential{First: 100 * time.Millisecond, Longest: 5 * time.Second}.Wait(ctx, attempt)
	}
}

// register registers a node for as long as its lease lives, and reports whether the node was ever registered.
func (s *Store) register(ctx context.Context, r store.Registration) (began bool, err error) {
	return s.etcd.UnderLease(ctx, "lease of the node", registrationTTL, layout.NodeKey(r.Incarnation),
		string(layout.EncodeNode(r)),
		func(ctx context.Context, _ clientv3.LeaseID) error {
			<-ctx.Done()
			return nil
		})
}

// Nodes lists the nodes that are up, this one too. One that is dead may be among
// them for some seconds.
func (s *Store) Nodes(ctx context.Context) ([]store.Registration, error) {
	response, err := s.etcd.List(ctx, "nodes", layout.NodesPrefix, clientv3.WithPrefix(), clientv3.WithLimit(maxNodes))
	if err != nil {
		return nil, err
	}
	var nodes []store.Registration
	for _, kv := range response.Kvs {
		r, err := layout.DecodeNode(string(kv.Key[len(layout.NodesPrefix):]), kv.Value)
		if err != nil {
			s.log.Debug().Err(err).Msg("a node's registration can't be read")
			continue
		}
		nodes = append(nodes, r)
	}
	return nodes, nil
}
