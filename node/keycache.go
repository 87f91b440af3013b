package node

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/metrics"
)

const (
	// keyTrust is how long after its last scan began the cache may answer. A key
	// that was revoked before a scan began is gone from the cache after it, so
	// this is also the longest that a revoked key works anywhere.
	keyTrust = 2 * time.Second
	// keyScanEvery is the pause between two scans that no watch asks for.
	keyScanEvery = time.Second
	// unknownFor is how long a text that no key has is taken for unknown without
	// another look. A key that somebody has tried before it was made may so be
	// refused for that long; any other works at once.
	unknownFor = time.Second
	// maxCachedKeys bounds the keys that are remembered, and apart from them the
	// texts that are none, so that guesses don't push out keys.
	maxCachedKeys = 8192
)

// keyCache remembers API keys. It answers only while it can prove that no key
// has changed: a scan asks the store for its mark of all keys, every second
// and whenever a watch says so, and forgets everything if the mark is another.
// Whatever it can't answer is read from the store.
type keyCache struct {
	store     Store
	admission *admission
	clock     func() time.Time
	every     time.Duration
	lookups   map[string]prometheus.Counter // by their result; never changed
	lastScan  prometheus.Gauge
	log       zerolog.Logger

	mu      sync.RWMutex // guards what follows
	keys    map[[32]byte]*knownKey
	unknown map[[32]byte]time.Time // when it was asked for
	uses    map[[32]byte]time.Time // of keys that were forgotten since
	mark    KeyMark
	scanned time.Time     // when the last scan that succeeded began; zero: none has
	turn    int           // how often everything was forgotten
	forgot  chan struct{} // closed when everything is forgotten, and made anew
}

func newKeyCache(cfg *Config, admission *admission) *keyCache {
	return &keyCache{
		store:     cfg.Store,
		admission: admission,
		clock:     cfg.Clock,
		every:     cfg.KeyScanEvery,
		lookups:   countLookups(cfg.Metrics),
		lastScan:  cfg.Metrics.APIKeyScan,
		log:       cfg.Log,
		keys:      make(map[[32]byte]*knownKey),
		unknown:   make(map[[32]byte]time.Time),
		uses:      make(map[[32]byte]time.Time),
		forgot:    make(chan struct{}),
	}
}

// What came of a lookup, as metrics label it.
const (
	lookupHit       = "hit"
	lookupUnknown   = "unknown"   // remembered as no key
	lookupMiss      = "miss"      // read from the store
	lookupUntrusted = "untrusted" // read from the store, since no scan has succeeded lately
)

func countLookups(m *metrics.Metrics) map[string]prometheus.Counter {
	counters := make(map[string]prometheus.Counter)
	for _, result := range []string{lookupHit, lookupUnknown, lookupMiss, lookupUntrusted} {
		counters[result] = m.APIKeyLookups.WithLabelValues(result)
	}
	return counters
}

// find answers the key of a hash, or nil where there is none. The key is shared
// with others and must not be changed.
func (c *keyCache) find(ctx context.Context, hash [32]byte) (known *knownKey, err error) {
	known, found, turn := c.recall(hash)
	if found {
		return known, nil
	}
	if err := c.admission.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { c.admission.leave(err) }()
	asked := c.clock()
	key, err := c.store.APIKey(ctx, hash)
	if err != nil {
		return nil, err
	}
	if key != nil {
		known = &knownKey{key: key}
		if now := asked.UTC(); key.Usable(now) {
			known.used(now) // before others may forget it again
		}
	}
	c.remember(hash, known, asked, turn)
	return known, nil
}

// recall looks into the memory, and gives the turn that it was looked into in.
func (c *keyCache) recall(hash [32]byte) (key *knownKey, found bool, turn int) {
	now := c.clock()
	c.mu.RLock()
	trusted := c.trustedAt(now)
	key, known := c.keys[hash]
	asked, unknown := c.unknown[hash]
	turn = c.turn
	c.mu.RUnlock()

	result := lookupMiss
	switch {
	case !trusted:
		result = lookupUntrusted
	case known:
		result, found = lookupHit, true
	case unknown && elapsed(asked, now) < unknownFor:
		result, found = lookupUnknown, true
	}
	c.lookups[result].Inc()
	return key, found, turn
}

// trustedAt reports whether a scan has succeeded lately. The lock must be held.
func (c *keyCache) trustedAt(now time.Time) bool {
	return !c.scanned.IsZero() && elapsed(c.scanned, now) < keyTrust
}

// trusted reports whether the store has lately answered a scan. It does not ask the store.
func (c *keyCache) trusted() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.trustedAt(c.clock())
}

// remember keeps what the store has answered, unless everything was forgotten
// since it was asked: then the answer may be older than the mark.
func (c *keyCache) remember(hash [32]byte, key *knownKey, asked time.Time, turn int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case turn != c.turn && key != nil:
		c.keepUse(hash, key)
	case turn != c.turn:
	case key == nil:
		makeRoom(c.unknown, func([32]byte, time.Time) {})
		c.unknown[hash] = asked
	default:
		if before := c.keys[hash]; before != nil {
			c.keepUse(hash, before)
		}
		makeRoom(c.keys, c.keepUse)
		c.keys[hash] = key
		delete(c.unknown, hash)
	}
}

// makeRoom drops any one entry of a map that is full.
func makeRoom[V any](m map[[32]byte]V, dropped func([32]byte, V)) {
	if len(m) < maxCachedKeys {
		return
	}
	for hash, value := range m {
		dropped(hash, value)
		delete(m, hash)
		return
	}
}

// elapsed is the time between two moments, by the monotonic clock or by the
// wall clock, whichever says more: the first stands still while the machine
// sleeps, the second can be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)).Abs())
}

// scan asks for the mark and forgets everything if it is another one.
func (c *keyCache) scan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keyTrust/2)
	defer cancel()
	began := c.clock()
	mark, err := c.store.APIKeyMark(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if mark != c.mark || c.scanned.IsZero() {
		for hash, known := range c.keys {
			c.keepUse(hash, known)
		}
		clear(c.keys)
		clear(c.unknown)
		c.turn++
		close(c.forgot)
		c.forgot = make(chan struct{})
	}
	c.mark, c.scanned = mark, began
	c.lastScan.Set(float64(began.UnixMilli()) / 1000)
	return nil
}

// forgotten returns a channel that is closed when the cache next forgets its keys, because a key
// may have changed.
func (c *keyCache) forgotten() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.forgot
}

// distrust makes every lookup read from the store until a scan has succeeded.
func (c *keyCache) distrust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scanned = time.Time{}
}

// follow scans until ctx ends: at once, then every so often and when woken.
func (c *keyCache) follow(ctx context.Context, woken <-chan struct{}) {
	defer c.distrust()
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	failing := false
	for {
		err := c.scan(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			c.log.Warn().Err(err).Msg("can't tell whether API keys have changed: each is read from the store until this ends")
		case err == nil && failing:
			c.log.Info().Msg("API keys are remembered again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-woken:
		}
	}
}

// FollowKeys lets the node remember API keys until ctx ends. Before and after
// that, each key is read from the store.
func (n *Node) FollowKeys(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	woken := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel() // a panic must not wait for the watch
	n.guard.KeepIn(ctx, &watching, "watch of API keys", func() {
		n.keys.store.WatchAPIKeys(ctx, func() {
			select {
			case woken <- struct{}{}:
			default: // a scan is due already, and begins after this
			}
		})
	})
	n.keys.follow(ctx, woken)
}
