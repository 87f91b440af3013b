package history

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/node/clocks"
	"licet/node/store"
)

// aheadOfFar is how far the clock of the doubtful node is ahead of the clocks of far nodes.
const aheadOfFar = 9 * 24 * time.Hour

// doubtPlans are the licenses that the doubtful node works on, too.
func doubtPlans() []plan {
	odds := []odd{{8, activate}, {3, validate}, {2, remove}, {1, get}}
	return []plan{
		{name: "floating, in doubt", max: 2, pool: 4, clients: 6, each: 20, lease: 4 * time.Minute, swept: true,
			doubt: true, odds: odds},
		{name: "inactive, in doubt", max: 2, pool: 5, clients: 4, each: 20, inactive: true, doubt: true, odds: odds},
	}
}

// startDoubtful makes a node that has never compared its clock, as a node that has just started or that can't read the
// times of the others. Its clock is ahead of all other clocks by days, so all leases, all licenses with an end and all
// trials seem to have ended long ago. It serves, and must not act by its clock.
func (r *run) startDoubtful() error {
	s := &slot{clock: &clock{epoch: r.started}, doubt: true}
	s.clock.step(farAhead + aheadOfFar)
	p, err := r.start(s)
	if err != nil {
		return fmt.Errorf("start the doubtful node: %w", err)
	}
	r.keepBusy(p)
	s.process = p
	r.doubtful, r.processes = s, append(r.processes, p)
	return nil
}

// noteDoubt notes a life of the doubtful node.
func (r *run) noteDoubt(by store.Incarnation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubts[by.String()] = true
}

// comparison returns a comparison of the clock with no other clock.
func (p *process) comparison() *clocks.Comparison {
	return clocks.New(clocks.Config{
		Self:    p.opened.Incarnation(),
		Clock:   func() (time.Time, time.Duration) { return p.clock.now(), time.Since(p.clock.epoch) },
		Metrics: newInstruments(), Log: zerolog.Nop(),
	})
}

// sweepInDoubt does the work of a node that goes by time.
func (p *process) sweepInDoubt() {
	p.again(5, 20, p.node.RecordLicenseEnds, p.node.GiveNotices, p.node.RemoveLapsedLeases, p.node.SweepTrials)
}

// doubt: no revision that the doubtful node has written gives or renews a lease, binds a device to a license that loses
// inactive devices, moves the lease clock or records an end. It follows that the node has removed no device by its
// clock: see lapsed.
func (i *inspection) doubt(key licensing.LicenseKey, states []*licenseAt) {
	for n, s := range states[1:] {
		before := states[n]
		if !s.recordWritten || !i.run.doubts[s.writers[0].by] {
			continue
		}
		if s.leaseClock != before.leaseClock || s.endRecorded != before.endRecorded ||
			s.graceRecorded != before.graceRecorded {
			i.add("doubt", "%s: a node acted by a clock in doubt: %s, then %s", key, before, s)
		}
		for id, end := range s.ends {
			if before.ends[id] != end {
				i.add("doubt", "%s: a node gave %s a lease by a clock in doubt: %s, then %s", key, id, before, s)
			}
		}
		for id := range s.devices {
			if s.inactiveAfter != 0 && before.devices[id] == 0 {
				i.add("doubt", "%s: a node bound %s by a clock in doubt: %s, then %s", key, id, before, s)
			}
		}
	}
}
