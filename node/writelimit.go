package node

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// WriteLimits bound what a node writes. The zero value bounds nothing.
type WriteLimits struct {
	NewDevices   WriteLimit // new devices and new names of devices, for each license
	LicenseBytes WriteLimit // bytes for each license
	AccountBytes WriteLimit // bytes for each owner
}

// WriteLimit allows Count at once, and Count more in each Per. A Count of 0 is no limit.
type WriteLimit struct {
	Count int
	Per   time.Duration // in whole seconds
}

// The names of the limits, in metrics and headers.
const (
	PolicyNewDevices   = "new_devices"
	PolicyLicenseBytes = "license_bytes"
	PolicyAccountBytes = "account_bytes"
)

// writeLimits are the write limits of a node. Nil limits nothing. A limit of bytes lets a command in as long as
// earlier commands have left something, and counts the command once it is stored: only the store knows how many
// bytes a command takes. Commands under way at that moment exceed the limit by as much as they write, and commands
// that come later wait for that.
//
// The limits refuse only commands that store a device or a device's name, and other [licensing.OrdinaryGrowth].
type writeLimits struct {
	clock func() time.Time
	began time.Time

	newDevices, licenseBytes, accountBytes *meter
}

func newWriteLimits(cfg *Config) *writeLimits {
	if cfg.WriteLimits == (WriteLimits{}) {
		return nil
	}
	return &writeLimits{
		clock: cfg.Clock, began: cfg.Clock(),
		newDevices: newMeter(PolicyNewDevices, cfg.WriteLimits.NewDevices,
			"too many new devices, or new names of devices, for this license; nothing was changed"),
		licenseBytes: newMeter(PolicyLicenseBytes, cfg.WriteLimits.LicenseBytes,
			"too many changes, or too large ones, of this license; nothing was changed"),
		accountBytes: newMeter(PolicyAccountBytes, cfg.WriteLimits.AccountBytes,
			"too many changes, or too large ones, of this account; nothing was changed"),
	}
}

// refuse returns the error of the limit that refuses a call, and nil if the call may run on the record now. It counts
// a device that the call stores, once for each call: a call that has lost a swap runs again.
func (w *writeLimits) refuse(record *licensing.Record, c *call, now time.Time) error {
	if w == nil || c.counted || record.License == nil {
		return nil
	}
	device := licensing.StoresDevice(record, c.cmd, now)
	if !device && licensing.GrowthOf(c.cmd, record, now) != licensing.OrdinaryGrowth {
		return nil
	}
	at := w.now()
	if err := w.licenseBytes.refuse(w.licenseBytes.license(record.License.Key), at); err != nil {
		return err
	}
	if err := w.accountBytes.refuse(w.accountBytes.account(record.License.Owner), at); err != nil {
		return err
	}
	if !device {
		return nil
	}
	if err := w.newDevices.take(w.newDevices.license(record.License.Key), at); err != nil {
		return err
	}
	c.counted = true
	return nil
}

// RefuseWrites returns the error of an owner that has written as much as its limit allows, else nil. The engine asks
// the limits itself about commands on licenses; callers ask before all other growth.
func (s *settler) RefuseWrites(owner licensing.Owner) error {
	if s.limits == nil {
		return nil
	}
	return s.limits.accountBytes.refuse(s.limits.accountBytes.account(owner), s.limits.now())
}

// wrote counts the bytes of a change for the owner and the licenses of its records.
func (w *writeLimits) wrote(change *store.Change, bytes int) {
	if w == nil || bytes == 0 {
		return
	}
	at := w.now()
	for i := range change.Writes {
		write := &change.Writes[i]
		owner := write.Ref.Owner
		if l := write.Record.License; l != nil {
			owner = l.Owner
			w.licenseBytes.add(w.licenseBytes.license(l.Key), at, bytes/len(change.Writes))
		}
		if i == 0 {
			w.accountBytes.add(w.accountBytes.account(owner), at, bytes)
		}
	}
}

// now returns the time since the node was made, by the monotonic clock.
func (w *writeLimits) now() time.Duration { return w.clock().Sub(w.began) }

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
