package fair_test

import (
	"testing"

	"licet/internal/fair"
)

// TestShares: an owner may have as much as is still free, whatever the sizes of its parts.
func TestShares(t *testing.T) {
	s := fair.NewShares[string](100)
	take := func(owner string, n int64, want bool) {
		t.Helper()
		if got := s.Take(owner, n); got != want {
			t.Errorf("%q takes %d: %v, want %v; %d are free", owner, n, got, want, s.Free())
		}
	}
	take("a", 101, false)
	take("a", 40, true)
	take("a", 30, false) // 40 are more than the 30 that would be free
	take("a", 20, true)
	take("b", 40, true)
	take("b", 1, false)
	take("", 1, false)
	if s.Free() != 0 || s.Taken() != 100 || s.Held("a") != 60 || !s.Over("a") {
		t.Errorf("%d free, %d taken, %d held, over: %v", s.Free(), s.Taken(), s.Held("a"), s.Over("a"))
	}
	s.Give("a", 60)
	take("", 30, true) // without an owner only the whole bounds
	take("", 30, true)
	take("", 1, false)
	if s.Held("a") != 0 || s.Held("") != 0 || s.Over("a") {
		t.Errorf("%d and %d held, over: %v", s.Held("a"), s.Held(""), s.Over("a"))
	}
	s.Give("", 60)
	s.Give("b", 40)
	take("c", 100, true)
}
