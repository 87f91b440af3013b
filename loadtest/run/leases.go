package main

import (
	"context"
	"time"

	"licet/client"
)

// leaseGuard is how long after its end a lease keeps its slot, in milliseconds, and leaseSlack how much longer it may
// seem to last: clients know its end by the second, and answers are on their way.
const leaseGuard, leaseSlack = 5000, 2000

// leases are the requests for leases of a license that lapse while the load runs, in the order of the journal.
type leases []lease

// lease is a request for a lease and what became of it. A device has its lease from when it knows the answer until so
// many milliseconds after it sent the request.
type lease struct {
	effect
	device   string
	full     bool // refused, since all slots were taken
	lastsFor int64
}

// times is the time from begun up to ended, of a device.
type times struct {
	device       string
	begun, ended int64
}

// held returns when a device surely has a lease, and taken when a device may have a slot.
func (l leases) held() (all []times) {
	for _, one := range l {
		if end := one.begun + one.lastsFor; one.known && one.ended < end {
			all = append(all, times{one.device, one.ended, end})
		}
	}
	return all
}

func (l leases) taken() (all []times) {
	for _, one := range l {
		switch {
		case one.full:
		case one.known:
			all = append(all, times{one.device, one.begun, one.ended + one.lastsFor + leaseGuard + leaseSlack})
		default:
			all = append(all, times{one.device, one.begun, 1 << 62})
		}
	}
	return all
}

// at returns how many devices are among the times that overlap with another.
func at(all []times, begun, ended int64) int {
	devices := map[string]bool{}
	for _, t := range all {
		if t.begun <= ended && begun <= t.ended {
			devices[t.device] = true
		}
	}
	return len(devices)
}

// compareLeases compares the leases of a license with its limit: the license never has more leases than slots, and no
// device is refused while a slot is free. A slot is free once a lease has lapsed and its guard has passed.
func (p *proof) compareLeases(key string, l leases, found *storedLicense, count *fact) {
	held, taken := l.held(), l.taken()
	count.Acknowledged += len(held)
	for _, one := range held {
		if n := at(held, one.begun, one.begun); n > found.MaxDevices {
			p.Problem("license %s had %d leases at once, and allows %d", key, n, found.MaxDevices)
		}
	}
	for _, one := range l {
		if n := at(taken, one.begun, one.ended); one.full && n < found.MaxDevices {
			p.Problem("license %s refused device %s as full, and at most %d of %d slots were taken", key, one.device, n,
				found.MaxDevices)
		}
	}
	for id := range found.devices {
		p.Problem("license %s: device %s still has its lease", key, id)
	}
	count.Stored += len(held) - len(found.devices)
}

// awaitLapses waits until all leases have lapsed that lapse during the load, so that nothing changes while the licenses
// are read.
func awaitLapses(ctx context.Context, accounts []*client.Client, j *journal) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for key, l := range j.licenses {
		for left := len(l.leases); left > 0; {
			license, err := accounts[l.account].Licenses.Get(ctx, key)
			if err != nil {
				return err
			}
			if left = license.CurrentDevices; left > 0 {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
				}
			}
		}
	}
	return nil
}
