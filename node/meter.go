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
// counter of each row. A counter holds the time at which its bucket is full again, and the fuller of a key's two
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

// license returns the counters of a license.
func (m *meter) license(key licensing.LicenseKey) (c cells) {
	if m != nil {
		c = m.cells(maphash.String(m.seed, string(key)))
	}
	return c
}

// account returns the counters of an owner.
func (m *meter) account(owner licensing.Owner) (c cells) {
	if m != nil {
		c = m.cells(maphash.Comparable(m.seed, owner))
	}
	return c
}

func (m *meter) cells(hash uint64) cells {
	return cells{&m.rows[0][hash%meterCells], &m.rows[1][hash>>32%meterCells]}
}

// refuse returns the refusal if the bucket is empty at a time, else nil.
func (m *meter) refuse(c cells, at time.Duration) error {
	if m == nil {
		return nil
	}
	return m.refusalAfter(m.fullIn(c, at) - m.limit.Per)
}

// take takes one token, or returns the refusal if the bucket has none.
func (m *meter) take(c cells, at time.Duration) error {
	if m == nil {
		return nil
	}
	if err := m.refusalAfter(m.fullIn(c, at) + m.cost(1) - m.limit.Per); err != nil {
		return err
	}
	m.add(c, at, 1)
	return nil
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

// fullIn returns how long after a time the bucket is full again.
func (m *meter) fullIn(c cells, at time.Duration) time.Duration {
	return max(min(time.Duration(c[0].Load()), time.Duration(c[1].Load()))-at, 0)
}

// cost returns in what time n tokens come back.
func (m *meter) cost(n int) time.Duration {
	return time.Duration(n) * m.limit.Per / time.Duration(m.limit.Count)
}

// refusalAfter returns the refusal of a command that the bucket lets in after a time, and nil if that is now.
func (m *meter) refusalAfter(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	limit, refusal := m.limit, m.refusal
	limit.Next, refusal.Limit = wait, &limit
	return &refusal
}
