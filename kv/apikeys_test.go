package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
)

// newAPIKey makes a key that is not stored.
func newAPIKey() licensing.APIKey { return newAPIKeyOf(licenseOwner) }

func newAPIKeyOf(owner licensing.Owner) licensing.APIKey {
	id := licensing.NewAPIKeyID(owner, ulid.Make().String())
	return licensing.APIKey{
		ID: id, Hash: keyring.HashAPIKey("lk_test_" + licensing.SlotOf(owner).String() + rand.Text()), Owner: owner,
		Name: "shop", Scopes: []string{"*"}, SecretVersion: 1, MasterID: "m1", CreatedAt: kvtest.Time,
	}
}

// TestAPIKeyInDoubt creates a key and rotates it, while etcd applies the attempts or not and answers with every fault.
func TestAPIKeyInDoubt(t *testing.T) {
	lost := rpctypes.ErrTimeout
	for _, c := range []struct {
		name   string
		faults []kvtest.Fault
		err    error
		made   bool
	}{
		{name: "no fault", made: true},
		{name: "applied, answer lost", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}}, made: true},
		{name: "not applied, answer lost", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}},
			made: true},
		{name: "applied after the second attempt", faults: []kvtest.Fault{{Apply: kvtest.AppliedLate, Tell: lost}},
			made: true},
		{name: "no space", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrNoSpace}}, made: true},
		{name: "refused", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
			err: licensing.ErrUnavailable},
		{name: "rejected", faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyOps}},
			err: licensing.ErrInternal},
		{name: "in doubt, then " +
			"refused", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}, {Apply: kvtest.AppliedNever,
			Tell: rpctypes.ErrTooManyRequests}}, err: licensing.ErrOutcomeUnknown, made: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := faultyStore(t, kvtest.Script(c.faults...))
			s.owners.note(licenseOwner) // so that the faults meet the writes of the key
			key := newAPIKey()
			err := s.PutAPIKey(ctx, key)
			got, readErr := s.APIKey(ctx, key.Hash)
			if !errors.Is(err, c.err) || readErr != nil || (got != nil) != c.made {
				t.Errorf("made: %v; stored %v, %v", err, got, readErr)
			}

			s = faultyStore(t, kvtest.Script())
			if err := s.PutAPIKey(ctx, key); err != nil {
				t.Fatal(err)
			}
			s = faultyStore(t, kvtest.Script(c.faults...))
			_, err = s.ChangeAPIKey(ctx, key.Owner, key.ID,
				func(k *licensing.APIKey) error { return k.Rotate("m1", kvtest.Time, 0) })
			got, readErr = s.APIKey(ctx, key.Hash)
			if !errors.Is(err, c.err) || readErr != nil ||
				got.SecretVersion != map[bool]int{true: 2, false: 1}[c.made] {
				t.Errorf("rotated: %v; stored %v, %v", err, got, readErr)
			}
		})
	}
}

// TestAPIKeyInDoubtAmongRivals loses the answer to a change, and lets a rival
// change the key before it is issued again.
func TestAPIKeyInDoubtAmongRivals(t *testing.T) {
	revoke := func(k *licensing.APIKey) error { k.Revoke(kvtest.Time); return nil }
	rotate := func(k *licensing.APIKey) error { return k.Rotate("m1", kvtest.Time, time.Hour) }
	for _, c := range []struct {
		name        string
		first       kvtest.Applied
		ours, rival func(*licensing.APIKey) error
		version     int
		revoked     bool
		err         error
		answered    int // the version that was answered; 0: the stored version
	}{
		{name: "revoked by both", first: kvtest.AppliedNow, ours: revoke, rival: revoke, version: 1, revoked: true},
		{name: "revoked, then refused to the rival", first: kvtest.AppliedNow, ours: revoke, rival: rotate, version: 1,
			revoked: true},
		{name: "rotated by the rival, then revoked", first: kvtest.AppliedNever, ours: revoke, rival: rotate,
			version: 2, revoked: true},
		{name: "rotated, and again by the rival", first: kvtest.AppliedNow, ours: rotate, rival: rotate, version: 3,
			answered: 2},
		{name: "rotated alike by the rival, then by us", first: kvtest.AppliedNever, ours: rotate, rival: rotate,
			version: 3},
		{name: "rotated by the rival, then by us", first: kvtest.AppliedNever, ours: rotate,
			rival: func(k *licensing.APIKey) error {
				return k.Rotate("m1", kvtest.Time, time.Minute)
			}, version: 3},
		{name: "revoked by the rival", first: kvtest.AppliedNever, ours: rotate, rival: revoke, version: 1,
			revoked: true, err: licensing.ErrAPIKeyNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := faultyStore(t, kvtest.Script())
			key := newAPIKey()
			if err := s.PutAPIKey(ctx, key); err != nil {
				t.Fatal(err)
			}
			calls := 0
			s.etcd.Remote.(*kvtest.FaultyKV).Next = func() kvtest.Fault {
				switch calls++; calls {
				case 1:
					return kvtest.Fault{Apply: c.first, Tell: rpctypes.ErrTimeout}
				case 2:
					_, _ = faultyStore(t, kvtest.Script()).ChangeAPIKey(ctx, key.Owner, key.ID, c.rival)
				}
				return kvtest.Fault{}
			}
			got, err := s.ChangeAPIKey(ctx, key.Owner, key.ID, c.ours)
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			stored, readErr := s.APIKey(ctx, key.Hash)
			if readErr != nil {
				t.Fatal(readErr)
			}
			switch {
			case err == nil && c.answered != 0:
				if got.SecretVersion != c.answered {
					t.Errorf("answered version %d, want %d", got.SecretVersion, c.answered)
				}
			case err == nil:
				kvtest.Equal(t, stored, got)
			}
			if stored.SecretVersion != c.version || stored.RevokedAt.IsZero() == c.revoked {
				t.Errorf("stored is version %d, revoked at %v", stored.SecretVersion, stored.RevokedAt)
			}
		})
	}
}

// TestPutAPIKeyIndexesOldKeys puts a key again that was stored before the index existed.
func TestPutAPIKeyIndexesOldKeys(t *testing.T) {
	ctx := t.Context()
	s := openStore(t)
	key := newAPIKey()
	old := key
	old.Name = "renamed since"
	if _, err := server.Client.Put(ctx, keyspace.APIKeyKey(key.Hash),
		string((&layout.APIKey{Key: old}).Encode())); err != nil {
		t.Fatal(err)
	}
	if err := s.PutAPIKey(ctx, key); err != nil {
		t.Fatal(err)
	}
	got, err := s.FindAPIKey(ctx, key.Owner, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, got, &old)
}

// TestChangeKeepsNewerFields changes a key that a newer node has written.
func TestChangeKeepsNewerFields(t *testing.T) {
	ctx := t.Context()
	s := openStore(t)
	key := newAPIKey()
	if err := s.PutAPIKey(ctx, key); err != nil {
		t.Fatal(err)
	}
	at := keyspace.APIKeyKey(key.Hash)
	newer := append((&layout.APIKey{Key: key}).Encode(), kvtest.NewerField()...)
	if _, err := server.Client.Put(ctx, at, string(newer)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ChangeAPIKey(ctx, key.Owner, key.ID,
		func(k *licensing.APIKey) error { k.Revoke(kvtest.Time); return nil }); err != nil {
		t.Fatal(err)
	}
	r, err := server.Client.Get(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	got, err := layout.DecodeAPIKey(key.Hash, r.Kvs[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	key.Revoke(kvtest.Time)
	kvtest.Equal(t, got, &layout.APIKey{Key: key, Writers: got.Writers, Unknown: kvtest.NewerField()})
}

// TestWatchSurvivesRestart stops etcd during a watch and starts it again: the watch must still report changes.
func TestWatchSurvivesRestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := embeddedtest.Dir(t)
	etcd := embeddedtest.Start(t, dir)
	s, err := Open(ctx, Config{Endpoints: etcd.Endpoints(), Metrics: kvtest.Metrics(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	watching, cancel := context.WithCancel(ctx)
	woken, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		s.WatchAPIKeys(watching, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	await := func(what string) {
		t.Helper()
		select {
		case <-woken:
		case <-ctx.Done():
			t.Fatalf("%s woke no watcher", what)
		}
	}
	await("the first watch")
	etcd.Close()
	embeddedtest.Start(t, dir)
	if err := s.PutAPIKey(ctx, newAPIKey()); err != nil {
		t.Fatal(err)
	}
	await("a new key")
	cancel()
	<-ended
}
