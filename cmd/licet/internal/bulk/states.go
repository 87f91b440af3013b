package bulk

import (
	"fmt"
	"time"
)

// state is what is known of a row. There is one for each, so it is small.
type state struct {
	hash   uint64 // of its cells
	first  int64  // when its key was first used, in milliseconds since 1970
	at     int64  // where the journal has its last result; 0: it has none
	line   int32
	try    int32
	status status
	kept   bool
}

type status uint8

const (
	open status = iota
	inDoubt
	failed
	// What follows is done.
	wasGranted
	wasChanged
	wasUnchanged
	wasSkipped
)

// forgotten is when a row whose answer never came is not sent again. The service
// remembers an Idempotency-Key for 24 hours from when it took it; the hour
// between is for requests that are long on their way, and for clocks.
const forgotten = 23 * time.Hour

// apply takes a line of the journal.
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
	case skipped:
		s.status = wasSkipped
	default:
		return fmt.Errorf("it has the result %q, which this version does not know", e.Result)
	}
	s.at = at
	return nil
}

func (s *state) done() bool { return s.status >= wasGranted }

// old tells whether the service may have forgotten the row's key.
func (s *state) old(now time.Time) bool {
	age := now.Sub(time.UnixMilli(s.first))
	// Before its first use: the clock was set back, so that its age is not known.
	return age >= forgotten || age < -time.Minute
}

// lost tells whether nobody knows any more what became of the row.
func (s *state) lost(now time.Time) bool { return s.status == inDoubt && s.old(now) }

// next is the try to send the row as: the same as the last one, as long as the
// service would know it again. So a request that is still on its way can't be
// done beside this one. Another one it is where the service would only repeat
// its refusal, and where that is so old that nothing can be on its way.
func (s *state) next(now time.Time) (try int, first time.Time) {
	if s.try > 0 && !(s.status == failed && (s.kept || s.old(now))) {
		return int(s.try), time.UnixMilli(s.first)
	}
	return int(s.try) + 1, now
}
