package service_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// keyService is one of several nodes on the same etcd, for tests of API keys, with a store that counts requests and
// fails on demand.
type keyService struct {
	*service.Service
	store   *storetest.Faulty
	metrics *metrics.Metrics
	reads   atomic.Int64 // of keys
	scans   atomic.Int64 // that were let through
	away    atomic.Bool  // the store can't be reached
}

func newKeyService(t *testing.T, change ...func(*service.Config)) *keyService {
	t.Helper()
	s := &keyService{store: &storetest.Faulty{Store: nodetest.OpenStore(t)}}
	s.store.OnAPIKey = func([32]byte) error {
		s.reads.Add(1)
		return s.fault()
	}
	s.store.OnAPIKeyMarks = func() error {
		s.scans.Add(1)
		return s.fault()
	}
	s.Service = nodetest.New(t, s.store, append(change, func(cfg *service.Config) { s.metrics = cfg.Metrics })...)
	return s
}

func (s *keyService) fault() error {
	if s.away.Load() {
		return licensing.ErrUnavailable
	}
	return nil
}

// follow lets the node remember keys until stop is called, or the test ends.
func (s *keyService) follow(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.FollowKeys(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// awaitRemembered returns once a key is answered from memory.
func (s *keyService) awaitRemembered(t *testing.T, text string) {
	t.Helper()
	ctx := nodetest.Context(t)
	for before := s.hits(); s.hits() == before; {
		if got, err := s.Authenticate(ctx, text); err != nil || got == nil || ctx.Err() != nil {
			t.Fatalf("a good key gives %v, %v", got, err)
		}
	}
}

func (s *keyService) hits() float64 { return s.lookups("hit") }

func (s *keyService) lookups(result string) float64 {
	return testutil.ToFloat64(s.metrics.APIKeyLookups.WithLabelValues(result))
}

func (s *keyService) want(t *testing.T, text string, good bool) {
	t.Helper()
	if got, err := s.Authenticate(t.Context(), text); err != nil || (got != nil) != good {
		t.Errorf("got %v, %v; want a key: %v", got, err, good)
	}
}

// keymaker makes API keys without a node, as licet store keys does.
func keymaker(t *testing.T, store *kv.Store) service.Keymaker {
	t.Helper()
	return service.Keymaker{Store: store, Check: nodetest.LicenseKeys.KeyCheck, Ring: parseRing(t, lineM1+lineM2),
		Clock:   time.Now,
		Entropy: rand.Reader}
}

// guessed returns a text in the form of an API key, with the right check characters and a name of up to 20 bytes
// instead of random bytes.
func guessed(name string) string {
	var entropy [keyring.APIKeyEntropy]byte
	copy(entropy[:], name)
	return nodetest.LicenseKeys.MintAPIKey(nodetest.Owner, entropy)
}

// The lines of the master keys that tests of this package use.
var (
	lineM1 = "m1:" + strings.Repeat("A", 43) + "=\n"
	lineM2 = "m2:" + strings.Repeat("B", 42) + "A=\n"
)

func parseRing(t *testing.T, text string) keyring.MasterRing {
	t.Helper()
	ring, err := keyring.ParseMasterRing(text)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func (s *keyService) maker(t *testing.T) service.Keymaker {
	t.Helper()
	return keymaker(t, s.store.Store.(*kv.Store))
}

func issue(t *testing.T, maker service.Keymaker, change ...func(*service.NewKey)) service.IssuedKey {
	t.Helper()
	wanted := service.NewKey{Owner: nodetest.Owner, Name: "shop", Scopes: []string{"orders"}}
	for _, c := range change {
		c(&wanted)
	}
	issued, err := maker.Create(nodetest.Context(t), wanted)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func revoke(t *testing.T, maker service.Keymaker, key licensing.APIKey) {
	t.Helper()
	if _, err := maker.Revoke(nodetest.Context(t), key.Owner, key.ID); err != nil {
		t.Fatal(err)
	}
}

// seldom makes scans an hour apart, so that after the first scan only the watch starts a scan.
func seldom(cfg *service.Config) { cfg.KeyScanEvery = time.Hour }

func TestKeysAreRemembered(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	s.store.HangWatch = true // there is one scan, and no more
	key := issue(t, s.maker(t), func(k *service.NewKey) { k.ExpiresAt = time.Now().Add(time.Hour) })
	for range 3 {
		s.want(t, key.Text, true)
	}
	if s.reads.Load() != 3 || s.lookups("untrusted") != 3 {
		t.Errorf("before the cache follows the marks, 3 lookups make %d reads", s.reads.Load())
	}
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	reads := s.reads.Load()
	for range 100 {
		s.want(t, key.Text, true)
	}
	if s.reads.Load() != reads {
		t.Errorf("100 lookups of a key that is remembered made %d reads", s.reads.Load()-reads)
	}
	clock.Advance(2*time.Second - time.Millisecond)
	s.want(t, key.Text, true)
	if s.reads.Load() != reads {
		t.Error("the memory was not trusted for two seconds")
	}
	clock.Advance(time.Millisecond)
	s.want(t, key.Text, true)
	if s.reads.Load() != reads+1 {
		t.Error("the memory was trusted two seconds after its last scan")
	}
	s.away.Store(true)
	if got, err := s.Authenticate(nodetest.Context(t), key.Text); got != nil ||
		!errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("with the store away for two seconds: %v, %v", got, err)
	}
}

// TestSlowScan: the time of trust begins with the beginning of a scan, since the scan misses a key that is revoked
// while its answer is on the way.
func TestSlowScan(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	s.store.HangWatch = true
	s.store.OnAPIKeyMarks = func() error { clock.Advance(1500 * time.Millisecond); return nil }
	key := issue(t, s.maker(t))
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	reads := s.reads.Load()
	clock.Advance(500 * time.Millisecond)
	s.want(t, key.Text, true)
	if s.reads.Load() != reads+1 {
		t.Error("the memory was trusted two seconds after its last scan began")
	}
}

// TestClockSetBack: a wall clock that is set back must not make the last scan
// look recent.
func TestClockSetBack(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	s.store.HangWatch = true
	key := issue(t, s.maker(t))
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	reads := s.reads.Load()
	clock.Advance(-time.Minute)
	s.want(t, key.Text, true)
	if s.reads.Load() != reads+1 {
		t.Error("a key was answered from memory")
	}
}

func TestExpiredKeyIsDeadAtOnce(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	maker := s.maker(t)
	maker.Clock = clock.Now
	key := issue(t, maker, func(k *service.NewKey) { k.ExpiresAt = clock.Now().Add(time.Second) })
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	clock.Advance(time.Second - time.Millisecond)
	s.want(t, key.Text, true)
	clock.Advance(time.Millisecond)
	s.want(t, key.Text, false)
	if s.lookups("hit") < 2 {
		t.Error("the key was not answered from memory")
	}
}

// TestRevokedKeyDiesEverywhere revokes a key on one node, and asks another node for the key without a pause. However
// slow the machine is, the other node must not accept the key in a call that begins two seconds after the answer to the
// revocation.
func TestRevokedKeyDiesEverywhere(t *testing.T) {
	for name, deaf := range map[string]bool{"watch": false, "watch cut off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newKeyService(t)
			s.store.HangWatch = deaf
			maker := keymaker(t, nodetest.OpenStore(t))
			key := issue(t, maker)
			s.follow(t)
			s.awaitRemembered(t, key.Text)
			revoke(t, maker, key.Key)
			revoked := time.Now()
			hits := s.hits()
			for {
				asked := time.Now()
				got, err := s.Authenticate(t.Context(), key.Text)
				if err != nil {
					t.Fatal(err)
				}
				if got == nil {
					t.Logf("refused after %v", time.Since(revoked))
					break
				}
				if late := asked.Sub(revoked); late > 2*time.Second {
					t.Fatalf("the key was accepted %v after it was revoked", late)
				}
			}
			if deaf && s.hits() == hits {
				t.Error("no call was answered from memory, so the test proves nothing")
			}
			s.want(t, key.Text, false)
		})
	}
}

// TestWatchWakes: with scans an hour apart, only the watch reports a change.
func TestWatchWakes(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	key := issue(t, s.maker(t))
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	revoke(t, s.maker(t), key.Key)
	for ctx := nodetest.Context(t); ; {
		got, err := s.Authenticate(ctx, key.Text)
		if err != nil || ctx.Err() != nil {
			t.Fatal("no wait was woken", err)
		}
		if got == nil {
			return
		}
	}
}

// TestFreshKeyWorksAtOnce covers keys that no request has tried before their creation, and a key that a request has
// tried.
func TestFreshKeyWorksAtOnce(t *testing.T) {
	clock := new(nodetest.Clock)
	s := newKeyService(t, nodetest.WithClock(clock), seldom)
	s.store.HangWatch = true
	s.follow(t)
	s.awaitRemembered(t, issue(t, s.maker(t)).Text)
	for range 5 {
		s.want(t, issue(t, s.maker(t)).Text, true)
	}

	guess := guessed("a guess")
	s.want(t, guess, false)
	reads := s.reads.Load()
	for range 100 {
		s.want(t, guess, false)
	}
	if got := s.reads.Load() - reads; got != 0 {
		t.Errorf("100 more tries of a guess made %d reads", got)
	}
	store := s.store.Store.(*kv.Store)
	err := store.PutAPIKey(nodetest.Context(t), licensing.APIKey{
		ID: licensing.NewAPIKeyID(nodetest.Owner, "guessed"), Hash: keyring.HashAPIKey(guess), Owner: nodetest.Owner,
		SecretVersion: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Second)
	s.want(t, guess, true)
}

// otherOwner is an owner whose API keys are in another part than those of testOwner.
func otherOwner() licensing.Owner {
	for i := 0; ; i++ {
		owner := licensing.Owner{AccountID: fmt.Sprint("acct_other_", i), Mode: licensing.Test}
		if store.KeyPart(owner) != store.KeyPart(nodetest.Owner) {
			return owner
		}
	}
}

// TestChangesForgetOnlyTheOwnersKeys: one account creates, uses and revokes keys in a loop. The node answers for the
// key of another account from memory all the time, and still notices when that key is revoked.
func TestChangesForgetOnlyTheOwnersKeys(t *testing.T) {
	s := newKeyService(t, seldom)
	maker := s.maker(t)
	key := issue(t, maker)
	storming := func(k *service.NewKey) { k.Owner = otherOwner() }
	first := issue(t, maker, storming)
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	s.awaitRemembered(t, first.Text)

	var reads atomic.Int64
	s.store.OnAPIKey = func(hash [32]byte) error {
		if hash == key.Key.Hash {
			reads.Add(1)
		}
		return nil
	}
	changed := first
	for range 10 {
		revoke(t, maker, changed.Key)
		for ctx := nodetest.Context(t); ; {
			s.want(t, key.Text, true)
			got, err := s.Authenticate(ctx, changed.Text)
			if err != nil {
				t.Fatal("the revoked key is still accepted: ", err)
			}
			if got == nil {
				break
			}
		}
		changed = issue(t, maker, storming)
		s.awaitRemembered(t, changed.Text)
	}
	if got := reads.Load(); got != 0 {
		t.Errorf("the other account's changes made %d reads of a key", got)
	}
	revoke(t, maker, key.Key)
	for ctx := nodetest.Context(t); ; {
		if got, err := s.Authenticate(ctx, key.Text); err != nil {
			t.Fatal("the key is still taken: ", err)
		} else if got == nil {
			return
		}
	}
}

// TestChangeByAnEarlierBuild revokes a key as a node does whose build knows no parts.
func TestChangeByAnEarlierBuild(t *testing.T) {
	s := newKeyService(t, func(cfg *service.Config) { cfg.KeyScanEvery = time.Millisecond })
	s.store.HangWatch = true
	earlier := &earlierBuild{Faulty: s.store}
	s.Service = nodetest.New(t, earlier, func(cfg *service.Config) {
		s.metrics, cfg.KeyScanEvery = cfg.Metrics, time.Millisecond
	})
	key := issue(t, s.maker(t))
	s.follow(t)
	s.awaitRemembered(t, key.Text)
	earlier.revoked.Store(true)
	for ctx := nodetest.Context(t); ; {
		if got, err := s.Authenticate(ctx, key.Text); err != nil {
			t.Fatal("the key is still taken: ", err)
		} else if got == nil {
			return
		}
	}
}

// earlierBuild is a store in which a node of an earlier build revokes all keys.
type earlierBuild struct {
	*storetest.Faulty
	revoked atomic.Bool
}

func (s *earlierBuild) APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error) {
	key, err := s.Faulty.APIKey(ctx, hash)
	if key != nil && s.revoked.Load() {
		key.Revoke(time.Now())
	}
	return key, err
}

func (s *earlierBuild) APIKeyMarks(ctx context.Context) (store.KeyMarks, error) {
	marks, err := s.Faulty.APIKeyMarks(ctx)
	if s.revoked.Load() {
		marks.All += "+1"
	}
	return marks, err
}

// TestMalformedKeysCostNoRequest counts the requests to etcd: texts without the form or the check characters of an API
// key cost none, whether or not the node caches keys. A guess with the right check characters costs one.
func TestMalformedKeysCostNoRequest(t *testing.T) {
	registry := prometheus.NewRegistry()
	cfg := nodetest.StoreConfig()
	cfg.Metrics = metrics.New(registry, "test", "", "")
	db := nodetest.OpenWith(t, cfg)
	requests := func() (n uint64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "licet_store_request_duration_seconds" {
				for _, sample := range family.GetMetric() {
					n += sample.GetHistogram().GetSampleCount()
				}
			}
		}
		return n
	}
	s := nodetest.New(t, db)
	good := issue(t, keymaker(t, db)).Text
	other := keyring.NewKeyCheck([]byte("another check key")).
		MintAPIKey(nodetest.Owner, [keyring.APIKeyEntropy]byte{1})
	swapped := []byte(good)
	swapped[20], swapped[21] = swapped[21], swapped[20]
	if swapped[20] == swapped[21] {
		swapped[20] ^= 1
	}
	bad := []string{"", "x", "lk_test_", "lk_test_none", good[:len(good)-1], good + "0", strings.ToLower(good),
		strings.Replace(good, "lk_test_", "lk_live_", 1), strings.Replace(good, "lk_", "lks_", 1), " " + good, other,
		string(swapped), strings.Repeat("x", 1<<16)}
	before := requests()
	for _, text := range bad {
		key, err := s.Authenticate(t.Context(), text)
		remembered, known := s.RememberedKey(text)
		if key != nil || err != nil || remembered != nil || !known {
			t.Errorf("%.60q: %v, %v, remembered: %v, %v", text, key, err, remembered, known)
		}
	}
	if n := requests() - before; n != 0 {
		t.Errorf("%d malformed texts cost %d requests", len(bad), n)
	}
	for text, want := range map[string]bool{good: true, guessed("a guess of 32"): false} {
		before = requests()
		if key, err := s.Authenticate(t.Context(), text); (key != nil) != want || err != nil {
			t.Errorf("a text in the form of a key: %v, %v", key, err)
		}
		if n := requests() - before; n != 1 {
			t.Errorf("a text in the form of a key costs %d requests, want 1", n)
		}
	}
}
