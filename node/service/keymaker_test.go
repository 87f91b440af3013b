package service_test

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
)

func TestKeymaker(t *testing.T) {
	store := nodetest.OpenStore(t)
	maker := keymaker(t, store)
	clock := new(nodetest.Clock)
	maker.Clock = clock.Now
	issued := issue(t, maker, func(k *service.NewKey) { k.ExpiresAt = clock.Now().Add(time.Hour) })
	key := issued.Key
	if !regexp.MustCompile("^key_[0-9a-z]{28}$").MatchString(key.ID) ||
		!regexp.MustCompile("^lk_test_[0-9A-Z]{38}$").MatchString(issued.Text) {
		t.Errorf("made %s with the id %s", issued.Text, key.ID)
	}
	stored, err := store.APIKey(nodetest.Context(t), keyring.HashAPIKey(issued.Text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&key, stored); diff != "" {
		t.Errorf("stored (-answered +stored):\n%s", diff)
	}
	if secret, err := maker.Ring.APISecret(stored); err != nil || secret != issued.Secret {
		t.Errorf("the secret is %s (%v), and %s was answered", secret, err, issued.Secret)
	}

	// A rotation derives from the ring's current key, here a new one.
	maker.Ring = parseRing(t, lineM2+lineM1)
	rotated, err := maker.Rotate(nodetest.Context(t), key.Owner, key.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := licensing.PreviousSecret{Version: 1, MasterID: "m1", Until: clock.Now().Add(time.Minute)}
	if rotated.Text != "" || rotated.Key.MasterID != "m2" || rotated.Key.Previous != want ||
		rotated.Secret == issued.Secret {
		t.Errorf("rotated to %+v", rotated)
	}
	secrets, err := maker.Ring.APISecrets(&rotated.Key, clock.Now())
	if diff := cmp.Diff([]string{rotated.Secret, issued.Secret}, secrets); err != nil || diff != "" {
		t.Errorf("the good secrets (%v): %s", err, diff)
	}
	revoke(t, maker, key)
	if _, err := maker.Rotate(nodetest.Context(t), key.Owner, key.ID, 0); !errors.Is(err, licensing.ErrAPIKeyNotFound) {
		t.Errorf("a revoked key was rotated: %v", err)
	}

	// From here on the store uses m2, so the older ring does not suffice.
	maker.Ring = parseRing(t, lineM1)
	if _, err := maker.Create(nodetest.Context(t), service.NewKey{Owner: nodetest.Owner, Name: "shop",
		Scopes: []string{"*"}}); err == nil || !strings.Contains(err.Error(), `"m2"`) {
		t.Errorf("with a ring that lacks m2: %v", err)
	}
}

func TestKeymakerRefuses(t *testing.T) {
	maker := keymaker(t, nodetest.OpenStore(t))
	_, err := maker.Create(nodetest.Context(t),
		service.NewKey{Owner: nodetest.Owner, Name: "shop", Scopes: []string{"everything"}})
	nodetest.WantError(t, err, &licensing.Error{Reason: licensing.ReasonInvalidField})
	_, err = maker.Revoke(nodetest.Context(t), nodetest.Owner, "key_none")
	nodetest.WantError(t, err, licensing.ErrAPIKeyNotFound)
	_, err = maker.Rotate(nodetest.Context(t), nodetest.Owner, "key_none", 0)
	nodetest.WantError(t, err, licensing.ErrAPIKeyNotFound)
	maker.Entropy = strings.NewReader("short")
	_, err = maker.Create(nodetest.Context(t),
		service.NewKey{Owner: nodetest.Owner, Name: "shop", Scopes: []string{"*"}})
	nodetest.WantError(t, err, io.ErrUnexpectedEOF)
}
