package service_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/kv/embedded/embeddedtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// TestKeysWithoutTheStore cuts a node off its store: remembered keys work for two seconds, and no longer.
func TestKeysWithoutTheStore(t *testing.T) {
	s := newKeyService(t, func(cfg *service.Config) { cfg.KeyScanEvery = 10 * time.Millisecond })
	s.store.HangWatch = true
	maker := keymaker(t, nodetest.OpenStore(t))
	key := issue(t, maker)
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	scan := s.scans.Load()
	s.away.Store(true)
	away := time.Now()
	for {
		asked := time.Now()
		got, err := s.Authenticate(t.Context(), key.Text)
		if errors.Is(err, licensing.ErrUnavailable) && got == nil {
			break
		}
		if err != nil || got == nil {
			t.Fatalf("got %v, %v", got, err)
		}
		// A scan that began before may still succeed.
		if late := asked.Sub(away); late > 3*time.Second {
			t.Fatalf("the key was accepted %v after the store went away", late)
		}
	}
	if s.scans.Load() < scan+2 {
		t.Error("the cache has tried no scan meanwhile")
	}
	revoke(t, maker, key.Key) // unseen
	s.away.Store(false)
	s.want(t, key.Text, false) // read through, or seen by a scan
	fresh := issue(t, maker)
	s.awaitRemembered(t, fresh.Text)
	s.want(t, key.Text, false)
}

// TestStoreOfAnEarlierTime replaces the node's store by an older store, as a restore does: a key that the older store
// lacks must stop working within two seconds.
func TestStoreOfAnEarlierTime(t *testing.T) {
	etcd := embeddedtest.Start(t, t.TempDir())
	old, err := kv.Open(nodetest.Context(t), kv.Config{
		Endpoints: etcd.Endpoints(), Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	s := newKeyService(t)
	s.store.HangWatch = true
	stores := &restored{Faulty: s.store}
	s.Service = nodetest.New(t, stores, func(cfg *service.Config) { s.metrics = cfg.Metrics })
	key := issue(t, s.maker(t))
	stop := s.follow(t)
	defer stop() // before its stores are closed
	s.awaitRemembered(t, key.Text)
	stores.old.Store(old)
	restoredAt := time.Now()
	for {
		asked := time.Now()
		got, err := s.Authenticate(t.Context(), key.Text)
		if err != nil {
			t.Fatal(err)
		}
		if got == nil {
			return
		}
		if late := asked.Sub(restoredAt); late > 2*time.Second {
			t.Fatalf("the key was accepted %v after the store had lost it", late)
		}
	}
}

// restored is a store that a test replaces by another store, old.
type restored struct {
	*storetest.Faulty
	old atomic.Pointer[kv.Store]
}

func (s *restored) APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error) {
	if old := s.old.Load(); old != nil {
		return old.APIKey(ctx, hash)
	}
	return s.Faulty.APIKey(ctx, hash)
}

func (s *restored) APIKeyMarks(ctx context.Context) (store.KeyMarks, error) {
	if old := s.old.Load(); old != nil {
		return old.APIKeyMarks(ctx)
	}
	return s.Faulty.APIKeyMarks(ctx)
}

// TestReadThatWasOvertaken: an API key is revoked, and the node sees the revocation, while an earlier read of the key
// is under way. The cache must not keep the result of this read.
func TestReadThatWasOvertaken(t *testing.T) {
	s := newKeyService(t, seldom)
	first := issue(t, s.maker(t))
	slow := &overtaken{Faulty: s.store, hash: first.Key.Hash, read: make(chan struct{}), release: make(chan struct{})}
	clock := new(nodetest.Clock)
	s.Service = nodetest.New(t, slow, nodetest.WithClock(clock), seldom,
		func(cfg *service.Config) { s.metrics = cfg.Metrics })
	s.follow(t)
	s.awaitRemembered(t, issue(t, s.maker(t)).Text)

	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.want(t, first.Text, true) // as it was before the revocation
	}()
	<-slow.read
	revoke(t, s.maker(t), first.Key)
	s.awaitScan(t) // which began after the key was revoked
	close(slow.release)
	<-answered
	s.want(t, first.Text, false)
}

// awaitScan returns once a scan that began after the call has succeeded: then the next scan begins.
func (s *keyService) awaitScan(t *testing.T) {
	t.Helper()
	ctx := nodetest.Context(t)
	for last := s.scans.Load() + 2; s.scans.Load() < last; {
		next := s.scans.Load() + 1
		issue(t, s.maker(t)) // the watch wakes the cache
		for s.scans.Load() < next {
			if ctx.Err() != nil {
				t.Fatal("the cache does not scan")
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// overtaken holds back the answer to the first read of a key.
type overtaken struct {
	*storetest.Faulty
	hash          [32]byte
	once          sync.Once
	read, release chan struct{}
}

func (s *overtaken) APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error) {
	key, err := s.Faulty.APIKey(ctx, hash)
	if hash == s.hash {
		s.once.Do(func() {
			close(s.read)
			<-s.release
		})
	}
	return key, err
}

// TestMemoryIsBounded looks up more keys of two owners than fit into the cache, one owner after the other: each owner
// gets as many places as are still free.
func TestMemoryIsBounded(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	s.store.HangWatch = true
	many := &manyKeys{Faulty: s.store}
	s.Service = nodetest.New(t, many, nodetest.WithClock(clock), seldom,
		func(cfg *service.Config) { s.metrics = cfg.Metrics })
	s.follow(t)
	known := guessed("0")
	for i := 0; keyring.HashAPIKey(known)[31]%2 != 0; i++ {
		known = guessed(fmt.Sprint(i))
	}
	for s.lookups("hit") == 0 {
		if _, err := s.Authenticate(t.Context(), known); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(text string) {
		t.Helper()
		if _, err := s.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	wantKeys := func(want int) {
		t.Helper()
		if keys, _ := s.CachedKeys(); keys != want {
			t.Errorf("%d keys are remembered, want %d", keys, want)
		}
	}
	for i := range 3 * service.MaxCachedKeys {
		ask(guessed(fmt.Sprint("text ", i)))
	}
	wantKeys(service.MaxCachedKeys / 2)
	if _, unknown := s.CachedKeys(); unknown != service.MaxCachedKeys {
		t.Errorf("%d texts that are no key are remembered, want %d", unknown, service.MaxCachedKeys)
	}

	// Another owner finds room, and the first owner can't take that room away.
	many.owner.Store(&licensing.Owner{AccountID: "acct_other", Mode: licensing.Test})
	var others []string
	for i := 0; len(others) < service.MaxCachedKeys/8; i++ {
		text := guessed(fmt.Sprint("other ", i))
		if keyring.HashAPIKey(text)[31]%2 == 0 {
			others = append(others, text)
			ask(text)
		}
	}
	many.owner.Store(new(licensing.Owner))
	for i := range service.MaxCachedKeys {
		ask(guessed(fmt.Sprint("more ", i)))
	}
	hits := s.hits()
	for _, text := range others {
		ask(text)
	}
	if got := s.hits() - hits; got < float64(len(others))*99/100 {
		t.Errorf("%v keys of another owner are still remembered, of %d", got, len(others))
	}
	if keys, _ := s.CachedKeys(); keys > service.MaxCachedKeys {
		t.Errorf("%d keys are remembered, more than %d", keys, service.MaxCachedKeys)
	}
}

// manyKeys is a store in which every second text is a key of an owner.
type manyKeys struct {
	*storetest.Faulty
	owner atomic.Pointer[licensing.Owner]
}

func (s *manyKeys) APIKey(_ context.Context, hash [32]byte) (*licensing.APIKey, error) {
	if hash[31]%2 != 0 {
		return nil, nil
	}
	key := &licensing.APIKey{Hash: hash}
	if owner := s.owner.Load(); owner != nil {
		key.Owner = *owner
	}
	return key, nil
}

// TestConcurrentLookups creates, uses and revokes keys concurrently, with a store that comes and goes. Two seconds
// after its revocation, no look-up may find a key.
func TestConcurrentLookups(t *testing.T) {
	s := newKeyService(t, func(cfg *service.Config) { cfg.KeyScanEvery = 5 * time.Millisecond })
	maker := keymaker(t, nodetest.OpenStore(t))
	s.follow(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				key, err := maker.Create(nodetest.Context(t),
					service.NewKey{Owner: nodetest.Owner, Name: "shop", Scopes: []string{"*"}})
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					got, err := s.Authenticate(t.Context(), key.Text)
					if err == nil && (got == nil || got.ID != key.Key.ID) || err != nil &&
						!errors.Is(err, licensing.ErrUnavailable) {
						t.Errorf("a good key gives %v, %v", got, err)
					}
				}
				if _, err := maker.Revoke(nodetest.Context(t), key.Key.Owner, key.Key.ID); err != nil {
					t.Error(err)
					return
				}
				revoked := time.Now()
				for {
					asked := time.Now()
					got, err := s.Authenticate(t.Context(), key.Text)
					if err == nil && got == nil {
						break
					}
					if late := asked.Sub(revoked); got != nil && late > 2*time.Second {
						t.Errorf("the key was accepted %v after it was revoked", late)
						break
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for flicker := time.NewTicker(3 * time.Millisecond); ; {
		select {
		case <-flicker.C:
			s.away.Store(!s.away.Load())
		case <-done:
			flicker.Stop()
			return
		}
	}
}

// TestStopFollowingKeys: after the end of FollowKeys, the node reads keys from the store. TestMain checks that no
// goroutine is left.
func TestStopFollowingKeys(t *testing.T) {
	s := newKeyService(t, func(cfg *service.Config) { cfg.KeyScanEvery = time.Millisecond })
	stop := s.follow(t)
	s.awaitRemembered(t, issue(t, s.maker(t)).Text)
	stop()
	scans := s.scans.Load()
	key := issue(t, s.maker(t))
	s.want(t, key.Text, true)
	revoke(t, s.maker(t), key.Key)
	s.want(t, key.Text, false)
	if s.scans.Load() != scans {
		t.Error("the cache still scans")
	}
}
