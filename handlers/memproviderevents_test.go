package handlers_test

import (
	"context"

	"licet/licensing"
	"licet/node/store"
)

// memProviderEvents is how far the events of an account at a payment provider are read.
type memProviderEvents struct {
	read     store.ProviderEvents
	revision int64
}

func (s *memStore) ReadProviderEvents(
	_ context.Context, owner licensing.Owner,
) (store.ProviderEvents, int64, error) {
	defer s.read()()
	stored := s.providerEvents[owner]
	return stored.read, stored.revision, s.fail
}

func (s *memStore) PutProviderEvents(
	_ context.Context, owner licensing.Owner, read store.ProviderEvents, revision int64,
) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil || s.providerEvents[owner].revision != revision {
		return 0, s.fail
	}
	s.revision++
	s.providerEvents[owner] = memProviderEvents{read, s.revision}
	return s.revision, nil
}
