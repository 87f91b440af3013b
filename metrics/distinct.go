package metrics

import (
	"hash/maphash"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// DistinctCounter is a counter that counts each name once. It is safe for concurrent use.
type DistinctCounter struct {
	prometheus.Counter
	seed maphash.Seed

	mu      sync.Mutex
	counted map[uint64]struct{} // hashes of names; guarded by mu
}

// maxDistinct bounds the memory of a DistinctCounter to about 1 MB. After so many names, a DistinctCounter
// forgets all of them, so it may count a name twice.
const maxDistinct = 1 << 15

func newDistinctCounter(counter prometheus.Counter) *DistinctCounter {
	return &DistinctCounter{Counter: counter, seed: maphash.MakeSeed(), counted: make(map[uint64]struct{})}
}

// CountOnce counts a name unless it has counted the name before. It reports whether it has counted the
// name now.
func (d *DistinctCounter) CountOnce(name string) (first bool) {
	hash := maphash.String(d.seed, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.counted[hash]; known {
		return false
	}
	if len(d.counted) >= maxDistinct {
		clear(d.counted)
	}
	d.counted[hash] = struct{}{}
	d.Inc()
	return true
}
