package kv

import (
	"time"

	"github.com/rs/zerolog"

	"licet/kv/internal/layout"
	"licet/node/store"
)

// brokenLogLimit keeps one damaged license that is asked for all the time from
// filling the log; each case is counted.
const (
	brokenLogBurst  = 10
	brokenLogPeriod = time.Minute
)

func newSampledLog(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: brokenLogBurst, Period: brokenLogPeriod})
}

// checkRules counts a license that breaks a rule. Which one it is only licet store verify
// tells: no key is logged.
func (s *Store) checkRules(license *layout.License, where string) {
	if rule := license.BrokenRule(); rule != "" {
		s.countBrokenRule(rule, where)
	}
}

func (s *Store) countBrokenRule(rule, where string) {
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
