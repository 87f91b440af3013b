package service_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// tightStore is a store that is almost full when a test says so.
type tightStore struct {
	store.Store
	space atomic.Int32
}

func (s *tightStore) Space() store.Space { return store.Space(s.space.Load()) }

func (s *tightStore) set(space store.Space) { s.space.Store(int32(space)) }

// TestKeyUsesInReserve: while the store is almost full, uses of API keys wait.
func TestKeyUsesInReserve(t *testing.T) {
	db := nodetest.OpenStore(t)
	tight := &tightStore{Store: db}
	n := nodetest.New(t, tight, withRing(t))
	key := issue(t, keymaker(t, db))
	if got, err := n.Authenticate(nodetest.Context(t), key.Text); err != nil || got == nil {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, space := range []store.Space{store.SpaceReserve, store.SpaceFull} {
		tight.set(space)
		n.StoreKeyUses()
		wantUsed(t, db, key.Key, time.Time{})
	}
	tight.set(store.SpaceFree)
	n.StoreKeyUses()
	if got, err := db.FindAPIKey(nodetest.Context(t), nodetest.Owner, key.Key.ID); err != nil ||
		got.LastUsedAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRevocationsInReserve: while the store is almost full, an owner revokes API keys, up to the limit of changes.
func TestRevocationsInReserve(t *testing.T) {
	db := nodetest.OpenStore(t)
	tight := &tightStore{Store: db}
	n := nodetest.New(t, tight, withRing(t))
	key := issue(t, keymaker(t, db)).Key
	tight.set(store.SpaceReserve)
	if revoked, err := n.RevokeAPIKey(nodetest.Context(t), key.Owner, key.ID); err != nil ||
		revoked.RevokedAt.IsZero() {
		t.Errorf("got %+v, %v", revoked, err)
	}
	for began := time.Now(); ; {
		_, err := n.RevokeAPIKey(nodetest.Context(t), key.Owner, key.ID)
		var refused *licensing.Error
		if errors.As(err, &refused) && refused.Limit != nil && refused.Limit.Policy == node.PolicyReserve {
			break
		}
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("no limit: %v", err)
		}
	}
}
