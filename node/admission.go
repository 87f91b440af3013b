package node

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet"
	"licet/metrics"
)

const (
	// servedAtOnce is about how many commands the store works on at a time: kv
	// has two requests of writes under way as a rule, and up to eight where they
	// are full, each of up to 128 operations. Twice as many are always let in.
	// Half of them are being served, not waiting, however slow the store is; the
	// others are those that it takes up next, all at once if its requests come
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
// served, it lets in as many as are served within the delay that is allowed:
//
//	limit = servedAtOnce + max(rate × delay, servedAtOnce)
//
// As the least limit keeps the store busy, the rate that is measured does not
// depend on the limit that follows from it, and the two can't talk each other
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

	log      zerolog.Logger
	refusing atomic.Bool  // something was refused for want of places since that was last looked at
	warned   atomic.Int64 // when the log was told last, in Unix seconds
}

// shedCounters count refusals by their reason.
type shedCounters struct {
	limit      prometheus.Counter // the node has as much under way as it may
	share      prometheus.Counter // the record has its share of that
	mailbox    prometheus.Counter // the record's mailbox is full
	deadline   prometheus.Counter // its turn would not have come in time
	background prometheus.Counter // nobody waits for it, and others are waiting
	lists      prometheus.Counter // as many pages of listings are being read as may be
	waits      prometheus.Counter // as many wait for events as may
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
		shed: shedCounters{
			limit:      shed.WithLabelValues("limit"),
			share:      shed.WithLabelValues("share"),
			mailbox:    shed.WithLabelValues("mailbox"),
			deadline:   shed.WithLabelValues("deadline"),
			background: shed.WithLabelValues("background"),
			lists:      shed.WithLabelValues("lists"),
			waits:      shed.WithLabelValues("waits"),
		},
	}
	a.metrics.CommandsUnderWay.From(func() float64 { return float64(a.underWay.Load()) })
	a.rate.begin(cfg.Clock())
	a.setLimit()
	return a
}

// enter lets a command or a read in, or refuses it with ErrOverloaded. Who was
// let in must call leave.
func (a *admission) enter(ctx context.Context) error {
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
	return nil
}

// enterHop lets in commands that came by a hop, all of them or none; leaveHop
// must be called. The node that sent them has found a place for each, so they
// take none here. If they were refused, that node would contend for their
// license instead, which takes more of everybody; so they are refused only where
// memory is at stake.
func (a *admission) enterHop(n int) error {
	if a.hopped.Add(int64(n)) > maxUnderWay {
		a.hopped.Add(-int64(n))
		return refuse(a.shed.limit)
	}
	return nil
}

// leaveHop ends commands that enterHop has let in. They count as served.
func (a *admission) leaveHop(n, served int) {
	a.hopped.Add(-int64(n))
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

func (a *admission) refuseFull() error {
	if !a.refusing.Load() {
		a.refusing.Store(true)
	}
	return refuse(a.shed.limit)
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

// enterBackground lets in what nobody waits for, while at least half of the
// limit is free.
func (a *admission) enterBackground() error {
	if a.underWay.Load() >= a.limit.Load()/2 {
		return refuse(a.shed.background)
	}
	a.underWay.Add(1)
	return nil
}

// Busy tells whether so many commands are under way that whatever can wait should.
func (n *Node) Busy() bool {
	return n.admission.underWay.Load()+n.admission.hopped.Load() >= n.admission.crowd
}

// leave ends what enter has let in. Only what the store has answered counts as
// served: commands that all fail at their deadline make no rate.
func (a *admission) leave(err error) {
	a.underWay.Add(-1)
	if err == nil || wasServed(err) {
		a.rate.served.Add(1)
	}
}

func wasServed(err error) bool {
	switch licet.ReasonOf(err) {
	case licet.ReasonUnavailable, licet.ReasonOverloaded, licet.ReasonOutcomeUnknown, licet.ReasonInternal:
		return false
	}
	return true
}

// mayJoin decides whether one more command, which enter has let in, may wait
// for a record that has so many under way: a record's commands may be as many
// as there are places free. So one that is stormed takes half of the limit and
// leaves the other half to the rest, two take a third each and leave a third,
// and a record with nothing under way finds a place while there is any.
func (a *admission) mayJoin(ofRecord int) bool {
	return int64(ofRecord) <= a.limit.Load()-a.underWay.Load()
}

func (a *admission) setLimit() {
	waiting := max(int64(a.rate.value()*a.delay.Seconds()), a.serving)
	limit := min(a.serving+waiting, maxUnderWay)
	a.limit.Store(limit)
	a.metrics.CommandsLimit.Set(float64(limit))
}

func refuse(counter prometheus.Counter) error {
	counter.Inc()
	return licet.ErrOverloaded
}
