package node

import (
	"context"
	"hash/maphash"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
)

const (
	// servedAtOnce is about how many commands the store works on at a time: kv
	// has two requests of writes under way as a rule, and up to eight where they
	// are full, each of up to 128 operations. One owner always gets in twice as
	// many. Half of them are being served, not waiting, however slow the store is;
	// the others are those that it takes up next, all at once if its requests come
	// back together. With fewer it would have less to do than it could.
	servedAtOnce = 512
	// maxUnderWay bounds the commands under way on the fastest of machines. It is
	// as many parts as wait in one of kv's lines, so that those never overflow.
	maxUnderWay = 8192
	// defaultQueueDelay is a fraction of a request's time, and several times that
	// of a swap.
	defaultQueueDelay = 100 * time.Millisecond
	// busyCommands is how many commands are under way, for each thread that runs Go, where a
	// node has most likely as much to do as it can: they wait for each other then.
	busyCommands = 16
	// warnEvery is how often the log is told of an overload that goes on.
	warnEvery = time.Minute
)

// admission bounds what the node has under way, and refuses the rest at once,
// before anything was done for it. By Little's law, commands wait for as long
// as it takes to serve those before them; so besides the ones that are being
// served, it lets in as many as are served within the delay that is allowed. An
// owner may have as many under way as there are places free, and so takes half of
// the places alone. Hence the limit is twice of that:
//
//	limit = 2 × (servedAtOnce + max(rate × delay, servedAtOnce))
//
// As half of the least limit keeps the store busy, the rate that is measured does
// not depend on the limit that follows from it, and the two can't talk each other
// down. See docs/decisions/0010-admission.md.
type admission struct {
	serving  int64 // servedAtOnce, but for tests
	crowd    int64 // see Busy
	delay    time.Duration
	clock    func() time.Time
	metrics  *metrics.Metrics
	shed     shedCounters
	underWay atomic.Int64
	hopped   atomic.Int64 // commands that came by a hop
	limit    atomic.Int64
	rate     serviceRate
	shares   *shares // of underWay, by owner
	hopShare *shares // of hopped, by owner

	log      zerolog.Logger
	refusing atomic.Bool  // something was refused for want of places since that was last looked at
	warned   atomic.Int64 // when the log was told last, in Unix seconds
}

// shedCounters count refusals by their reason.
type shedCounters struct {
	limit      prometheus.Counter // the node has as much under way as it may
	owner      prometheus.Counter // the owner has its share of that
	share      prometheus.Counter // the record has its share of its owner's
	mailbox    prometheus.Counter // the record's mailbox is full
	deadline   prometheus.Counter // its turn would not have come in time
	background prometheus.Counter // nobody waits for it, and others are waiting
}

func newAdmission(cfg *Config) *admission {
	shed := cfg.Metrics.CommandsShed
	a := &admission{
		serving: servedAtOnce,
		crowd:   busyCommands * int64(runtime.GOMAXPROCS(0)),
		delay:   cfg.QueueDelay,
		clock:   cfg.Clock,
		metrics: cfg.Metrics,
		log:     cfg.Log,
		shares:  &shares{seed: maphash.MakeSeed()}, hopShare: &shares{seed: maphash.MakeSeed()},
		shed: shedCounters{
			limit:      shed.WithLabelValues("limit"),
			owner:      shed.WithLabelValues("owner"),
			share:      shed.WithLabelValues("share"),
			mailbox:    shed.WithLabelValues("mailbox"),
			deadline:   shed.WithLabelValues("deadline"),
			background: shed.WithLabelValues("background"),
		},
	}
	a.metrics.CommandsUnderWay.AddSource(func() float64 { return float64(a.underWay.Load()) })
	a.rate.begin(cfg.Clock())
	a.setLimit()
	return a
}

// enterFor lets a command or a read of an owner in, or refuses it with
// ErrOverloaded. A caller that was let in must call leave with the share.
func (a *admission) enterFor(ctx context.Context, owner licensing.Owner) (share, error) {
	who := a.shares.of(owner)
	return who, a.enter(ctx, who)
}

// enter lets a command or a read in that counts for a share, or refuses it with
// ErrOverloaded. A caller that was let in must call leave.
func (a *admission) enter(ctx context.Context, who share) error {
	if err := a.refuseIfFull(); err != nil {
		return err
	}
	count := a.underWay.Add(1)
	if count > a.limit.Load() {
		a.underWay.Add(-1)
		return a.refuseFull()
	}
	if count > a.serving {
		a.rate.busy()
		if a.tooLate(ctx, count-a.serving) {
			a.underWay.Add(-1)
			return refuse(a.shed.deadline)
		}
	}
	if !a.join(who) {
		a.underWay.Add(-1)
		return a.refuseOwner()
	}
	return nil
}

// join counts one more of those that are under way for a share, unless the share
// has more than there are places free. The caller holds a place, which is not free.
func (a *admission) join(who share) bool {
	if a.shares.add(who, 1)-1 <= a.free() {
		return true
	}
	a.shares.add(who, -1)
	return false
}

// become counts a read that was let in as a stranger for its owner, or refuses the
// read where the owner has no place left. It returns the share to call leave with.
func (a *admission) become(stranger share, owner licensing.Owner) (share, error) {
	who := a.shares.of(owner)
	if !a.join(who) {
		return stranger, a.refuseOwner()
	}
	a.shares.add(stranger, -1)
	return who, nil
}

// free returns how many places are free.
func (a *admission) free() int64 { return a.limit.Load() - a.underWay.Load() }

// crowded reports whether an owner may have more under way than there are places
// free, which takes at least half of the places.
func (a *admission) crowded() bool { return 2*a.underWay.Load() >= a.limit.Load() }

// refuseIfShared refuses a command that counts for a share which has no place left.
// It takes no place.
func (a *admission) refuseIfShared(who share) error {
	if a.shares.under(who) < a.free() {
		return nil
	}
	return a.refuseOwner()
}

// enterHop lets in commands that came by a hop, all of them or none; leaveHop
// must be called. The node that sent them has found a place for each, so they
// take none here. If they were refused, that node would contend for their
// license instead, which takes more of everybody; so they are refused only where
// memory is at stake, and then by the same rule for owners.
func (a *admission) enterHop(who share, n int) error {
	free := maxUnderWay - a.hopped.Add(int64(n))
	if own := a.hopShare.add(who, n) - int64(n); free < 0 || own > free {
		a.hopped.Add(-int64(n))
		a.hopShare.add(who, -n)
		return refuse(a.shed.limit)
	}
	return nil
}

// leaveHop ends commands that enterHop has let in. They count as served.
func (a *admission) leaveHop(who share, n, served int) {
	a.hopped.Add(-int64(n))
	a.hopShare.add(who, -n)
	a.rate.served.Add(int64(served))
}

// full tells whether there is no place left. Most of what comes to a node that
// is full need not touch the counter that those inside it contend for.
func (a *admission) full() bool { return a.underWay.Load() >= a.limit.Load() }

// refuseIfFull refuses what comes while there is no place left. It takes none.
func (a *admission) refuseIfFull() error {
	if now := a.clock(); a.rate.observe(now) {
		a.setLimit()
		a.warn(now)
	}
	if !a.full() {
		return nil
	}
	a.rate.busy()
	return a.refuseFull()
}

func (a *admission) refuseFull() error { return a.refuseFor(a.shed.limit) }

func (a *admission) refuseOwner() error { return a.refuseFor(a.shed.owner) }

// refuseFor refuses what the node has no place for, which the log is told of.
func (a *admission) refuseFor(reason prometheus.Counter) error {
	if !a.refusing.Load() {
		a.refusing.Store(true)
	}
	return refuse(reason)
}

// warn tells the log that the node refuses, once in a while: refusals come by
// the thousand, and must not make work of their own.
func (a *admission) warn(now time.Time) {
	if !a.refusing.Swap(false) {
		return
	}
	last, unix := a.warned.Load(), now.Unix()
	if unix-last >= int64(warnEvery/time.Second) && a.warned.CompareAndSwap(last, unix) {
		a.log.Warn().Int64("limit", a.limit.Load()).Float64("rate", math.Round(a.rate.value())).
			Msg("more comes than can be served in time; some is refused")
	}
}

// tooLate reports whether ctx ends before so many commands are served.
func (a *admission) tooLate(ctx context.Context, before int64) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline).Seconds()*a.rate.steady() < float64(before)
}

// enterBackground lets in work that no caller waits for, while a quarter of the
// places is free and the owner has less than a third as much under way as there are
// places free. So an owner's background work yields to the owner's own requests, but
// not to those of one or two other owners, however many they are. It refuses with
// ErrNoRoom, which ErrOwnerBusy is too.
func (a *admission) enterBackground(who share) error {
	if limit := a.limit.Load(); a.underWay.Load() >= limit-limit/4 {
		a.shed.background.Inc()
		return ErrNoRoom
	}
	if 3*a.shares.under(who) >= a.free() {
		a.shed.background.Inc()
		return ErrOwnerBusy
	}
	a.underWay.Add(1)
	a.shares.add(who, 1)
	return nil
}

// Busy tells whether so many commands are under way that whatever can wait should.
func (n *Node) Busy() bool {
	return n.admission.underWay.Load()+n.admission.hopped.Load() >= n.admission.crowd
}

// leave ends what enter has let in. Only what the store has answered counts as
// served: commands that all fail at their deadline make no rate.
func (a *admission) leave(who share, err error) {
	a.underWay.Add(-1)
	a.shares.add(who, -1)
	if err == nil || wasServed(err) {
		a.rate.served.Add(1)
	}
}

func wasServed(err error) bool {
	switch licensing.ReasonOf(err) {
	case licensing.ReasonUnavailable, licensing.ReasonOverloaded, licensing.ReasonOutcomeUnknown, licensing.ReasonInternal:
		return false
	}
	return true
}

// mayJoin decides whether one more command, which enter has let in, may wait for a
// record that has so many under way: a record's commands may be as many as its
// owner has places left, of those that are free. So a record that is stormed takes
// a third of the limit, and leaves a sixth to its owner's other records and half to
// other owners. A record with nothing under way finds a place while its owner does.
func (a *admission) mayJoin(ofRecord int, who share) bool {
	return int64(ofRecord) <= max(a.free()-a.shares.under(who), 0)
}

func (a *admission) setLimit() {
	waiting := max(int64(a.rate.value()*a.delay.Seconds()), a.serving)
	limit := min(2*(a.serving+waiting), maxUnderWay)
	a.limit.Store(limit)
	a.metrics.CommandsLimit.Set(float64(limit))
}

func refuse(counter prometheus.Counter) error {
	counter.Inc()
	return licensing.ErrOverloaded
}
