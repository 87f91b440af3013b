package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
	"licet/node/store"
)

const (
	// registrationTTL is how many seconds a node that is dead, paused or cut off
	// stays registered.
	registrationTTL = 10
	// maxNodes bounds the nodes that one look at them finds.
	maxNodes = 1000
	// reregisterPause is the longest pause before a node that is not registered
	// any more is registered again; it doubles.
	reregisterPause    = 100 * time.Millisecond
	reregisterPauseMax = 5 * time.Second
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
		longest := min(reregisterPause<<min(attempt, 10), reregisterPauseMax)
		timer := time.NewTimer(longest/2 + rand.N(longest/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// register registers a node for as long as its lease lives, and tells whether it
// ever was.
func (s *Store) register(ctx context.Context, r store.Registration) (began bool, err error) {
	starting, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	lease, err := s.client.Grant(starting, registrationTTL)
	if err != nil {
		return false, fmt.Errorf("take a lease: %w", err)
	}
	defer func() {
		// Also where ctx has ended, which is the rule. Whoever can't be told finds out
		// when the lease is over.
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = s.client.Revoke(leaving, lease.ID)
	}()
	if _, err := s.kv.Put(starting, layout.NodeKey(r.Incarnation), string(layout.EncodeNode(r)), clientv3.WithLease(lease.ID)); err != nil {
		return false, fmt.Errorf("register: %w", err)
	}
	alive, err := s.client.KeepAlive(ctx, lease.ID)
	if err != nil {
		return true, fmt.Errorf("keep the lease: %w", err)
	}
	for range alive {
	}
	return true, nil
}

// Nodes lists the nodes that are up, this one too. One that is dead may be among
// them for some seconds.
func (s *Store) Nodes(ctx context.Context) ([]store.Registration, error) {
	response, err := s.list(ctx, "nodes", layout.NodesPrefix, clientv3.WithPrefix(), clientv3.WithLimit(maxNodes))
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
