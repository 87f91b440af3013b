package kv

import (
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// newSampledLog logs sampledBurst lines in sampledPeriod, so that a damaged license that clients ask for all the time
// does not fill the log. Metrics count each case.
const (
	sampledBurst  = 10
	sampledPeriod = time.Minute
)

func newSampledLog(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: sampledBurst, Period: sampledPeriod})
}

// checkRules counts a license that breaks a rule. The log shows no license key: licet store verify finds the license.
func (s *core) checkRules(license *layout.License, where string) {
	if rule := license.BrokenRule(); rule != "" {
		s.countBrokenRule(rule, where)
	}
}

func (s *core) countBrokenRule(rule, where string) {
	s.metrics.InvariantViolations.Inc()
	s.sampledLog.Error().Str("rule", rule).Str("where", where).
		Msg("a license violates an invariant: run licet store verify to find the license")
}

// checkSnapshots counts the licenses in snapshots that break a rule.
func (s *Store) checkSnapshots(snapshots []store.Snapshot) {
	for i := range snapshots {
		license := snapshots[i].Record.License
		token, exists := snapshots[i].Token.(*stored)
		if exists && license != nil {
			s.checkRules(&layout.License{License: *license, Devices: token.inline, Spilled: token.spilled}, "read")
		}
	}
}

// A value that can't be read must not affect other values: see etcd.Client.Unreadable. Readers of events get a
// placeholder in its place: see layout.DecodeEvents and layout.DecodeRuns.

// noteUnreadable notes that a key of events, or a part of it, can't be read. err is nil if it can be read.
func (s *core) noteUnreadable(owner licensing.Owner, e *keyspace.EventsKey, err error) {
	s.etcd.Unreadable(e.Key(owner), keyspace.NameOfEvents(owner, e), err)
}

// noteUnreadableRun notes that events of one record in a key can't be read.
func (s *core) noteUnreadableRun(owner licensing.Owner, e *keyspace.EventsKey, run *layout.Run, err error) {
	at := keyspace.Location{Epoch: e.Epoch, Block: e.Block}
	s.etcd.Unreadable(e.Key(owner)+run.Record, "e/"+keyspace.EventID(owner, at, run.Record, run.Last), err)
}

// readTrimmedEpoch returns the epoch in keyspace.TrimmedKey; 0 if there is no such key, or its value can't be read. In
// the latter case readers among removed events get no error until the next sweep by age writes the key again.
func (s *core) readTrimmedEpoch(kv *mvccpb.KeyValue) keyspace.Epoch {
	if kv == nil {
		return 0
	}
	epoch, err := layout.DecodeEpoch(kv.Value)
	s.etcd.Unreadable(keyspace.TrimmedKey, "cell/swept", err)
	return epoch
}

// unreadableLedger reports whether an owner's ledger can't be read; err is the reason, and nil if the ledger can be
// read. An owner with an unreadable ledger counts as having given up no events, until the next measurement rebuilds
// the ledger.
func (s *core) unreadableLedger(owner licensing.Owner, err error) bool {
	return s.etcd.Unreadable(keyspace.LedgerKey(owner), "r/"+keyspace.OwnerPath(owner), err)
}

// unreadableUsage reports whether an owner's usage record can't be read; err is the reason, and nil if the record can
// be read. An owner with an unreadable usage record counts as storing nothing; the next change writes a new record.
// So a recount of all owners does not end at this owner, and corrects the record.
func (s *core) unreadableUsage(owner licensing.Owner, err error) bool {
	return s.etcd.Unreadable(keyspace.UsageKey(owner), "s/"+keyspace.OwnerPath(owner), err)
}

// unreadableView notes that a license can't be shown, under the key of the value that can't be read.
func (s *views) unreadableView(license, metadata string, found *mvccpb.KeyValue, err error) {
	if _, _, bad := metadataOf(found); bad != nil {
		s.etcd.Unreadable(metadata, "the metadata of a license", err)
		return
	}
	s.etcd.Unreadable(license, "a license", err)
}
