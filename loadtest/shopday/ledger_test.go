package main

import (
	"strings"
	"testing"
	"time"
)

func TestStatusOfOrders(t *testing.T) {
	now := time.Now()
	for want, o := range map[string]orderEntry{
		stateUnpaid:   {ends: now.Add(time.Second)},
		stateExpired:  {ends: now},
		statePaid:     {ends: now, paid: true, late: true},
		stateCanceled: {ends: now, canceled: true},
		stateRefunded: {ends: now, canceled: true, paid: true, refunded: true},
	} {
		if got := o.status(now); got != want {
			t.Errorf("%+v is %s, want %s", o, got, want)
		}
	}
}

func TestStatusOfLicenses(t *testing.T) {
	now := time.Now()
	some := map[string]string{"a": "A"}
	for want, l := range map[string]licenseEntry{
		stateNotActivated: {activated: now, ends: now.Add(time.Second)},
		stateActivated:    {devices: some},
		stateExpired:      {devices: some, ends: now},
		stateSuspended:    {devices: some, ends: now, suspended: true},
		stateRevoked:      {devices: some, ends: now, suspended: true, revoked: true},
	} {
		if got := l.status(now); got != want {
			t.Errorf("%+v is %s, want %s", l, got, want)
		}
	}
}

// TestTermsOfLicenses issues licenses before and after the terms change.
func TestTermsOfLicenses(t *testing.T) {
	l := newLedger()
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	first, year := l.license(cloud, "CLOUD-1", at), l.license(studio, "STUDIO-1", at)
	l.change()
	later := l.license(cloud, "CLOUD2-1", at)
	given := l.license(cloud, "CLOUD2-2", at)
	end := at.AddDate(0, 0, 9)
	given.renewed(end)
	for _, e := range []*licenseEntry{first, later, given} {
		e.bound("a", "A", at.Add(time.Hour))
		e.bound("b", "B", at.Add(2*time.Hour)) // the first counts
	}
	for _, c := range []struct {
		of      *licenseEntry
		devices int
		ends    time.Time
	}{
		{first, 2, time.Date(2026, 12, 22, 11, 0, 0, 0, time.UTC)},
		{year, 2, time.Date(2027, 11, 22, 10, 0, 0, 0, time.UTC)},
		{later, 3, time.Date(2027, 2, 22, 11, 0, 0, 0, time.UTC)},
		{given, 3, end},
	} {
		if c.of.maxDevices != c.devices || !c.of.ends.Equal(c.ends) {
			t.Errorf("%s: %d devices, to end at %v; want %d, %v", c.of.key, c.of.maxDevices, c.of.ends, c.devices,
				c.ends)
		}
	}
	l.license(cloud, "CLOUD2-1", at)
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "CLOUD2-1 was issued twice") {
		t.Errorf("a license that is issued twice is not noted: %v", err)
	}
}
