package kv

import (
	"time"

	"github.com/rs/zerolog"

	"licet/node/store"
)

// broken names the first rule that a stored license breaks, as far as its own
// key tells; empty where it breaks none. It is cheap enough for every request.
func (s *storedLicense) broken() string {
	l := &s.license
	switch {
	case s.spilled && len(s.devices) > 0:
		return "spilled"
	case len(s.devices) > maxInline:
		return "inline_limit"
	case l.CurrentDevices < 0 || l.MaxDevices < 0 || l.AllowedOver < 0:
		return "negative"
	case !s.spilled && l.CurrentDevices != len(s.devices):
		return "device_count"
	case l.MaxDevices > 0 && l.CurrentDevices > max(l.MaxDevices, l.AllowedOver):
		return "device_limit"
	}
	return ""
}

// brokenLogLimit keeps one damaged license that is asked for all the time from
// filling the log; each case is counted.
const (
	brokenLogBurst  = 10
	brokenLogPeriod = time.Minute
)

func newBrokenLog(log zerolog.Logger) zerolog.Logger {
	return log.Sample(&zerolog.BurstSampler{Burst: brokenLogBurst, Period: brokenLogPeriod})
}

// watch counts a license that breaks a rule. Which one it is only licet verify
// tells: no key is logged.
func (s *Store) watch(license *storedLicense, where string) {
	if rule := license.broken(); rule != "" {
		s.countBroken(rule, where)
	}
}

func (s *Store) countBroken(rule, where string) {
	s.metrics.InvariantViolations.Inc()
	s.brokenLog.Error().Str("rule", rule).Str("where", where).
		Msg("a license breaks an invariant; licet verify tells which")
}

// watchSnapshots counts the licenses among what was read that break a rule.
func (s *Store) watchSnapshots(snapshots []store.Snapshot) {
	for i := range snapshots {
		license := snapshots[i].Record.License
		token, exists := snapshots[i].Token.(*stored)
		if exists && license != nil {
			s.watch(&storedLicense{license: *license, devices: token.inline, spilled: token.spilled}, "read")
		}
	}
}
