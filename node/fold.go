package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/node/store"
)

const (
	// foldBytes bounds the bytes that a fold writes: from this size on, the fold takes no further call. A request
	// to etcd may have 1.5 MiB, so there is room for what the fold does not count: the last call, the facts of the
	// license, the keys, and the devices that were only seen.
	foldBytes = 256 << 10
	// eventBytes and entryBytes are about the bytes of an event and of a device's entry, without the id and the
	// name of the device.
	eventBytes = 128
	entryBytes = 96
)

// foldResult is the outcome of a fold. The outcome of each call is in the call.
type foldResult struct {
	record *licensing.Record
	// run is how many calls the fold has run. The fold had no room for the other calls, which must be run on the record
	// that the fold has made.
	run int
	// worthSwap: the record has changed, and must be stored before the calls are answered.
	worthSwap bool
}

// answerStored answers the calls of a fold that is stored. It returns the calls that must be run again, since more
// leases have lapsed than the fold has removed.
func answerStored(calls []*call) (again []*call) {
	for _, c := range calls {
		if errors.Is(c.outcome.Err, licensing.ErrMoreLapsed) {
			again = append(again, c)
			continue
		}
		c.answerFolded()
	}
	return again
}

// answerFold answers the calls of a fold that is not stored. KeepSeen stores later when devices were seen.
func (s *runner) answerFold(f foldResult, calls []*call) {
	if f.record.Touched {
		s.seen.noteAll(f.record)
	}
	for _, c := range calls {
		c.answerFolded()
	}
}

// fold runs calls one by one on a snapshot, whose record it may change, as long as the changes fit one request; see
// foldBytes. A call that panics gets ErrInternal, and the fold starts again without the call, which may have left
// the record half changed.
func (s *runner) fold(ref licensing.Ref, snapshot *store.Snapshot, calls []*call, at *turnTime) foldResult {
	if len(calls) == 1 { // as of most folds, which then copies no record
		record := &snapshot.Record
		if s.run(ref, record, calls[0], at, snapshot.AsOf) {
			return foldResult{record: new(licensing.Record), run: 1}
		}
		return foldResult{record, 1, record.Changed}
	}
	var poisoned map[int]struct{}
again:
	record := new(snapshot.Record.Clone())
	worthSwap, bytes := false, 0
	for i, c := range calls {
		if worthSwap && bytes >= foldBytes {
			return foldResult{record, i, worthSwap}
		}
		if _, is := poisoned[i]; is {
			continue
		}
		events := len(record.Events)
		if s.run(ref, record, c, at, snapshot.AsOf) {
			if poisoned == nil {
				poisoned = make(map[int]struct{})
			}
			poisoned[i] = struct{}{}
			goto again
		}
		worthSwap = worthSwap || record.Changed
		bytes += bytesOf(record, c.cmd, events)
	}
	return foldResult{record, len(calls), worthSwap}
}

// bytesOf returns about how many bytes a command has added to the request that stores the record. events is the number
// of the record's events before the command. A device that several commands change counts for each of them.
func bytesOf(record *licensing.Record, cmd licensing.Command, events int) (bytes int) {
	for i := range record.Events[events:] {
		bytes += eventBytes
		if d := record.Events[events+i].Device; d != nil {
			bytes += len(d.ID) + len(d.Name)
		}
	}
	if entry := record.Devices[cmd.DeviceID()]; entry != nil && entry.Changed {
		bytes += entryBytes + len(entry.Device.ID) + len(entry.Device.Name)
	}
	return bytes
}

// run runs a call on a record, unless a limit refuses the call. It leaves the outcome in the call, and reports whether
// the call has panicked.
func (s *runner) run(
	ref licensing.Ref, record *licensing.Record, c *call, at *turnTime, asOf time.Time,
) (panicked bool) {
	if s.lacksReceipt(record, c) {
		return c.refused(licensing.ErrClockInDoubt)
	}
	at.noteFor(c.cmd, record)
	if s.Space() != store.SpaceFree {
		return s.runInReserve(ref, record, c, at, asOf)
	}
	growth := licensing.GrowthOf(c.cmd, record, at.now)
	if err := s.overBudget(ref, record, c, growth); err != nil {
		return c.refused(err)
	}
	if err := s.limits.refuse(record, c, growth, at.now); err != nil {
		return c.refused(err)
	}
	return s.apply(record, c.cmd, at, asOf, &c.outcome)
}

// answerUnchanging answers the calls that change nothing in a snapshot that was just read, each by itself, and
// returns the other calls. folds says that the caller folds the other calls on this snapshot. Then a call that came
// alone is left to the fold, unless the fold could refuse it for lack of space: a fold copies no record.
func (s *runner) answerUnchanging(snapshot *store.Snapshot, calls []*call, at *turnTime, folds bool) []*call {
	var rest []*call
	var record *licensing.Record // a copy of the snapshot's record; nil: to be made
	for _, c := range calls {
		if s.lacksReceipt(&snapshot.Record, c) {
			c.fail(licensing.ErrClockInDoubt)
			continue
		}
		at.noteFor(c.cmd, &snapshot.Record)
		growth := licensing.GrowthOf(c.cmd, &snapshot.Record, at.now)
		if folds && len(calls) == 1 && growth == licensing.NoGrowth && s.Space() == store.SpaceFree {
			return calls
		}
		if licensing.StoresDevice(&snapshot.Record, c.cmd, growth, at.now) { // so don't find that out on a copy
			rest = append(rest, c)
			continue
		}
		if record == nil {
			record = new(snapshot.Record.Clone())
		}
		var outcome Answer
		switch panicked := s.apply(record, c.cmd, at, snapshot.AsOf, &outcome); {
		case panicked:
			c.fail(licensing.ErrInternal)
			record = nil
			continue
		case record.Changed:
			rest = append(rest, c)
			record = nil
			continue
		case record.Touched:
			s.seen.note(record, c.cmd.DeviceID())
			record.Touched = false
		}
		c.answer(outcome.Result, outcome.Err)
	}
	return rest
}

// lacksReceipt reports whether this node can't date the receipt of a hopped call. The sender then runs the call: the
// sender's clock may be compared.
func (s *runner) lacksReceipt(record *licensing.Record, c *call) bool {
	if !c.hopped {
		return false
	}
	counts := record.DatesDocument(c.cmd)
	return counts != 0 && !s.cfg.Clocks.Documents().Dates(counts)
}

// apply runs a command on a record that was read as of a time, and sets the outcome. The zero time stands for now.
// After a panic, the outcome is ErrInternal, and the record may be half changed.
func (s *runner) apply(
	record *licensing.Record, cmd licensing.Command, at *turnTime, asOf time.Time, outcome *Answer,
) (panicked bool) {
	at.noteFor(cmd, record)
	now := at.now
	record.Documents, record.ReadAgo = nil, 0
	if record.DatesDocument(cmd) != 0 {
		record.Documents = s.cfg.Clocks.Documents()
		if !asOf.IsZero() {
			record.ReadAgo = max(now.Sub(asOf), 0)
		}
	}
	returned := s.guard.Catch(
		func() { outcome.Result, outcome.Err = licensing.Apply(record, cmd, now) },
		func() *zerolog.Event { return s.cfg.Log.Error().Str("where", fmt.Sprintf("%T", cmd)) },
	)
	if !returned {
		*outcome = Answer{Err: licensing.ErrInternal}
	}
	return !returned
}

func answerAll(calls []*call, err error) {
	for _, c := range calls {
		c.fail(err)
	}
}
