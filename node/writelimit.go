package node

import (
	"context"
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
// that come later wait for that. What a search for lapsed leases reads counts as if it were written.
//
// The limits refuse only commands that store a device or a device's name, [licensing.Replacement] and other
// [licensing.OrdinaryGrowth].
type writeLimits struct {
	stopwatch
	newDevices, licenseBytes, accountBytes *meter
}

func newWriteLimits(cfg *Config) *writeLimits {
	if cfg.WriteLimits == (WriteLimits{}) {
		return nil
	}
	return &writeLimits{
		stopwatch: newStopwatch(cfg.Clock),
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
// growth is that of the call's command on the record.
func (w *writeLimits) refuse(record *licensing.Record, c *call, growth licensing.Growth, now time.Time) error {
	if w == nil || c.counted || record.License == nil {
		return nil
	}
	device := licensing.StoresDevice(record, c.cmd, growth, now)
	if !device && growth < licensing.Replacement {
		return nil
	}
	at := w.now()
	if err := w.licenseBytes.refuse(cellsOf(w.licenseBytes, record.License.Key), at, 0); err != nil {
		return err
	}
	if err := w.accountBytes.refuse(cellsOf(w.accountBytes, record.License.Owner), at, 0); err != nil {
		return err
	}
	if !device {
		return nil
	}
	ofLicense := cellsOf(w.newDevices, record.License.Key)
	if err := w.newDevices.refuse(ofLicense, at, 1); err != nil {
		return err
	}
	w.newDevices.add(ofLicense, at, 1)
	c.counted = true
	return nil
}

// refuseSearch returns the error of the limit that refuses a search for lapsed leases, which may read 10,000 devices.
// The limits of bytes refuse a search because of earlier searches, and the limit of new devices refuses a vain search.
// Commands of the service itself are not refused.
func (w *writeLimits) refuseSearch(l *licensing.License, c *call) error {
	if _, activates := c.cmd.(licensing.Activate); w == nil || !activates {
		return nil
	}
	at := w.now()
	if err := w.licenseBytes.refuse(cellsOf(w.licenseBytes, l.Key), at, 0); err != nil {
		return err
	}
	if err := w.accountBytes.refuse(cellsOf(w.accountBytes, l.Owner), at, 0); err != nil || c.counted {
		return err
	}
	return w.newDevices.refuse(cellsOf(w.newDevices, l.Key), at, 1)
}

// countSearch returns a context whose reads count as if the license and its owner wrote them.
func (w *writeLimits) countSearch(ctx context.Context, l *licensing.License) context.Context {
	if w == nil {
		return ctx
	}
	key, owner := l.Key, l.Owner
	return store.CountReads(ctx, func(bytes int) {
		at := w.now()
		w.licenseBytes.add(cellsOf(w.licenseBytes, key), at, bytes)
		w.accountBytes.add(cellsOf(w.accountBytes, owner), at, bytes)
	}, func() error { return nil })
}

// RefuseWrites returns the error of an owner that has written as much as its limit allows, else nil. The engine asks
// the limits itself about commands on licenses; callers ask before all other growth.
func (s *runner) RefuseWrites(owner licensing.Owner) error {
	if s.limits == nil {
		return nil
	}
	return s.limits.accountBytes.refuse(cellsOf(s.limits.accountBytes, owner), s.limits.now(), 0)
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
			w.licenseBytes.add(cellsOf(w.licenseBytes, l.Key), at, bytes/len(change.Writes))
		}
		if i == 0 {
			w.accountBytes.add(cellsOf(w.accountBytes, owner), at, bytes)
		}
	}
}
