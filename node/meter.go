package node

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"licet/licensing"
)

// meterCells is how many counters a row of a meter has. Two keys use the same counters of both rows with a chance of 1
// in meterCells², or 4 billion.
const meterCells = 1 << 16

// meter is a token bucket for each of any number of keys, in 1 MiB. A hash with a random seed gives each key one
// counter of each row. A counter contains the time at which its bucket is full again, and the fuller of a key's two
// buckets counts. So a key can be refused too early only if others have emptied both its buckets, and a key can't get a
// new bucket by making the meter forget the old one. A meter is safe for concurrent use and takes no locks. Nil limits
// nothing.
type meter struct {
	limit   licensing.Limit // without Next
	refusal licensing.Error // without Limit
	seed    maphash.Seed
	rows    [2][meterCells]atomic.Int64
}

// cells are the counters of a key, one in each row.
type cells [2]*atomic.Int64

func newMeter(policy string, limit WriteLimit, message string) *meter {
	if limit.Count == 0 {
		return nil
	}
	return &meter{
		limit:   licensing.Limit{Policy: policy, Count: limit.Count, Per: limit.Per},
		refusal: licensing.Error{Reason: licensing.ReasonRateLimited, Message: message},
		seed:    maphash.MakeSeed(),
	}
}

// cellsOf returns the counters of a key.
func cellsOf[K comparable](m *meter, key K) (c cells) {
	if m != nil {
		hash := maphash.Comparable(m.seed, key)
		c = cells{&m.rows[0][hash%meterCells], &m.rows[1][hash>>32%meterCells]}
	}
	return c
}

// refuse returns the refusal if the bucket has fewer than n tokens at a time, else nil. An n of 0 refuses a bucket from
// which more tokens were taken than it had.
func (m *meter) refuse(c cells, at time.Duration, n int) error {
	if m == nil {
		return nil
	}
	full := max(min(time.Duration(c[0].Load()), time.Duration(c[1].Load()))-at, 0)
	wait := full + m.cost(n) - m.limit.Per
	if wait <= 0 {
		return nil
	}
	limit, refusal := m.limit, m.refusal
	limit.Next, refusal.Limit = wait, &limit
	return &refusal
}

// add takes n tokens, also if the bucket has fewer.
func (m *meter) add(c cells, at time.Duration, n int) {
	if m == nil {
		return
	}
	for _, cell := range c {
		for {
			full := cell.Load()
			if cell.CompareAndSwap(full, int64(max(time.Duration(full), at)+m.cost(n))) {
				break
			}
		}
	}
}

// cost returns how long a bucket takes to gain n tokens.
func (m *meter) cost(n int) time.Duration {
	return time.Duration(n) * m.limit.Per / time.Duration(m.limit.Count)
}

// stopwatch measures the time since it was made, by the monotonic clock.
type stopwatch struct {
	clock func() time.Time
	began time.Time
}

func newStopwatch(clock func() time.Time) stopwatch { return stopwatch{clock, clock()} }

func (w *stopwatch) now() time.Duration { return w.clock().Sub(w.began) }
