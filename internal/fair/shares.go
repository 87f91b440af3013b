package fair

import "sync"

// Shares divides an amount among owners: an owner may have as much as is still free. So one owner gets
// half of the amount, two get a third each, and an owner that has nothing finds something left. The
// zero owner has no share: only the whole amount bounds it. Shares is safe for concurrent use.
type Shares[K comparable] struct {
	most int64

	mu    sync.Mutex
	taken int64
	held  map[K]int64 // of the owners that have something, except the zero owner
}

// NewShares returns shares of an amount.
func NewShares[K comparable](most int64) *Shares[K] {
	return &Shares[K]{most: most, held: make(map[K]int64)}
}

// Take adds n to what an owner has. It reports false, and takes nothing, if less than n is free, or if
// the owner already has more than would be free afterward.
func (s *Shares[K]) Take(owner K, n int64) bool {
	var none K
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.most - s.taken - n
	if free < 0 || owner != none && s.held[owner] > free {
		return false
	}
	s.taken += n
	if owner != none {
		s.held[owner] += n
	}
	return true
}

// Give returns n of what an owner has.
func (s *Shares[K]) Give(owner K, n int64) {
	var none K
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if owner == none {
		return
	}
	if s.held[owner] -= n; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}

// Over reports whether an owner has more than is free, as an owner may after others have taken more.
func (s *Shares[K]) Over(owner K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[owner] > s.most-s.taken
}

// Held returns how much an owner has; 0 for the zero owner.
func (s *Shares[K]) Held(owner K) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[owner]
}

// Free returns how much is free.
func (s *Shares[K]) Free() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most - s.taken
}

// Taken returns how much all owners have.
func (s *Shares[K]) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}
