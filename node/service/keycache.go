package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/store"
)

const (
	// keyTrust is how long the cache may answer after the start of the last successful scan. A scan drops all
	// keys that were revoked before it began, so keyTrust is also the longest time that a revoked key works.
	keyTrust = 2 * time.Second
	// keyScanEvery is the pause between two scans if no watch wakes the cache.
	keyScanEvery = time.Second
	// unknownFor is how long the cache answers that a text is no key without another read. So a key that a client
	// tried before it was created may be refused for that long. Any other new key works at once.
	unknownFor = time.Second
	// keyScanPause is the least time between two scans, so that frequent changes of keys don't cause scans without
	// a pause.
	keyScanPause = 50 * time.Millisecond
	// maxCachedKeys bounds the cached keys, and separately the cached texts that are no keys, so that guesses don't
	// evict keys.
	maxCachedKeys = 8192
	// maxVictims bounds the search for a key to evict.
	maxVictims = 64
)

// keyCache caches API keys. The cache returns a key only while it can prove that the key has not
// changed: a scan reads the store's marks of all keys, every second and whenever a watch wakes the
// cache, and drops the keys of each part whose mark has changed. All other keys are read from the
// store.
//
// A change of one owner's keys makes a node drop only the keys in the owner's part, so other owners'
// keys stay cached however often the owner changes keys. An owner may have as many keys in the cache
// as are still free, so one owner's keys don't evict those of others.
type keyCache struct {
	store    store.Keys
	engine   *node.Node
	clock    func() time.Time
	every    time.Duration
	lookups  map[string]prometheus.Counter // by result; never changed
	lastScan prometheus.Gauge
	log      zerolog.Logger

	mu      sync.RWMutex // guards what follows
	keys    map[[32]byte]*knownKey
	owned   map[licensing.Owner]int // the number of each owner's keys
	unknown map[[32]byte]time.Time  // texts that are no keys, with the time of the read
	uses    map[[32]byte]time.Time  // the last uses of keys that were dropped since uses were stored
	marks   store.KeyMarks
	scanned time.Time // the start of the last successful scan; zero: there was none, or distrust was called
	scans   int       // the number of successful scans
	// droppedIn has for each part the number of the last scan that dropped the part's keys.
	droppedIn [store.KeyParts]int
	// dropping is closed and replaced when a scan drops the keys of any part.
	dropping chan struct{}
}

func newKeyCache(cfg *Config, engine *node.Node) *keyCache {
	return &keyCache{
		store:    cfg.Keys,
		engine:   engine,
		clock:    cfg.Clock,
		every:    cfg.KeyScanEvery,
		lookups:  countLookups(cfg.Metrics),
		lastScan: cfg.Metrics.APIKeyScan,
		log:      cfg.Log,
		keys:     make(map[[32]byte]*knownKey),
		owned:    make(map[licensing.Owner]int),
		unknown:  make(map[[32]byte]time.Time),
		uses:     make(map[[32]byte]time.Time),
		dropping: make(chan struct{}),
	}
}

// The results of a lookup, as labels of the metric.
const (
	lookupHit       = "hit"
	lookupUnknown   = "unknown"   // by its check characters or by the cache, the text is no key
	lookupMiss      = "miss"      // read from the store
	lookupUntrusted = "untrusted" // read from the store, since no scan has succeeded for keyTrust
)

func countLookups(m *metrics.Metrics) map[string]prometheus.Counter {
	counters := make(map[string]prometheus.Counter)
	for _, result := range []string{lookupHit, lookupUnknown, lookupMiss, lookupUntrusted} {
		counters[result] = m.APIKeyLookups.WithLabelValues(result)
	}
	return counters
}

// find returns the key with a hash; nil if there is none. The key is shared: callers must not change
// it.
func (c *keyCache) find(ctx context.Context, hash [32]byte) (*knownKey, error) {
	known, found, scan := c.lookup(hash)
	if found {
		return known, nil
	}
	if c.trusted() {
		c.lookups[lookupMiss].Inc()
	} else {
		c.lookups[lookupUntrusted].Inc()
	}
	return admittedFor(ctx, c.engine, node.UnknownAPIKey, func(*node.Place) (*knownKey, error) {
		return c.read(ctx, hash, scan)
	})
}

// read reads the key with a hash from the store, and caches what it has read. scan is the last successful scan before.
func (c *keyCache) read(ctx context.Context, hash [32]byte, scan int) (known *knownKey, err error) {
	readAt := c.clock()
	key, err := c.store.APIKey(ctx, hash)
	if err != nil {
		return nil, err
	}
	if key != nil {
		known = &knownKey{key: key, part: store.KeyPart(key.Owner)}
		if now := readAt.UTC(); key.Usable(now) {
			known.used(now) // before another goroutine may drop the key
		}
	}
	c.insert(hash, known, readAt, scan)
	return known, nil
}

// lookup looks a key up in the cache. found is false if only the store has the answer. lookup also returns the number
// of the last successful scan.
func (c *keyCache) lookup(hash [32]byte) (key *knownKey, found bool, scan int) {
	now := c.clock()
	c.mu.RLock()
	trusted := c.trustedAt(now)
	key, known := c.keys[hash]
	readAt, unknown := c.unknown[hash]
	scan = c.scans
	c.mu.RUnlock()

	switch {
	case !trusted:
		return nil, false, scan
	case known:
		c.lookups[lookupHit].Inc()
		return key, true, scan
	case unknown && elapsed(readAt, now) < unknownFor:
		c.lookups[lookupUnknown].Inc()
		return nil, true, scan
	}
	return nil, false, scan
}

// trustedAt reports whether a scan has succeeded within keyTrust. The caller holds mu.
func (c *keyCache) trustedAt(now time.Time) bool {
	return !c.scanned.IsZero() && elapsed(c.scanned, now) < keyTrust
}

// trusted reports whether a scan has succeeded within keyTrust. It makes no request.
func (c *keyCache) trusted() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.trustedAt(c.clock())
}

// insert caches the result of a read, which began at readAt, after the scan with the given number. If
// a later scan has dropped the keys of the key's part, the result may be older than the part's mark,
// and insert discards it. insert always caches that a text is no key, since that entry lasts for
// unknownFor only.
func (c *keyCache) insert(hash [32]byte, key *knownKey, readAt time.Time, scan int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case key == nil:
		evictOne(c.unknown)
		c.unknown[hash] = readAt
	case c.droppedIn[key.part] > scan:
		c.keepUse(hash, key)
	default:
		c.drop(hash)
		c.evictFor(key.key.Owner)
		c.keys[hash] = key
		c.owned[key.key.Owner]++
		delete(c.unknown, hash)
	}
}

// evictFor drops a key if the owner has at least as many cached keys as are free. It drops one of the
// owner's own keys. If the owner has so few that maxVictims tries find none, the cache is full of many
// owners' keys, and evictFor drops any key. The caller holds mu.
func (c *keyCache) evictFor(owner licensing.Owner) {
	if c.owned[owner] < maxCachedKeys-len(c.keys) {
		return
	}
	var victim [32]byte
	looked := 0
	for hash, known := range c.keys { // in any order
		victim = hash
		if looked++; known.key.Owner == owner || looked == maxVictims {
			break
		}
	}
	c.drop(victim)
}

// drop removes a key from the cache. If the key is not cached, drop is a no-op. The caller holds mu.
func (c *keyCache) drop(hash [32]byte) {
	known := c.keys[hash]
	if known == nil {
		return
	}
	c.keepUse(hash, known)
	delete(c.keys, hash)
	if c.owned[known.key.Owner]--; c.owned[known.key.Owner] == 0 {
		delete(c.owned, known.key.Owner)
	}
}

// evictOne removes any one entry from a full map.
func evictOne(m map[[32]byte]time.Time) {
	if len(m) < maxCachedKeys {
		return
	}
	for hash := range m {
		delete(m, hash)
		return
	}
}

// elapsed returns the time between two moments by the monotonic clock or by the wall clock, whichever
// is greater: the monotonic clock stops while the machine sleeps, and the wall clock can be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)).Abs())
}

// scan reads the marks and drops the keys of each part whose mark has changed.
func (c *keyCache) scan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keyTrust/2)
	defer cancel()
	began := c.clock()
	marks, err := c.store.APIKeyMarks(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scans++
	changed := marks.Changed(&c.marks)
	for part := range changed {
		if changed[part] {
			c.droppedIn[part] = c.scans
		}
	}
	if slices.Contains(changed[:], true) {
		close(c.dropping)
		c.dropping = make(chan struct{})
		for hash, known := range c.keys {
			if changed[known.part] {
				c.drop(hash)
			}
		}
	}
	c.marks, c.scanned = marks, began
	c.lastScan.Set(float64(began.UnixMilli()) / 1000)
	return nil
}

// dropped returns a channel that is closed when a scan next drops the keys of any part, because a key
// may have changed.
func (c *keyCache) dropped() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.dropping
}

// distrust makes every lookup read from the store until the next successful scan.
func (c *keyCache) distrust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scanned = time.Time{}
}

// follow scans until ctx ends: at once, then at intervals and whenever woken receives a value.
func (c *keyCache) follow(ctx context.Context, woken <-chan struct{}) {
	defer c.distrust()
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	failing := false
	for {
		began := time.Now()
		err := c.scan(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			c.log.Warn().Err(err).
				Msg("can't scan the API keys for changes: the node reads every key from the store until a scan " +
					"succeeds")
		case err == nil && failing:
			c.log.Info().Msg("scans of the API keys succeed again: the node caches keys")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-woken:
			backoff.Sleep(ctx, keyScanPause-time.Since(began))
		}
	}
}

// Authenticate returns the API key with a text; nil if there is none, or if the key is expired or
// revoked. The key is shared: callers must not change it.
func (k *Keys) Authenticate(ctx context.Context, text string) (*licensing.APIKey, error) {
	if !k.cfg.LicenseKeys.ValidAPIKey(text) {
		return nil, nil
	}
	known, err := k.cache.find(ctx, keyring.HashAPIKey(text))
	if err != nil {
		return nil, err
	}
	return k.use(known), nil
}

// RememberedKey returns what Authenticate returns, if the node has the answer without the store; else remembered is
// false. The cache comes first, since computing check characters takes longer.
func (k *Keys) RememberedKey(text string) (key *licensing.APIKey, remembered bool) {
	known, remembered, _ := k.cache.lookup(keyring.HashAPIKey(text))
	if !remembered && !k.cfg.LicenseKeys.ValidAPIKey(text) {
		k.cache.lookups[lookupUnknown].Inc()
		return nil, true
	}
	return k.use(known), remembered
}

// use notes the use of a key and returns the key; nil if the key is not usable.
func (k *Keys) use(known *knownKey) *licensing.APIKey {
	if known == nil {
		return nil
	}
	now := k.engine.Now()
	if !known.key.Usable(now) {
		return nil
	}
	known.used(now)
	return known.key
}

// FollowKeys lets the node cache API keys until ctx ends. Before and after that, the node reads every
// key from the store.
func (k *Keys) FollowKeys(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	woken := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel() // a panic must not wait for the watch
	k.guard.KeepIn(ctx, &watching, "watch of API keys", func() {
		k.cache.store.WatchAPIKeys(ctx, func() {
			select {
			case woken <- struct{}{}:
			default: // a scan is due already
			}
		})
	})
	k.cache.follow(ctx, woken)
}
