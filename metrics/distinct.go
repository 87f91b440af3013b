package metrics

import (
	"hash/maphash"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Distinct is a counter of things that have names: it counts each thing once, however often it is met. It is safe for
// concurrent use.
type Distinct struct {
	prometheus.Counter
	seed maphash.Seed

	mu  sync.Mutex
	met map[uint64]struct{} // the hashes of names
}

// maxDistinct bounds the memory of a Distinct to about 1 MB. A Distinct that has met so many things forgets all of
// them, so it may count some of them twice.
const maxDistinct = 1 << 15

func newDistinct(counter prometheus.Counter) *Distinct {
	return &Distinct{Counter: counter, seed: maphash.MakeSeed(), met: make(map[uint64]struct{})}
}

// Meet counts a thing, unless it was counted before. It reports whether it has counted the thing.
func (d *Distinct) Meet(name string) (first bool) {
	hash := maphash.String(d.seed, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.met[hash]; known {
		return false
	}
	if len(d.met) >= maxDistinct {
		clear(d.met)
	}
	d.met[hash] = struct{}{}
	d.Inc()
	return true
}
