package node

import (
	"context"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// answerTurn answers the calls of one turn. When answerTurn returns, every call has its answer, whatever happened,
// except the calls that sendAway has marked.
func (s *runner) answerTurn(ctx context.Context, ref licensing.Ref, t turn) {
	s.answering(t.calls, func() {
		if s.cfg.Tracer != nil {
			var ended func()
			ctx, ended = s.traceTurn(ctx, ref, t)
			defer ended()
		}
		if t.kind != kindTask {
			s.cfg.Metrics.FoldCommands.Observe(float64(len(t.calls)))
		}
		switch t.kind {
		case kindTask:
			t.calls[0].answer(t.calls[0].task(ctx))
		case kindClaimed:
			c := t.calls[0]
			c.answer(s.SwapTogetherOnce(ctx, c.claim, Step{Ref: ref, Cmd: c.cmd, call: c}))
		case kindCommand:
			s.answerCommands(ctx, ref, t.calls)
		}
	})
}

// answering runs work, which answers calls. After a panic, answering answers the calls that are left.
func (s *runner) answering(calls []*call, work func()) {
	if !s.guard.Do("mailbox", work) {
		answerAll(calls, licensing.ErrInternal)
	}
}

// answerCommands answers the commands of a turn, with as few requests as what the store remembers of the
// record allows.
//
// Commands that change the record are folded and swapped at once, against the revision that the store
// remembers: if the swap lands, what the store remembered was true. Commands that change nothing must not
// be answered from memory alone: Confirm asks the store whether its memory still holds. Either is one
// round trip. If the store remembers nothing, a read comes before the swap.
//
// The store may know the record, but too little of some devices. A read answers their calls, and a swap answers the
// other calls at the same time: these devices are most likely bound, and then their calls change nothing, unless they
// renew a lease.
func (s *runner) answerCommands(ctx context.Context, ref licensing.Ref, calls []*call) {
	guess, unsure, ok := s.cfg.Records.Recall(wantOf(ref, calls))
	if ok {
		// What the store remembers may be newer than an answer "outcome unknown"; see read.
		if calls = stillWanted(s.countForOwner(calls, guess.Record.License)); len(calls) == 0 {
			return
		}
	}
	if !ok {
		s.swap(ctx, ref, calls, nil, unknown)
		return
	}
	reading, swapping := splitByDevices(calls, unsure)
	switch {
	case len(reading) == 0:
		s.swap(ctx, ref, swapping, new(guess), guessed)
		return
	case len(swapping) == 0:
		s.swap(ctx, ref, reading, nil, unknown)
		return
	case guess.Record.License.Lease.Leased():
		// Calls of bound devices renew their leases, and so change the record: one read and one swap do for all.
		s.swap(ctx, ref, calls, nil, unknown)
		return
	}
	read := make(chan []*call)
	s.guard.Start("mailbox", func() {
		var changing []*call
		defer func() { read <- changing }()
		s.answering(reading, func() {
			for left := reading; len(left) > 0; {
				var part, unanswered []*call
				part, left = splitAfter(left, store.MaxTouchedDevices)
				_, unanswered = s.read(ctx, ref, part, time.Time{}, false)
				changing = append(changing, unanswered...)
			}
		})
	})
	// A panic in the swap must not keep this turn from waiting for the read.
	s.answering(swapping, func() { s.swap(ctx, ref, swapping, new(guess), guessed) })
	// These calls change something after all. The read came before the swap above, so they are read again.
	if changing := <-read; len(changing) > 0 {
		s.swap(ctx, ref, changing, nil, unknown)
	}
}

// splitByDevices splits calls into the calls that touch one of the devices, and the others.
func splitByDevices(calls []*call, devices []string) (touching, others []*call) {
	if len(devices) == 0 {
		return nil, calls
	}
	named := make(map[string]struct{}, len(devices))
	for _, id := range devices {
		named[id] = struct{}{}
	}
	for _, c := range calls {
		if _, touches := named[c.deviceID()]; touches {
			touching = append(touching, c)
		} else {
			others = append(others, c)
		}
	}
	return touching, others
}

// splitAfter splits calls, in their order, before the call that touches one device more than maxDevices.
func splitAfter(calls []*call, maxDevices int) (part, rest []*call) {
	if len(calls) <= maxDevices {
		return calls, nil
	}
	devices := make(map[string]struct{}, maxDevices)
	for i, c := range calls {
		id := c.deviceID()
		if _, counted := devices[id]; id == "" || counted {
			continue
		}
		if len(devices) == maxDevices {
			return calls[:i:i], calls[i:]
		}
		devices[id] = struct{}{}
	}
	return calls, nil
}

// read loads a record and answers the calls that change nothing in the record: their answers hold at the
// snapshot's revision, which was read after the calls came. read returns the other calls. They are all calls if the
// snapshot needs the lapsed leases too. With lapsedBy, the snapshot has the leases that ended by then. For folds, see
// answerUnchanging.
func (s *runner) read(
	ctx context.Context, ref licensing.Ref, calls []*call, lapsedBy time.Time, folds bool,
) (*store.Snapshot, []*call) {
	want := wantOf(ref, calls)
	want.LapsedBy = lapsedBy
	loaded, err := s.load(ctx, want)
	if err != nil {
		answerAll(calls, err)
		return nil, nil
	}
	snapshot := &loaded[0]
	s.placement.sawWriter(ref, snapshot.Writer)
	calls = s.countForOwner(calls, snapshot.Record.License)
	// If a caller has meanwhile been answered that the outcome is unknown, its call must not run on this snapshot:
	// the snapshot may contain changes that came after that answer.
	calls = stillWanted(calls)
	at, err := s.timeOfTurn()
	switch {
	case err != nil:
		answerAll(calls, err)
		return snapshot, nil
	case lapsedBy.IsZero() && needsSearch(&snapshot.Record, calls, &at):
		return snapshot, calls
	}
	return snapshot, s.answerUnchanging(snapshot, calls, &at, folds)
}

// load loads records. The snapshots hold as of the time before the read: the answer may come late.
func (s *runner) load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	asOf := s.Now()
	loaded, err := s.cfg.Records.Load(ctx, wants...)
	setAsOf(loaded, asOf)
	return loaded, err
}

func setAsOf(snapshots []store.Snapshot, asOf time.Time) {
	for i := range snapshots {
		snapshots[i].AsOf = asOf
	}
}

// wantOf returns what calls need to know of their record.
func wantOf(ref licensing.Ref, calls []*call) store.Want {
	return store.Want{
		Ref:      ref,
		Devices:  devicesOf(calls),
		Metadata: slices.ContainsFunc(calls, func(c *call) bool { return licensing.NeedsMetadata(c.cmd) }),
	}
}

// devicesOf returns the ids of the devices that calls touch, each once.
func devicesOf(calls []*call) []string {
	if len(calls) == 1 { // as of most turns
		if id := calls[0].deviceID(); id != "" {
			return []string{id}
		}
		return nil
	}
	var ids []string
	counted := make(map[string]struct{}, len(calls))
	for _, c := range calls {
		id := c.deviceID()
		if _, known := counted[id]; known || id == "" {
			continue
		}
		counted[id] = struct{}{}
		ids = append(ids, id)
	}
	return ids
}
