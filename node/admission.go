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
	// servedAtOnce is about how many commands the store works on at a time: kv has two write requests in
	// flight as a rule, and up to eight if they are full, each of up to 128 operations. One owner always
	// gets in twice as many: half of them are being served, however slow the store is, and the store takes
	// up the other half next, all at once if its requests come back together. With fewer commands the store
	// would be idle at times.
	servedAtOnce = 512
	// maxUnderWay bounds the commands under way on the fastest machine. As many items wait in one batcher of
	// kv, so the batchers never overflow.
	maxUnderWay = 8192
	// defaultQueueDelay is a fraction of a request's time, and several times the time of a swap.
	defaultQueueDelay = 100 * time.Millisecond
	// busyCommands is how many commands are under way, for each thread that runs Go, when a node most likely
	// works at its capacity: the commands wait for each other then.
	busyCommands = 16
	// warnEvery is how often the node logs a continuing overload.
	warnEvery = time.Minute
)

// admission bounds the commands and reads under way, and refuses the rest at once, before the node did anything
// for them. By Little's law, a command waits for as long as it takes to serve the commands before it. So besides
// the commands that are being served, the node lets in as many as it serves within the allowed delay. An owner may
// have as many under way as there are places free, so an owner alone takes half of the places. Hence the limit is
// twice as high:
//
//	limit = 2 × (servedAtOnce + max(rate × delay, servedAtOnce))
//
// Half of the least limit keeps the store busy, so the measured rate does not depend on the limit that follows
// from it, and the two can't push each other down. See docs/decisions/0010-admission.md.
type admission struct {
	serving  int64 // servedAtOnce, except in tests
	busyFrom int64 // see Busy
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
	refusing atomic.Bool  // the node has refused for want of places since the last look
	warned   atomic.Int64 // when the node logged a warning last, in Unix seconds
}

// shedCounters count refusals by their reason.
type shedCounters struct {
	limit      prometheus.Counter // the node has as much under way as it may
	owner      prometheus.Counter // the owner has no place left
	share      prometheus.Counter // the record has no place left of its owner's
	mailbox    prometheus.Counter // the record's mailbox is full
	deadline   prometheus.Counter // the command's turn would have come too late
	background prometheus.Counter // background work that gives way to requests
}

func newAdmission(cfg *Config) *admission {
	shed := cfg.Metrics.CommandsShed
	a := &admission{
		serving:  servedAtOnce,
		busyFrom: busyCommands * int64(runtime.GOMAXPROCS(0)),
		delay:    cfg.QueueDelay,
		clock:    cfg.Clock,
		metrics:  cfg.Metrics,
		log:      cfg.Log,
		shares:   &shares{seed: maphash.MakeSeed()}, hopShare: &shares{seed: maphash.MakeSeed()},
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

// enter lets in a command or a read that counts for a share, or refuses it with ErrOverloaded. A caller that was
// let in must call leave.
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

// join counts one more command under way for a share, unless the share has more than there are places free. The
// caller has taken a place already, which is not free.
func (a *admission) join(who share) bool {
	if a.shares.add(who, 1)-1 <= a.freeFor(who) {
		return true
	}
	a.shares.add(who, -1)
	return false
}

// become counts a read of an unknown owner for the owner that the read has found, or refuses the read if that
// owner has no place left. become returns the share to call leave with.
func (a *admission) become(unknown share, owner licensing.Owner) (share, error) {
	who := a.shares.of(owner)
	if !a.join(who) {
		return unknown, a.refuseOwner()
	}
	a.shares.add(unknown, -1)
	return who, nil
}

// free returns how many places are free.
func (a *admission) free() int64 { return a.limit.Load() - a.underWay.Load() }

// freeFor returns how many places are free for a share. A network shares the places of its class, so a class may have
// as much under way as there are places free, and a network as much as is then left to the class.
func (a *admission) freeFor(who share) int64 {
	if who.isNetwork() {
		return a.free() - a.shares.under(unknownLicense)
	}
	return a.free()
}

// halfFull reports whether at least half of the places are taken. Below that, no owner has more under way than there
// are places free.
func (a *admission) halfFull() bool { return 2*a.underWay.Load() >= a.limit.Load() }

// refuseIfShared refuses a command of a share that has no place left. It takes no place.
func (a *admission) refuseIfShared(who share) error {
	if a.shares.under(who) < a.free() {
		return nil
	}
	return a.refuseOwner()
}

// enterHop lets in commands that came by a hop, all of them or none; the caller must call leaveHop. The node that
// sent the commands has a place for each, so they take no place here. A refusal would make that node contend for
// the license, which costs all nodes more. So enterHop refuses only to bound memory, and then by the same rule
// for owners.
func (a *admission) enterHop(who share, n int) error {
	free := maxUnderWay - a.hopped.Add(int64(n))
	if own := a.hopShare.add(who, n) - int64(n); free < 0 || own > free {
		a.hopped.Add(-int64(n))
		a.hopShare.add(who, -n)
		return refuse(a.shed.limit)
	}
	return nil
}

// leaveHop ends n commands that enterHop has let in, of which the node has served some.
func (a *admission) leaveHop(who share, n, served int) {
	a.hopped.Add(-int64(n))
	a.hopShare.add(who, -n)
	a.rate.served.Add(int64(served))
}

// full reports whether there is no place left. Most requests to a full node so avoid the counter that the
// commands under way contend for.
func (a *admission) full() bool { return a.underWay.Load() >= a.limit.Load() }

// refuseIfFull refuses a request while there is no place left. It takes no place.
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

// refuseFor refuses a request for want of a place. warn logs that later.
func (a *admission) refuseFor(reason prometheus.Counter) error {
	if !a.refusing.Load() {
		a.refusing.Store(true)
	}
	return refuse(reason)
}

// warn logs, once in a while, that the node refuses requests: refusals come by the thousand, and must not cost
// much themselves.
func (a *admission) warn(now time.Time) {
	if !a.refusing.Swap(false) {
		return
	}
	last, unix := a.warned.Load(), now.Unix()
	if unix-last >= int64(warnEvery/time.Second) && a.warned.CompareAndSwap(last, unix) {
		a.log.Warn().Int64("limit", a.limit.Load()).Float64("rate", math.Round(a.rate.value())).
			Msg("overload: the node refuses requests that it can't serve in time")
	}
}

// tooLate reports whether ctx ends before the node has served so many commands.
func (a *admission) tooLate(ctx context.Context, before int64) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline).Seconds()*a.rate.steady() < float64(before)
}

// enterBackground lets in work that no caller waits for, while a quarter of the places is free and the owner has
// less than a third as much under way as there are places free. So an owner's background work gives way to the
// owner's own requests, but not to the requests of one or two other owners, however many they are. It refuses with
// ErrNoRoom; ErrOwnerBusy is an ErrNoRoom too.
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

// enterServed lets in work that follows a served command, without any limit. The caller must call leave.
func (a *admission) enterServed(who share) {
	a.underWay.Add(1)
	a.shares.add(who, 1)
}

// Busy reports whether so many commands are under way that all work which can wait should wait.
func (n *Node) Busy() bool {
	return n.admission.underWay.Load()+n.admission.hopped.Load() >= n.admission.busyFrom
}

// leave ends a command or read that enter has let in. Only what the store has answered counts as served:
// commands that all fail at their deadline make no rate.
func (a *admission) leave(who share, err error) {
	a.underWay.Add(-1)
	a.shares.add(who, -1)
	if err == nil || wasServed(err) {
		a.rate.served.Add(1)
	}
}

// wasServed reports whether an error is an answer of the store.
func wasServed(err error) bool {
	switch licensing.ReasonOf(err) {
	case licensing.ReasonUnavailable, licensing.ReasonOverloaded, licensing.ReasonOutcomeUnknown,
		licensing.ReasonInternal, licensing.ReasonRateLimited:
		return false
	}
	return true
}

// mayJoin reports whether one more command, which enter has let in, may wait for a record with so many commands
// under way: a record may have as many as its owner has places left. So a record under a storm takes a third of
// the limit, and leaves a sixth to its owner's other records and half to other owners. A record with nothing
// under way finds a place as long as its owner does.
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
