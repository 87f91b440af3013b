package service

import (
	"context"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	// keyUseEvery is the default pause between two stores of uses.
	keyUseEvery = 10 * time.Second
	// keyUseTimeout bounds one store of uses.
	keyUseTimeout = 5 * time.Second
	// keyUseGrain is the resolution of the uses in memory. A busy key's use is then mostly read: frequent writes
	// would move its cache line between processors.
	keyUseGrain = time.Second
)

// knownKey is a cached key.
type knownKey struct {
	key  *licensing.APIKey
	part uint8        // store.KeyPart of its owner
	at   atomic.Int64 // the last use since uses were taken, in milliseconds since 1970; 0: none
}

// used notes a use. Of two uses at the same time, either may win.
func (k *knownKey) used(now time.Time) {
	if at := now.UnixMilli(); at-k.at.Load() >= keyUseGrain.Milliseconds() {
		k.at.Store(at)
	}
}

// keepUse keeps the last use of a key that is being dropped. The caller holds mu.
func (c *keyCache) keepUse(hash [32]byte, known *knownKey) {
	if at := known.at.Swap(0); at != 0 {
		c.addUse(store.KeyUse{Hash: hash, At: time.UnixMilli(at).UTC()})
	}
}

// addUse keeps a use. The caller holds mu.
func (c *keyCache) addUse(use store.KeyUse) {
	if use.At.After(c.uses[use.Hash]) {
		evictOne(c.uses)
		c.uses[use.Hash] = use.At
	}
}

// takeUses returns the uses since the last call, the last one of each key.
func (c *keyCache) takeUses() []store.KeyUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, known := range c.keys {
		c.keepUse(hash, known)
	}
	uses := make([]store.KeyUse, 0, len(c.uses))
	for hash, at := range c.uses {
		uses = append(uses, store.KeyUse{Hash: hash, At: at})
	}
	clear(c.uses)
	return uses
}

// putBackUses returns uses to the cache, for the next store.
func (c *keyCache) putBackUses(uses []store.KeyUse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, use := range uses {
		c.addUse(use)
	}
}

// KeepKeyUses stores the last uses of API keys at intervals until ctx ends, and then once more. If the
// node is killed, the uses of its last interval are lost.
func (k *Keys) KeepKeyUses(ctx context.Context) {
	ticker := time.NewTicker(k.cfg.KeyUseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			k.storeKeyUses()
		case <-ctx.Done():
			k.storeKeyUses()
			return
		}
	}
}

// storeKeyUses stores the uses. If the store fails or is almost full, the uses are kept for the next interval.
func (k *Keys) storeKeyUses() {
	if k.engine.Space() != store.SpaceFree {
		return
	}
	uses := k.cache.takeUses()
	if len(uses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyUseTimeout)
	defer cancel()
	if err := k.cfg.Keys.NoteKeysUsed(ctx, uses); err != nil {
		k.cfg.Log.Debug().Err(err).Int("keys", len(uses)).
			Msg("can't store the last uses of API keys; the node tries again")
		k.cache.putBackUses(uses)
	}
}
