package kv

import (
	"time"

	"github.com/rs/zerolog"

	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// brokenLogLimit keeps one damaged license that is asked for all the time from
// filling the log; each case is counted.
const (
	sampledBurst  = 10
	sampledPeriod = time.Minute
)

func newSampledLog(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: sampledBurst, Period: sampledPeriod})
}

// checkRules counts a license that breaks a rule. Which one it is only licet store verify
// tells: no key is logged.
func (s *core) checkRules(license *layout.License, where string) {
	if rule := license.BrokenRule(); rule != "" {
		s.countBrokenRule(rule, where)
	}
}

func (s *core) countBrokenRule(rule, where string) {
	s.metrics.InvariantViolations.Inc()
	s.sampledLog.Error().Str("rule", rule).Str("where", where).
		Msg("a license breaks an invariant; licet store verify tells which")
}

// checkSnapshots counts the licenses among what was read that break a rule.
func (s *Store) checkSnapshots(snapshots []store.Snapshot) {
	for i := range snapshots {
		license := snapshots[i].Record.License
		token, exists := snapshots[i].Token.(*stored)
		if exists && license != nil {
			s.checkRules(&layout.License{License: *license, Devices: token.inline, Spilled: token.spilled}, "read")
		}
	}
}

// A value that can't be read must not end what it is a part of. It is damaged, or a newer build wrote it. Readers of
// events get a placeholder in its place: see layout.DecodeEvents and layout.DecodeRuns. Each value is counted and
// logged once, however often it is read.

// noteUnreadable notes that a key of events, or a part of it, can't be read; err is nil where it can.
func (s *core) noteUnreadable(owner licensing.Owner, e *layout.EventsKey, err error) {
	if err != nil {
		s.etcd.NoteUnreadable(e.Key(owner), layout.NameOfEvents(owner, e), err)
	}
}

// skipped notes that a list leaves out a record that can't be read: one damaged record must not end a list. err is nil
// if the record can be read. name is the record's key, or its kind if the key is secret.
func (s *core) skipped(key, name string, err error) {
	if err != nil {
		s.etcd.NoteUnreadable(key, name, err)
	}
}

// noteUnreadableRun notes that events of one record in a key can't be read.
func (s *core) noteUnreadableRun(owner licensing.Owner, e *layout.EventsKey, run *layout.Run, err error) {
	if err != nil {
		at := layout.Location{Epoch: e.Epoch, Block: e.Block}
		s.etcd.NoteUnreadable(e.Key(owner)+run.Record, "e/"+layout.EventID(at, run.Record, run.Last), err)
	}
}
