package service

import (
	"runtime"
	"time"

	"licet/node/store"
)

// MaxCachedKeys bounds the memory of keys, and that of texts that are none.
const MaxCachedKeys = maxCachedKeys

// Remembered tells how many keys are remembered, and how many texts that are none.
func (s *Service) Remembered() (keys, unknown int) {
	s.Keys.cache.mu.RLock()
	defer s.Keys.cache.mu.RUnlock()
	return len(s.Keys.cache.keys), len(s.Keys.cache.unknown)
}

// StoreKeyUses stores at once when API keys were used.
func (s *Service) StoreKeyUses() { s.Keys.storeKeyUses() }

// NoteKeyUse keeps a use of an API key until uses are stored.
func (s *Service) NoteKeyUse(hash [32]byte, at time.Time) {
	s.Keys.cache.putBackUses([]store.KeyUse{{Hash: hash, At: at}})
}

// KeyUses tells how many uses are kept until then.
func (s *Service) KeyUses() int {
	s.Keys.cache.mu.RLock()
	defer s.Keys.cache.mu.RUnlock()
	return len(s.Keys.cache.uses)
}

// AwaitListsWaiting returns when so many pages of listings wait to be read.
func (s *Service) AwaitListsWaiting(count int64) {
	for s.Keys.lists.waiting.Load() != count {
		runtime.Gosched()
	}
}

// UnderWay tells how many commands and reads the node has let in.
func (s *Service) UnderWay() int { return int(s.Keys.cfg.Metrics.CommandsUnderWay.Value()) }
