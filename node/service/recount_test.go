package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/node/service"
)

// heldCount calls a function during a recount: after the keys were counted, and before the result is stored.
type heldCount struct {
	*kv.Store
	counted func() error
}

func (s heldCount) CountUsage(
	ctx context.Context, revision int64,
) (map[licensing.Owner]licensing.Size, error) {
	sizes, err := s.Store.CountUsage(ctx, revision)
	return sizes, errors.Join(err, s.counted())
}

// TestRecount corrects the usage of an account after a node was killed, while two nodes go on changing what the account
// stores: growth that the recount has counted does not count again, and later growth is not lost.
func TestRecount(t *testing.T) {
	etcd := nodetest.OwnEtcd(t)
	owner, ctx := nodetest.NewOwner(licensing.Test), nodetest.Context(t)
	killed := budgetNodeOn(t, nodetest.OpenWith(t, etcd), 1000)
	mustGrant(t, killed, owner, 7, 1)
	killed.StoreUsage(ctx)
	mustGrant(t, killed, owner, 20, 1) // and the node is killed before it stores this growth

	other := budgetNodeOn(t, nodetest.OpenWith(t, etcd), 1000)
	mustGrant(t, other, owner, 3, 1) // not stored when the recount begins
	db := nodetest.OpenWith(t, etcd)
	var counter *service.Service
	held := heldCount{Store: db, counted: func() error {
		mustGrant(t, other, owner, 2, 1)
		other.StoreUsage(ctx)
		mustGrant(t, other, owner, 4, 1) // stored after the recount
		mustGrant(t, counter, owner, 1, 1)
		return nil
	}}
	clock := &nodetest.Clock{}
	counter = nodetest.New(t, db, nodetest.WithClock(clock), func(cfg *service.Config) {
		cfg.Usages, cfg.Budget = held, licensing.Budget{Keys: 1000}
	})
	nodetest.WantError(t, counter.Recount(ctx), nil)
	other.StoreUsage(ctx)
	counter.StoreUsage(ctx)
	usage, _, err := other.Usage(ctx, owner)
	nodetest.WantError(t, err, nil)
	if stored := storedBy(t, db, etcd, owner); usage != stored || usage.Keys < 2*(7+20+3+2+4+1) {
		t.Errorf("the usage is %+v, and the account stores %+v", usage, stored)
	}

	// No node counts again before a day has passed.
	held.counted = func() error { t.Error("the node has counted again within a day"); return nil }
	idle := nodetest.New(t, db, nodetest.WithClock(clock), func(cfg *service.Config) { cfg.Usages = held })
	clock.Advance(23 * time.Hour)
	nodetest.WantError(t, idle.Recount(ctx), nil)
	clock.Advance(2 * time.Hour)
	again := 0
	held.counted = func() error { again++; return nil }
	later := nodetest.New(t, db, nodetest.WithClock(clock), func(cfg *service.Config) { cfg.Usages = held })
	nodetest.WantError(t, later.Recount(ctx), nil)
	if again != 1 {
		t.Errorf("after a day: counted %d times", again)
	}
}

// TestOneNodeRecounts: of two nodes one counts. If that node fails, another node counts two hours later, and the late
// result of the first node changes nothing.
func TestOneNodeRecounts(t *testing.T) {
	etcd := nodetest.OwnEtcd(t)
	owner, ctx := nodetest.NewOwner(licensing.Test), nodetest.Context(t)
	db := nodetest.OpenWith(t, etcd)
	failed := errors.New("the node can't read the store")
	counts := 0
	node := func(after time.Duration, counted func() error) *service.Service {
		clock := &nodetest.Clock{}
		clock.Advance(after)
		return nodetest.New(t, db, nodetest.WithClock(clock), func(cfg *service.Config) {
			cfg.Usages = heldCount{Store: db, counted: func() error { counts++; return counted() }}
		})
	}
	first := node(0, func() error { return failed })
	mustGrant(t, first, owner, 5, 1)
	if err := first.Recount(ctx); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	second := node(time.Hour, func() error { return nil })
	nodetest.WantError(t, second.Recount(ctx), nil)
	if counts != 1 {
		t.Fatalf("counted %d times, want once within two hours", counts)
	}
	late := node(3*time.Hour, func() error {
		nodetest.WantError(t, node(6*time.Hour, func() error { return nil }).Recount(ctx), nil) // overtakes it
		mustGrant(t, first, owner, 5, 1)
		return nil
	})
	nodetest.WantError(t, late.Recount(ctx), nil)
	if counts != 3 {
		t.Errorf("counted %d times", counts)
	}
	first.StoreUsage(ctx)
	if usage, _, err := first.Usage(ctx, owner); err != nil || usage != storedBy(t, db, etcd, owner) {
		t.Errorf("%+v, %v, and the account stores %+v", usage, err, storedBy(t, db, etcd, owner))
	}
}

// storedBy returns how much an owner stores now in a store on an etcd.
func storedBy(t *testing.T, db *kv.Store, etcd kv.Config, owner licensing.Owner) licensing.Size {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: etcd.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	now, err := client.Get(nodetest.Context(t), "lc2/cell/check")
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := db.CountUsage(nodetest.Context(t), now.Header.Revision)
	if err != nil {
		t.Fatal(err)
	}
	return sizes[owner]
}
