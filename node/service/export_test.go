package service

import (
	"runtime"
	"time"

	"licet/licensing"
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

// StoreKeyUses stores the uses of API keys, without waiting for the next round.
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
func (s *Service) AwaitListsWaiting(count int) { s.Keys.lists.awaitWaiting(count) }

// AwaitRolloutsAtRest returns when the node runs no rollout.
func (s *Service) AwaitRolloutsAtRest() { await(0, func() int { return len(s.Rollouts.places) }) }

// AwaitRedactionsWaiting returns when count redactions wait for others.
func (s *Service) AwaitRedactionsWaiting(count int) { s.Keys.redactions.awaitWaiting(count) }

func (g *gate) awaitWaiting(count int) { await(count, g.places.Waiting) }

// AwaitEventReadsWaiting returns when count readers of pages of events wait for others.
func (s *Service) AwaitEventReadsWaiting(count int) {
	await(count, func() int { return s.Events.delivering.Waiting() + s.Events.feed.reading.Waiting() })
}

func await(count int, waiting func() int) {
	for waiting() != count {
		runtime.Gosched()
	}
}

// TakeEventReads takes all places that an owner may have to read pages of events for deliveries and after waits. It
// returns how many there are, and the function that returns the places.
func (s *Service) TakeEventReads(owner licensing.Owner) (deliveries, awaited int, giveBack func()) {
	for s.Events.delivering.TryEnter(owner) {
		deliveries++
	}
	for s.Events.feed.reading.TryEnter(owner) {
		awaited++
	}
	return deliveries, awaited, func() {
		for range deliveries {
			s.Events.delivering.Leave(owner)
		}
		for range awaited {
			s.Events.feed.reading.Leave(owner)
		}
	}
}

// InFlight returns how many commands and reads the node has admitted.
func (s *Service) InFlight() int { return int(s.Keys.cfg.Metrics.CommandsUnderWay.Value()) }

// NewRevocationList returns a list with a position and entries.
func NewRevocationList(epoch int64, entries []store.Revocation) *RevocationList {
	return &RevocationList{Epoch: epoch, Entries: entries, newest: byAge(entries)}
}

// ListLife is listLife.
func ListLife(took time.Duration) time.Duration { return listLife(took) }
