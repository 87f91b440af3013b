package service

import (
	"context"
	"sync"

	"licet/licensing"
	"licet/node/store"
)

// GiveNotices plans and records the events license.expiring, see licensing.GiveNotice. It also records the ends of the
// licenses whose events are planned, and the ends of graces. A license is in one index of due work, so GiveNotices also
// removes lapsed leases; in the reserve, it does only that.
func (s *Sweeps) GiveNotices(ctx context.Context) error {
	switch s.engine.Space() {
	case store.SpaceReserve:
		return s.lapseInReserve(ctx, licensing.DueLicenseNotice)
	case store.SpaceFull:
		return errNoSpace
	}
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	var known sync.Map // licensing.ExpiringDays, by owner, so that the pass reads the settings of an owner once
	record := licensing.ExpireLicense{Before: now.Add(-s.cfg.ExpiryMargin)}
	step := func(ctx context.Context, ref licensing.Ref) error {
		result, err := s.engine.DoInBackground(ctx, ref, record)
		if err == nil && result.License.LeasesLapsed(now) {
			err = s.lapse(ctx, ref, now)
		}
		if err != nil || !result.License.NoticeDue(now) {
			return err
		}
		days, ok := known.Load(result.License.Owner)
		if !ok {
			settings, err := s.readSettings(ctx, result.License.Owner)
			if err != nil {
				return err
			}
			days = settings.Expiring()
			known.Store(settings.Owner, days)
		}
		_, err = s.engine.DoInBackground(ctx, ref,
			licensing.GiveNotice{Now: now, Days: days.(licensing.ExpiringDays)})
		return err
	}
	failed := s.eachDue(ctx, licensing.DueLicenseNotice, store.DueSpan{Until: now}, step)
	unplanned := store.DueSpan{Since: now, Until: licensing.NoticesUntil(now)}
	return worseError(failed, s.eachDue(ctx, licensing.DueLicenseEnd, unplanned, step))
}
