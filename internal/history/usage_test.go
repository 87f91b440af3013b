package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv"
	"licet/licensing"
	"licet/node/store"
)

const (
	// budgetBytes is the budget of every account. Ordinary growth ends at 8,000,000 bytes, which no run comes near: so
	// no growth is refused.
	budgetBytes = 10_000_000
	// warningBytes is the size from which on an account is warned: four fifths of four fifths of the budget.
	warningBytes = 6_400_000
	// startBytes is how much an account stores before its run begins. largeBytes is more than what a node's clients
	// store between two passes.
	startBytes = warningBytes - 20_000
	largeBytes = 40_000
	// usageEvery is the pause between two passes that store the growth of a node. It is short, so that the passes of
	// several nodes meet at the warning.
	usageEvery = 100 * time.Millisecond
	// warnedAgo is how long before its run an account was warned. Only a clock that is at least five minutes ahead
	// then shows that the hour between two warnings has passed.
	warnedAgo = 55 * time.Minute
)

// usageAt is the usage record of a run's account as one revision left it.
type usageAt struct {
	revision int64
	bytes    int64
	warned   bool
	warnedAt int64
	writers  []writer
	latest   latestAt
}

func readUsage(stored *mvccpb.KeyValue) (*usageAt, error) {
	m, err := parse(stored.Value[1:])
	return &usageAt{
		revision: stored.ModRevision, bytes: m.milli(1), warned: m.varints[8] != 0, warnedAt: m.milli(7),
		writers: m.writers(), latest: latest(m.text(16)),
	}, err
}

// usageRecord names an account's usage in test mode as keys of events do.
func usageRecord(account string) string {
	sum := sha256.Sum256([]byte(account + "/t/"))
	return "a" + string(sum[:16])
}

// startUsage stores what the account stored before the run. In half of the runs the account was warned then, under a
// smaller budget.
func (r *run) startUsage() error {
	if !r.warned {
		return nil
	}
	add := licensing.AddUsage{Owner: r.owner,
		Changes: []licensing.SizeChange{{Revision: 1, Size: licensing.Size{Bytes: startBytes}}}}
	if r.random("usage").IntN(2) == 0 {
		add.Budget = licensing.Budget{Bytes: startBytes}
	}
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	r.maker.faults.on.Store(false) // a maker that believes etcd to be full would create no licenses afterwards
	defer r.maker.faults.on.Store(true)
	db, ref := r.maker.opened, licensing.UsageRef(r.owner)
	for {
		loaded, err := db.Load(ctx, store.Want{Ref: ref})
		if err == nil {
			record := loaded[0].Record
			if record.Usage != nil {
				return nil
			}
			if _, err := licensing.Apply(&record, add, r.started.Add(-warnedAgo)); err != nil {
				return err
			}
			_, err = db.Commit(ctx,
				store.Change{Writes: []store.Write{{Ref: ref, Token: loaded[0].Token, Record: record}}})
		}
		if ctx.Err() != nil {
			return fmt.Errorf("start the usage: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// swaying is the store of a process that at each pass stores or deletes something large of the run's account, toward
// the warning. So the usage crosses the warning again and again, in both directions.
type swaying struct {
	*kv.Store
	run *run
}

func (s swaying) TakeGrowth() []store.OwnerGrowth {
	grown := s.Store.TakeGrowth()
	slot := licensing.SlotOf(s.run.owner).String()
	stored, err := s.run.etcd.client.Get(context.Background(), "lc2/"+slot+"/s/"+s.run.owner.AccountID+"/t/")
	if err != nil || len(stored.Kvs) == 0 {
		return grown // the run has not begun
	}
	now, err := readUsage(stored.Kvs[0])
	if err != nil {
		return grown
	}
	large := store.OwnerGrowth{Owner: s.run.owner}
	large.Revision, large.Bytes = stored.Header.Revision, largeBytes
	if now.bytes >= warningBytes {
		large.Bytes = -largeBytes
	}
	return append(grown, large)
}

// keepUsage stores the growth of the process until the process is killed or the run stops all passes.
func (p *process) keepUsage(r *run) {
	ctx, cancel := context.WithCancel(p.life)
	defer cancel()
	defer context.AfterFunc(r.keeping, cancel)()
	p.node.KeepUsage(ctx)
}

func usageWriters(states []*usageAt) [][]writer {
	var tables [][]writer
	for _, s := range states {
		tables = append(tables, s.writers)
	}
	return tables
}

// crossed reports whether a revision of the usage record crosses the warning upward.
func (s *usageAt) crossed(before *usageAt) bool { return s.warned && !before.warned }

// crossings counts how often the usage record has crossed the warning upward during the run.
func (t *timeline) crossings() (count int) {
	for n := 1; n < len(t.usages); n++ {
		if t.usages[n].crossed(t.usages[n-1]) {
			count++
		}
	}
	return count
}

// checkUsageEvents checks that a warning is recorded exactly when the size crosses the warning upward, once, in the
// same revision, and not within an hour of the warning before.
func (i *inspection) checkUsageEvents(states []*usageAt, keys []*eventsOf) {
	eventsAt := map[int64][]eventAt{}
	for _, k := range keys {
		eventsAt[k.revision] = k.events
	}
	before := &usageAt{}
	for n, s := range states {
		// The account had another budget before the run.
		if warns := s.bytes >= warningBytes; n > 0 && s.warned != warns {
			i.add("events", "usage: at %d bytes, warned is %v: %+v", s.bytes, s.warned, s)
		}
		events := eventsAt[s.revision]
		for _, e := range events {
			soon := before.warnedAt != 0 && isWithinHour(e.at, before.warnedAt)
			if len(events) > 1 || e.kind != licensing.EventBudgetWarning || !s.crossed(before) || soon ||
				e.at != s.warnedAt {
				i.add("events", "usage: the event %s can't lead from %+v to %+v", e.text(), before, s)
			}
		}
		if len(events) == 0 && (s.warnedAt != before.warnedAt || s.crossed(before) && !i.run.withinHour(s, before)) {
			i.add("events", "usage: no event leads from %+v to %+v", before, s)
		}
		before = s
	}
}

// withinHour reports whether the clock of the node that wrote a state can have shown a time within an hour of the
// warning before.
func (r *run) withinHour(s, before *usageAt) bool {
	if before.warnedAt == 0 {
		return false
	}
	for _, p := range r.processes {
		by := p.opened.Incarnation()
		if hex.EncodeToString(by[:]) == s.writers[0].by {
			shown := p.clock.span(0, time.Since(r.started))
			return isWithinHour(shown.from, before.warnedAt)
		}
	}
	return false
}

// isWithinHour reports whether two times in milliseconds are less than an hour apart.
func isWithinHour(one, other int64) bool {
	return max(one-other, other-one) < time.Hour.Milliseconds()
}
