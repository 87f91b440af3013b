package service

import (
	"runtime"
	"time"

	"licet/node/store"
)

// MaxCachedKeys bounds the cached keys, and separately the cached texts that are no keys.
const MaxCachedKeys = maxCachedKeys

// CachedKeys returns how many keys are cached, and how many texts that are no keys.
func (s *Service) CachedKeys() (keys, unknown int) {
	s.Keys.cache.mu.RLock()
	defer s.Keys.cache.mu.RUnlock()
	return len(s.Keys.cache.keys), len(s.Keys.cache.unknown)
}

// StoreKeyUses stores the uses of API keys at once.
func (s *Service) StoreKeyUses() { s.Keys.storeKeyUses() }

// NoteKeyUse keeps a use of an API key until the next store.
func (s *Service) NoteKeyUse(hash [32]byte, at time.Time) {
	s.Keys.cache.putBackUses([]store.KeyUse{{Hash: hash, At: at}})
}

// KeyUses returns how many uses are kept until the next store.
func (s *Service) KeyUses() int {
	s.Keys.cache.mu.RLock()
	defer s.Keys.cache.mu.RUnlock()
	return len(s.Keys.cache.uses)
}

// AwaitListsWaiting returns when count pages of lists wait to be read.
func (s *Service) AwaitListsWaiting(count int64) {
	for s.Keys.lists.waiting.Load() != count {
		runtime.Gosched()
	}
}

// InFlight returns how many commands and reads the node has admitted.
func (s *Service) InFlight() int { return int(s.Keys.cfg.Metrics.CommandsUnderWay.Value()) }
