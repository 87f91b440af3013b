package kv

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestNodeCountsBrokenLicenses: the metric of broken licenses, which should stay 0, counts a broken license.
func TestNodeCountsBrokenLicenses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.fill()
	count := func() float64 { return kvtest.Counted(t, l.metrics.InvariantViolations) }
	var log strings.Builder
	l.store.sampledLog = newSampledLog(zerolog.New(&log))

	record := kvtest.Must(layout.DecodeLicense(s.inline.ID(), l.value(keyspace.LicenseKey(s.inline.ID()))))(t)
	record.License.CurrentDevices = 3
	kvtest.Must(l.client.Put(l.ctx(), keyspace.LicenseKey(s.inline.ID()), string(record.Encode())))(t)

	kvtest.Must(l.node.License(l.ctx(), licensing.Owner{}, s.inline, store.DevicePage{Limit: 10}))(t)
	if count() != 1 {
		t.Errorf("after a look-up the metric is %v", count())
	}
	l.remove(s.inline, "device-0")
	if count() != 3 { // as it was read, and as it was written
		t.Errorf("after a change the metric is %v", count())
	}
	for range 20 {
		kvtest.Must(l.store.Load(l.ctx(), store.Want{Ref: licensing.LicenseRef(s.inline)}))(t)
	}
	if count() != 23 {
		t.Errorf("after twenty reads the metric is %v", count())
	}
	if lines := strings.Count(log.String(), "\n"); lines != sampledBurst {
		t.Errorf("%d lines were logged:\n%s", lines, log.String())
	}
	if strings.Contains(log.String(), s.inline.Prefix()+"-") ||
		!strings.Contains(log.String(), `"rule":"device_count"`) {
		t.Errorf("the log is\n%s", log.String())
	}
}

// TestNodeCountsBrokenRivals loses a swap to a damaged license, and the metric counts it.
func TestNodeCountsBrokenRivals(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.fill()
	ref := licensing.LicenseRef(s.inline)
	read := kvtest.Must(l.store.Load(l.ctx(), store.Want{Ref: ref}))(t)[0]
	record := kvtest.Must(layout.DecodeLicense(s.inline.ID(), l.value(keyspace.LicenseKey(s.inline.ID()))))(t)
	record.License.CurrentDevices = 3
	kvtest.Must(l.client.Put(l.ctx(), keyspace.LicenseKey(s.inline.ID()), string(record.Encode())))(t)
	outcome := kvtest.Must(l.store.Commit(l.ctx(),
		store.Change{Writes: []store.Write{{Ref: ref, Token: read.Token, Record: read.Record}}}))(t)
	if n := kvtest.Counted(t, l.metrics.InvariantViolations); outcome.Landed || n != 1 {
		t.Errorf("landed: %v, and the metric is %v", outcome.Landed, n)
	}
}

// TestNodeCountsMissingDevices reads a license of which some keys of devices are gone. A page without all devices does
// not show this.
func TestNodeCountsMissingDevices(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.fill()
	read := func(page store.DevicePage) float64 {
		view := kvtest.Must(l.node.License(l.ctx(), licensing.Owner{}, s.spilled, page))(t)
		if len(view.Devices) == 0 {
			t.Fatal("the page is empty")
		}
		return kvtest.Counted(t, l.metrics.InvariantViolations)
	}
	whole := store.DevicePage{Limit: 100}
	if n := read(whole); n != 0 {
		t.Errorf("for a good license the metric is %v", n)
	}
	kvtest.Must(l.client.Delete(l.ctx(), keyspace.DeviceKey(s.spilled.ID(), "device-0")))(t)
	if n := read(store.DevicePage{Limit: 3}); n != 0 {
		t.Errorf("after the first page of many the metric is %v", n)
	}
	if n := read(store.DevicePage{Limit: 100, After: store.DeviceCursor{0, 1}}); n != 0 {
		t.Errorf("after a later page the metric is %v", n)
	}
	if n := read(whole); n != 1 {
		t.Errorf("after a page with all devices the metric is %v", n)
	}
}
