package service_test

import (
	"context"
	"errors"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
)

// TestSealRootsGoesOn: a root secret that can't be sealed under the current master key keeps no other one from it.
func TestSealRootsGoesOn(t *testing.T) {
	t.Parallel()
	store, ctx := nodetest.OpenStore(t), nodetest.Context(t)
	owner, nobody := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test) // nobody has no receipt keys
	if _, err := nodetest.New(t, store, withRing(t)).Signer(ctx, owner); err != nil {
		t.Fatal(err)
	}
	n := nodetest.New(t, store, func(cfg *service.Config) { cfg.Ring = parseRing(t, lineM2+lineM1) })
	n.SealRoots(ctx, func(context.Context) ([]licensing.Owner, error) {
		return []licensing.Owner{nobody, owner}, nil
	})
	signer, err := n.Signer(ctx, owner)
	if err != nil {
		t.Fatal(err)
	}
	if id := signer.Keys.Root.MasterID; id != "m2" {
		t.Errorf("the root secret after one that can't be sealed is sealed under %s, want m2", id)
	}
}

// TestSignerAfterServedCommand: a full node refuses to read receipt keys, unless it has served a command of the same
// request: its receipt must not fail then.
func TestSignerAfterServedCommand(t *testing.T) {
	t.Parallel()
	store, ctx := nodetest.OpenStore(t), nodetest.Context(t)
	owner := nodetest.NewOwner(licensing.Test)
	if _, err := nodetest.New(t, store, withRing(t)).Signer(ctx, owner); err != nil {
		t.Fatal(err)
	}
	n := nodetest.New(t, store, withRing(t))
	for {
		place, err := n.Enter(ctx, n.OwnerShare(owner))
		if err != nil {
			break
		}
		defer place.Leave(nil)
	}
	if _, err := n.Signer(ctx, owner); !errors.Is(err, licensing.ErrOverloaded) {
		t.Fatalf("a full node reads receipt keys for a new request: %v, want ErrOverloaded", err)
	}
	if _, err := n.SignerAfter(ctx, owner); err != nil {
		t.Errorf("a full node refuses to read the receipt keys for a command that it has served: %v", err)
	}
}

// TestFirstReceipts: the first activations of an account ask for its receipt keys at once. One makes the keys, and none
// is refused.
func TestFirstReceipts(t *testing.T) {
	t.Parallel()
	ctx := nodetest.Context(t)
	n, owner := nodetest.New(t, nodetest.OpenStore(t), withRing(t)), nodetest.NewOwner(licensing.Test)
	failures := make(chan error, 2000)
	for range cap(failures) {
		go func() {
			_, err := n.SignerAfter(ctx, owner)
			failures <- err
		}()
	}
	for range cap(failures) {
		nodetest.WantError(t, <-failures, nil)
	}
}
