package service

import (
	"context"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	// keyUseEvery is the usual pause between two times that uses are stored.
	keyUseEvery = 10 * time.Second
	// keyUseTimeout bounds one such time.
	keyUseTimeout = 5 * time.Second
	// keyUseGrain is how coarsely a node remembers uses itself, so that a busy
	// key's memory is mostly read: written all the time, it would go to and fro
	// between processors.
	keyUseGrain = time.Second
)

// knownKey is a key that is remembered.
type knownKey struct {
	key  *licensing.APIKey
	part uint8        // KeyPart of its owner
	at   atomic.Int64 // when it was used last since uses were taken, in milliseconds since 1970; 0: it was not
}

// used notes a use. Two at once may both be written; either will do.
func (k *knownKey) used(now time.Time) {
	if at := now.UnixMilli(); at-k.at.Load() >= keyUseGrain.Milliseconds() {
		k.at.Store(at)
	}
}

// keepUse keeps the use of a key that is being forgotten. The lock must be held.
func (c *keyCache) keepUse(hash [32]byte, known *knownKey) {
	if at := known.at.Swap(0); at != 0 {
		c.addUse(store.KeyUse{Hash: hash, At: time.UnixMilli(at).UTC()})
	}
}

func (c *keyCache) addUse(use store.KeyUse) {
	if use.At.After(c.uses[use.Hash]) {
		makeRoom(c.uses, func([32]byte, time.Time) {})
		c.uses[use.Hash] = use.At
	}
}

// takeUses gives the uses since it was called before, one of each key.
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

// putBackUses keeps uses for the next time.
func (c *keyCache) putBackUses(uses []store.KeyUse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, use := range uses {
		c.addUse(use)
	}
}

// KeepKeyUses stores when API keys were used, until ctx ends, and then once
// more. Where the node is killed, its last seconds are lost.
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

// storeKeyUses stores what was used. What the store fails to take is kept for
// the next time; nobody waits for it.
func (k *Keys) storeKeyUses() {
	uses := k.cache.takeUses()
	if len(uses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyUseTimeout)
	defer cancel()
	if err := k.cfg.Keys.NoteKeysUsed(ctx, uses); err != nil {
		k.cfg.Log.Debug().Err(err).Int("keys", len(uses)).Msg("when API keys were used will be stored later")
		k.cache.putBackUses(uses)
	}
}
