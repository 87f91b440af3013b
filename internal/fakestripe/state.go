package fakestripe

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// state is what all parts of a fake share: its lock, its clock, and the objects of all accounts.
type state struct {
	mu       sync.Mutex
	random   *rand.Rand
	ahead    time.Duration // of the machine's clock
	accounts map[string]*account
	objects  map[string]object
	ids      map[string][]string // by the type of the object, oldest first
	count    int                 // of objects
	later    []task              // what happens by itself later, such as a refund that fails; the earliest first
}

// task is something that happens at a time.
type task struct {
	at time.Time
	do func()
}

// Advance moves the fake's clock, and does what is due by then.
func (s *state) Advance(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += by
	s.catchUp()
}

// Now returns the time of the fake.
func (s *state) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock()
}

func (s *state) clock() time.Time { return time.Now().Add(s.ahead) }

// after does something later, by the fake's clock.
func (s *state) after(wait time.Duration, do func()) { s.at(s.clock().Add(wait), do) }

// at schedules do. Tasks of the same time run in the order in which they were scheduled.
func (s *state) at(at time.Time, do func()) {
	place, _ := slices.BinarySearchFunc(s.later, at, func(t task, at time.Time) int {
		if t.at.After(at) {
			return 1
		}
		return -1
	})
	s.later = slices.Insert(s.later, place, task{at, do})
}

// catchUp does what is due. It runs before each request.
func (s *state) catchUp() {
	for now := s.clock(); len(s.later) > 0 && !s.later[0].at.After(now); {
		due := s.later[0]
		s.later = s.later[1:]
		due.do()
	}
}

// chance reports whether something happens that happens so many times in a thousand.
func (s *state) chance(perMille int) bool { return perMille > 0 && s.random.IntN(1000) < perMille }
