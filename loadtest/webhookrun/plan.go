package main

import (
	"fmt"
	"math/rand/v2"
)

// fate is what happens to an order.
type fate int

const (
	left fate = iota // unpaid
	canceled
	paid
)

// story is a few operations that follow each other. Customers play stories at the same
// time.
type story struct {
	n int
	// Of an order: its fate, and if it is paid, how many devices its license is activated
	// on, and how many of them are removed again.
	ordered  bool
	fate     fate
	devices  int
	removals int
	// Without an order: which shared license gets a device, which is removed again if
	// removals is 1.
	shared int
}

const (
	// sharedLicenses is how many there are without a limit that all customers use
	// at the same time, so that many commands are folded into one change.
	sharedLicenses = 6
	maxDevices     = 4 // of an order's license
)

// plan is everything that the customers will do.
type plan struct {
	stories     []story
	activations int
	operations  int // orders, activations and removals
	events      int // that the operations and the grants of the shared licenses cause
}

// newPlan plans so many activations, along with orders and removals. The same seed always makes the same plan.
func newPlan(seed uint64, activations int) *plan {
	random := rand.New(rand.NewPCG(seed, 1))
	p := &plan{}
	used := map[int]bool{}
	for p.activations < activations {
		room := activations - p.activations
		s := story{n: len(p.stories), ordered: random.IntN(2) == 0}
		if s.ordered {
			s.fate = []fate{left, canceled, paid, paid, paid, paid, paid, paid}[random.IntN(8)]
			if s.fate == paid {
				s.devices = min(1+random.IntN(maxDevices), room)
				s.removals = random.IntN(s.devices + 1)
			}
		} else {
			s.devices, s.shared = 1, random.IntN(sharedLicenses)
			s.removals = random.IntN(2)
			if !used[s.shared] {
				used[s.shared] = true
				p.events++ // license.activated
			}
		}
		p.activations += s.devices
		p.operations += s.operations()
		p.events += s.events()
		p.stories = append(p.stories, s)
	}
	p.events += sharedLicenses // license.issued
	return p
}

// operations returns how many orders, activations and removals the story has.
func (s *story) operations() int {
	n := s.devices + s.removals
	if s.ordered {
		n++
	}
	return n
}

// events returns how many events the story alone causes.
func (s *story) events() int {
	n := s.devices + s.removals
	if !s.ordered {
		return n
	}
	n++ // order.created
	switch s.fate {
	case canceled:
		n++
	case paid:
		n += 3 // order.paid, license.issued, license.activated
	}
	return n
}

func (s *story) String() string { return fmt.Sprintf("story %d", s.n) }

// device names a device of a story.
func (s *story) device(i int) string { return fmt.Sprintf("machine %d of story %d", i, s.n) }
