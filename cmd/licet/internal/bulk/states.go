package bulk

import (
	"fmt"
	"time"
)

// state is the state of a row. It is small, because every row has one.
type state struct {
	hash   uint64 // of the cells
	first  int64  // when the Idempotency-Key was first used, in milliseconds since 1970
	at     int64  // offset of the last result in the journal; 0: none
	line   int32
	try    int32
	status status
	kept   bool
	unique bool // the row has an external key, so the service can't grant it twice
}

type status uint8

const (
	open status = iota
	inDoubt
	failed
	// The following states are final.
	wasGranted
	wasChanged
	wasUnchanged
	existed
	wasSkipped
)

// forgotten is the age after which a row without response is not sent again. The service remembers an Idempotency-Key
// for 24 hours after it accepted the key; the remaining hour covers slow requests and clock differences.
const forgotten = 23 * time.Hour

// clockDifference is how far this machine's clock may differ from the service's.
const clockDifference = time.Minute

// apply updates the state with a line of the journal.
func (s *state) apply(e entry, at int64) error {
	switch e.Result {
	case "":
		s.status, s.try, s.first, s.kept = inDoubt, int32(e.Try), e.At.UnixMilli(), false
		s.at = 0
		return nil
	case refused:
		s.status, s.kept = failed, e.Kept
	case denied:
		s.status, s.kept = failed, true
	case unanswered:
		s.status = inDoubt
	case granted:
		s.status = wasGranted
	case changed:
		s.status = wasChanged
	case unchanged:
		s.status = wasUnchanged
	case exists:
		s.status = existed
	case skipped:
		s.status = wasSkipped
	default:
		return fmt.Errorf("unknown result %q: another version of licet wrote it", e.Result)
	}
	s.at = at
	return nil
}

func (s *state) done() bool { return s.status >= wasGranted }

// old reports whether the service may have forgotten the Idempotency-Key of the row.
func (s *state) old(now time.Time) bool {
	age := now.Sub(time.UnixMilli(s.first))
	// Before the first use: the clock was set back, so the age is unknown.
	return age >= forgotten || age < -clockDifference
}

// lost reports whether the outcome of the row can no longer be found out.
func (s *state) lost(now time.Time) bool { return s.status == inDoubt && s.old(now) && !s.unique }

// next returns the try to send the row with. It is the last try as long as the service remembers its key, so that a
// request still on its way and this request have one effect. It is a new try if the service would only repeat a stored
// refusal, or if the last try is too old for a request to be on its way.
func (s *state) next(now time.Time) (try int, first time.Time) {
	if s.try > 0 && !(s.status == failed && (s.kept || s.old(now))) {
		return int(s.try), time.UnixMilli(s.first)
	}
	return int(s.try) + 1, now
}
