package node

import (
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

// foldResult is the outcome of a fold. The answers stand in the order of the calls. There may be fewer answers than
// calls: the fold had no room for the other calls, which must be run on the record that the fold has made.
type foldResult struct {
	record  licensing.Record
	answers []Answer
	// worthSwap: the record has changed, and must be stored before the calls are answered.
	worthSwap bool
}

func (f foldResult) answer(calls []*call) {
	for i, c := range calls {
		c.answer(f.answers[i].Result, f.answers[i].Err)
	}
}

// split returns the calls that the fold has run, and the calls that it had no room for.
func (f foldResult) split(calls []*call) (run, rest []*call) {
	count := len(f.answers)
	return calls[:count:count], calls[count:]
}

// answerFold answers the calls of a fold that is not stored. KeepSeen stores later when devices were seen.
func (s *settler) answerFold(f foldResult, calls []*call) {
	if f.record.Touched {
		s.seen.noteAll(&f.record)
	}
	f.answer(calls)
}

// fold runs calls one by one on a snapshot, whose record it may change, as long as the changes fit one request; see
// foldBytes. A call that panics gets ErrInternal, and the fold starts again without the call, which may have left
// the record half changed.
func (s *settler) fold(ref licensing.Ref, snapshot store.Snapshot, calls []*call) foldResult {
	if len(calls) == 1 {
		return s.foldOne(ref, snapshot.Record, calls[0])
	}
	answers := make([]Answer, len(calls))
	var poisoned map[int]struct{}
	now, err := s.timeOfTurn()
	if err != nil {
		for i := range answers {
			answers[i].Err = err
		}
		return foldResult{answers: answers}
	}
again:
	record := snapshot.Record.Clone()
	worthSwap, bytes := false, 0
	for i, c := range calls {
		if worthSwap && bytes >= foldBytes {
			answers = answers[:i]
			break
		}
		if _, is := poisoned[i]; is {
			continue
		}
		events := len(record.Events)
		answer, panicked := s.run(ref, &record, c, now)
		if panicked {
			if poisoned == nil {
				poisoned = make(map[int]struct{})
			}
			poisoned[i] = struct{}{}
			answers[i] = Answer{Err: licensing.ErrInternal}
			goto again
		}
		answers[i] = answer
		worthSwap = worthSwap || record.Changed
		bytes += bytesOf(&record, c.cmd, events)
	}
	return foldResult{record: record, answers: answers, worthSwap: worthSwap}
}

// bytesOf returns about how many bytes a command has added to the request that stores the record. Before the
// command the record had so many events. A device that several commands change counts for each of them.
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

// foldOne is a fold of one call, as most folds are.
func (s *settler) foldOne(ref licensing.Ref, record licensing.Record, c *call) foldResult {
	now, err := s.timeOfTurn()
	if err != nil {
		return foldResult{answers: []Answer{{Err: err}}}
	}
	answer, panicked := s.run(ref, &record, c, now)
	if panicked {
		return foldResult{answers: []Answer{{Err: licensing.ErrInternal}}}
	}
	return foldResult{
		record:    record,
		answers:   []Answer{answer},
		worthSwap: record.Changed,
	}
}

// run runs a call on a record, unless a limit refuses the call.
func (s *settler) run(
	ref licensing.Ref, record *licensing.Record, c *call, now time.Time,
) (answer Answer, panicked bool) {
	if s.Space() != store.SpaceFree {
		return s.runInReserve(ref, record, c, now)
	}
	growth := licensing.GrowthOf(c.cmd, record, now)
	if answer.Err = s.overBudget(ref, record, growth); answer.Err != nil {
		return answer, false
	}
	if answer.Err = s.limits.refuse(record, c, growth, now); answer.Err == nil {
		answer.Result, answer.Err, panicked = s.apply(record, c.cmd, now)
	}
	return answer, panicked
}

// answerUnchanging answers the calls that change nothing in a snapshot that was just read, each by itself, and
// returns the other calls.
func (s *settler) answerUnchanging(snapshot store.Snapshot, calls []*call) []*call {
	now, err := s.timeOfTurn()
	if err != nil {
		answerAll(calls, err)
		return nil
	}
	var rest []*call
	record := snapshot.Record.Clone()
	for _, c := range calls {
		result, err, panicked := s.apply(&record, c.cmd, now)
		switch {
		case panicked:
			c.answer(licensing.Result{}, licensing.ErrInternal)
			record = snapshot.Record.Clone()
			continue
		case record.Changed:
			rest = append(rest, c)
			record = snapshot.Record.Clone()
			continue
		case record.Touched:
			s.seen.note(&record, c.cmd.DeviceID())
			record.Touched = false
		}
		c.answer(result, err)
	}
	return rest
}

func (s *settler) apply(
	record *licensing.Record, cmd licensing.Command, now time.Time,
) (result licensing.Result, err error, panicked bool) {
	if l := record.License; l != nil && l.ActsByTime() {
		record.ActsByTime = s.cfg.Clocks.Untrusted() == nil
	}
	returned := s.guard.Catch(
		func() { result, err = licensing.Apply(record, cmd, now) },
		func() *zerolog.Event { return s.cfg.Log.Error().Str("where", fmt.Sprintf("%T", cmd)) },
	)
	return result, err, !returned
}

func answerAll(calls []*call, err error) {
	for _, c := range calls {
		c.answer(licensing.Result{}, err)
	}
}
