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

// customerPlan is what one customer will do: a few operations, one after the other. All customers act at the same time.
type customerPlan struct {
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
	customers   []customerPlan
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
		c := customerPlan{n: len(p.customers), ordered: random.IntN(2) == 0}
		if c.ordered {
			c.fate = []fate{left, canceled, paid, paid, paid, paid, paid, paid}[random.IntN(8)]
			if c.fate == paid {
				c.devices = min(1+random.IntN(maxDevices), room)
				c.removals = random.IntN(c.devices + 1)
			}
		} else {
			c.devices, c.shared = 1, random.IntN(sharedLicenses)
			c.removals = random.IntN(2)
			if !used[c.shared] {
				used[c.shared] = true
				p.events++ // license.activated
			}
		}
		p.activations += c.devices
		p.operations += c.operations()
		p.events += c.events()
		p.customers = append(p.customers, c)
	}
	p.events += sharedLicenses // license.issued
	return p
}

// operations returns how many orders, activations and removals the customer makes.
func (c *customerPlan) operations() int {
	n := c.devices + c.removals
	if c.ordered {
		n++
	}
	return n
}

// events returns how many events the customer alone causes.
func (c *customerPlan) events() int {
	n := c.devices + c.removals
	if !c.ordered {
		return n
	}
	n++ // order.created
	switch c.fate {
	case canceled:
		n++
	case paid:
		n += 3 // order.paid, license.issued, license.activated
	}
	return n
}

func (c *customerPlan) String() string { return fmt.Sprintf("customer %d", c.n) }

// device names a device of the customer.
func (c *customerPlan) device(i int) string { return fmt.Sprintf("machine %d of customer %d", i, c.n) }
