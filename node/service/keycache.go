package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/store"
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
	// keyScanPause is the least time from one scan to the next that a watch asks for:
	// keys that are changed all the time must not make scans without a pause.
	keyScanPause = 50 * time.Millisecond
	// maxCachedKeys bounds the keys that are remembered, and apart from them the
	// texts that are none, so that guesses don't push out keys.
	maxCachedKeys = 8192
	// maxVictims bounds the keys that are looked at to find one to forget.
	maxVictims = 64
)

// keyCache remembers API keys. The cache returns a key only while it can prove that
// the key has not changed: a scan reads the store's marks of all keys, every second
// and whenever a watch wakes it, and forgets the keys of each part whose mark is
// another. All other keys are read from the store.
//
// One owner's changes make a node forget the keys of the owner's part only, so other
// owners' keys stay remembered however often that happens. An owner has as many keys
// in the cache as are still free there, so one owner's keys don't push out others'.
type keyCache struct {
	store    store.Keys
	engine   *node.Node
	clock    func() time.Time
	every    time.Duration
	lookups  map[string]prometheus.Counter // by their result; never changed
	lastScan prometheus.Gauge
	log      zerolog.Logger

	mu      sync.RWMutex // guards what follows
	keys    map[[32]byte]*knownKey
	owned   map[licensing.Owner]int // how many of keys an owner has
	unknown map[[32]byte]time.Time  // when it was asked for
	uses    map[[32]byte]time.Time  // of keys that were forgotten since
	marks   store.KeyMarks
	scanned time.Time // when the last scan that succeeded began; zero: none has
	turn    int       // counts the scans that succeeded
	// forgot says of each part in which turn its keys were forgotten last.
	forgot [store.KeyParts]int
	// forgetting is closed when the keys of any part are forgotten, and made anew.
	forgetting chan struct{}
}

func newKeyCache(cfg *Config, engine *node.Node) *keyCache {
	return &keyCache{
		store:      cfg.Keys,
		engine:     engine,
		clock:      cfg.Clock,
		every:      cfg.KeyScanEvery,
		lookups:    countLookups(cfg.Metrics),
		lastScan:   cfg.Metrics.APIKeyScan,
		log:        cfg.Log,
		keys:       make(map[[32]byte]*knownKey),
		owned:      make(map[licensing.Owner]int),
		unknown:    make(map[[32]byte]time.Time),
		uses:       make(map[[32]byte]time.Time),
		forgetting: make(chan struct{}),
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
	place, err := c.engine.EnterUnknown(ctx, node.UnknownAPIKey)
	if err != nil {
		return nil, err
	}
	defer func() { place.Leave(err) }()
	asked := c.clock()
	key, err := c.store.APIKey(ctx, hash)
	if err != nil {
		return nil, err
	}
	if key != nil {
		known = &knownKey{key: key, part: store.KeyPart(key.Owner)}
		if now := asked.UTC(); key.Usable(now) {
			known.used(now) // before others may forget it again
		}
	}
	c.remember(hash, known, asked, turn)
	return known, nil
}

// recall looks a key up in the memory. It also returns the turn of the look-up.
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

// remember keeps what the store has answered, unless the key's part was forgotten
// since the store was asked, in an earlier turn: then the answer may be older than
// the mark. That no key has a text is remembered in any case, since that lasts for
// unknownFor only.
func (c *keyCache) remember(hash [32]byte, key *knownKey, asked time.Time, turn int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case key == nil:
		makeRoom(c.unknown, func([32]byte, time.Time) {})
		c.unknown[hash] = asked
	case c.forgot[key.part] > turn:
		c.keepUse(hash, key)
	default:
		c.forget(hash)
		c.makeRoomFor(key.key.Owner)
		c.keys[hash] = key
		c.owned[key.key.Owner]++
		delete(c.unknown, hash)
	}
}

// makeRoomFor forgets a key if an owner has as many keys as are free, or more: one
// of the owner's own. Where the owner has so few that none is found soon, the cache
// is full of many owners' keys, and any of them will do. The lock must be held.
func (c *keyCache) makeRoomFor(owner licensing.Owner) {
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
	c.forget(victim)
}

// forget drops a key from the memory, if it is there. The lock must be held.
func (c *keyCache) forget(hash [32]byte) {
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

// scan reads the marks, and forgets the keys of each part whose mark is another.
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
	c.turn++
	changed := marks.Changed(&c.marks)
	for part := range changed {
		if changed[part] {
			c.forgot[part] = c.turn
		}
	}
	if slices.Contains(changed[:], true) {
		close(c.forgetting)
		c.forgetting = make(chan struct{})
		for hash, known := range c.keys {
			if changed[known.part] {
				c.forget(hash)
			}
		}
	}
	c.marks, c.scanned = marks, began
	c.lastScan.Set(float64(began.UnixMilli()) / 1000)
	return nil
}

// forgotten returns a channel that is closed when the cache next forgets the keys of any part,
// because a key may have changed.
func (c *keyCache) forgotten() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.forgetting
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
		began := time.Now()
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
			wait(ctx, keyScanPause-time.Since(began))
		}
	}
}

// wait returns after a while, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Authenticate finds the API key of a text. It answers nil where the text is
// no key, or one that is expired or revoked. The key is shared with others and
// must not be changed.
func (k *Keys) Authenticate(ctx context.Context, text string) (*licensing.APIKey, error) {
	known, err := k.cache.find(ctx, licensing.HashAPIKey(text))
	if err != nil || known == nil {
		return nil, err
	}
	now := k.engine.Now()
	if !known.key.Usable(now) {
		return nil, nil
	}
	known.used(now)
	return known.key, nil
}

// FollowKeys lets the node remember API keys until ctx ends. Before and after
// that, each key is read from the store.
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
			default: // a scan is due already, and begins after this
			}
		})
	})
	k.cache.follow(ctx, woken)
}
