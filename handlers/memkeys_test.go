package handlers_test

import (
	"context"
	"slices"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

var _ store.Keys = (*memStore)(nil)

// CheckRing accepts every ring.
func (*memStore) CheckRing(context.Context, keyring.MasterRing) error { return nil }

func (*memStore) UseMaster(context.Context, keyring.MasterKey) error { return nil }

func (s *memStore) CreateAPIKey(_ context.Context, key licensing.APIKey, claims ...store.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	if !s.writeClaims(claims) {
		return store.ErrClaimTaken
	}
	s.keys[key.Hash] = key
	s.keyChanges++
	return s.commit
}

// writeClaims writes claims unless a claim has changed since the read.
func (s *memStore) writeClaims(claims []store.Write) bool {
	if slices.ContainsFunc(claims, s.stale) {
		return false
	}
	s.revision++
	for _, w := range claims {
		s.write(w)
	}
	return true
}

func (s *memStore) FindAPIKey(_ context.Context, owner licensing.Owner, id string) (*licensing.APIKey, error) {
	defer s.read()()
	if s.fail != nil {
		return nil, s.fail
	}
	return s.findKey(owner, id), nil
}

func (s *memStore) findKey(owner licensing.Owner, id string) *licensing.APIKey {
	for _, key := range s.keys {
		if key.Owner == owner && key.ID == id {
			key.LastUsedAt = s.keyUses[key.Hash]
			return &key
		}
	}
	return nil
}

func (s *memStore) ChangeAPIKey(
	_ context.Context, owner licensing.Owner, id string, change func(*licensing.APIKey) error, claims ...store.Write,
) (*licensing.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	key := s.findKey(owner, id)
	if key == nil {
		return nil, licensing.ErrAPIKeyNotFound
	}
	if err := change(key); err != nil {
		return nil, err
	}
	if !s.writeClaims(claims) {
		return nil, store.ErrClaimTaken
	}
	s.keys[key.Hash] = *key
	s.keyChanges++
	return key, s.commit
}

func (s *memStore) NoteKeysUsed(_ context.Context, uses []store.KeyUse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, use := range uses {
		if use.At.Sub(s.keyUses[use.Hash]) >= store.KeyUseStep {
			s.keyUses[use.Hash] = use.At
		}
	}
	return nil
}
