package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/service"
)

// keyNode is a node that makes API keys, with a store of its own on the etcd of all tests.
func keyNode(t *testing.T, change ...func(*service.Config)) (*service.Service, *kv.Store) {
	t.Helper()
	store := nodetest.OpenStore(t)
	return nodetest.New(t, store, append([]func(*service.Config){func(cfg *service.Config) {
		cfg.Ring = parseRing(t, lineM1+lineM2)
	}}, change...)...), store
}

func shopKey(once *node.Once) service.KeyCreation {
	return service.KeyCreation{NewKey: service.NewKey{Owner: nodetest.Owner, Name: "shop", Scopes: []string{"orders"}},
		Once: once}
}

// anyKey may do all.
func anyKey() *licensing.APIKey {
	return &licensing.APIKey{Owner: nodetest.Owner, Scopes: []string{"*"}}
}

// persist repeats a request as long as another node works on the same request.
func persist(ask func() (service.IssuedKey, bool, error)) (service.IssuedKey, bool, error) {
	for {
		issued, replayed, err := ask()
		if !errors.Is(err, licensing.ErrRequestInProgress) {
			return issued, replayed, err
		}
	}
}

// TestKeysOnce sends the same requests to two nodes at once: the service creates one key and rotates it once, and one
// caller each gets its text and its secrets.
func TestKeysOnce(t *testing.T) {
	first, _ := keyNode(t)
	second, store := keyNode(t)
	nodes := []*service.Service{first, second}
	request := nodetest.Once(ulid.Make().String(), "r")
	all := func(ask func(context.Context, *service.Service) (service.IssuedKey, bool, error)) (made service.IssuedKey) {
		t.Helper()
		var lock sync.Mutex
		tellers := 0
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				issued, replayed, err := persist(func() (service.IssuedKey, bool,
					error) {
					return ask(nodetest.Context(t), nodes[i%2])
				})
				if err != nil {
					t.Errorf("got %v", err)
				}
				lock.Lock()
				defer lock.Unlock()
				switch {
				case !replayed && issued.Secret != "":
					made = issued
					tellers++
				case !replayed || issued.Secret != "" || issued.Text != "":
					t.Errorf("replayed %v with %+v", replayed, issued)
				}
				if made.Key.ID != "" && issued.Key.ID != made.Key.ID {
					t.Errorf("two API keys were made: %s and %s", issued.Key.ID, made.Key.ID)
				}
			})
		}
		group.Wait()
		if tellers != 1 {
			t.Errorf("%d callers got the secret", tellers)
		}
		return made
	}
	made := all(func(ctx context.Context, n *service.Service) (service.IssuedKey, bool, error) {
		return n.CreateAPIKey(ctx, shopKey(request))
	})
	rotation := service.KeyRotation{Owner: nodetest.Owner, By: anyKey(), ID: made.Key.ID, Overlap: time.Hour,
		Once: nodetest.Once(ulid.Make().String(), "r")}
	rotated := all(func(ctx context.Context, n *service.Service) (service.IssuedKey, bool, error) {
		return n.RotateAPIKey(ctx, rotation)
	})
	stored, err := store.APIKey(nodetest.Context(t), keyring.HashAPIKey(made.Text))
	if err != nil || stored.SecretVersion != 2 || rotated.Secret == made.Secret {
		t.Errorf("stored is %+v, %v", stored, err)
	}
	_, _, err = first.CreateAPIKey(nodetest.Context(t),
		shopKey(&node.Once{Hash: request.Hash, Fingerprint: [32]byte{1}}))
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)
}

// TestRotationsAtOnce: of any number of rotations of a key in the same millisecond, each returns another secret.
func TestRotationsAtOnce(t *testing.T) {
	clock := new(nodetest.Clock)
	first, store := keyNode(t, nodetest.WithClock(clock))
	second, _ := keyNode(t, nodetest.WithClock(clock))
	key := issue(t, keymaker(t, store)).Key
	var secrets sync.Map
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			issued, _, err := []*service.Service{first, second}[i%2].RotateAPIKey(nodetest.Context(t),
				service.KeyRotation{Owner: nodetest.Owner, By: anyKey(), ID: key.ID})
			if err != nil {
				t.Errorf("rotate: %v", err)
			}
			if _, twice := secrets.LoadOrStore(issued.Secret, true); twice {
				t.Error("two callers got the same secret")
			}
		})
	}
	group.Wait()
	if stored, err := store.FindAPIKey(nodetest.Context(t), nodetest.Owner, key.ID); err != nil ||
		stored.SecretVersion != 9 {
		t.Errorf("stored is %+v, %v", stored, err)
	}
}

// TestKeysNeedTheRing asks a node that was started with another ring.
func TestKeysNeedTheRing(t *testing.T) {
	n, store := keyNode(t)
	other := nodetest.New(t, store, func(cfg *service.Config) {
		cfg.Ring = parseRing(t, "m1:"+strings.Repeat("C", 42)+"A=")
	})
	issued, _, err := n.CreateAPIKey(nodetest.Context(t), shopKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = other.CreateAPIKey(nodetest.Context(t), shopKey(nil))
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	_, _, err = other.RotateAPIKey(nodetest.Context(t),
		service.KeyRotation{Owner: nodetest.Owner, By: anyKey(), ID: issued.Key.ID})
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	// A revocation needs no ring.
	if key, err := other.RevokeAPIKey(nodetest.Context(t), nodetest.Owner, issued.Key.ID); err != nil ||
		key.RevokedAt.IsZero() {
		t.Errorf("revoked %+v, %v", key, err)
	}
}

func TestKeysOfADrainingNode(t *testing.T) {
	n, store := keyNode(t)
	key := issue(t, keymaker(t, store)).Key
	n.StopIntake()
	_, _, err := n.CreateAPIKey(nodetest.Context(t), shopKey(nil))
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	_, _, err = n.RotateAPIKey(nodetest.Context(t),
		service.KeyRotation{Owner: nodetest.Owner, By: anyKey(), ID: key.ID})
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	_, err = n.RevokeAPIKey(nodetest.Context(t), nodetest.Owner, key.ID)
	nodetest.WantError(t, err, licensing.ErrUnavailable)
	if got, err := n.APIKey(nodetest.Context(t), nodetest.Owner, key.ID); err != nil || !got.RevokedAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}
