package delivery

import (
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

const (
	// busyAttempts is how many attempts a second, for each thread that runs Go, are made
	// on a busy node beside the one that each endpoint may always have: a few
	// hundredths of a processor's time.
	busyAttempts = 100
	// busyBurst is for how long those are saved that were not made.
	busyBurst = 100 * time.Millisecond
)

// yielding has deliveries leave a busy node's processors to those who wait for its answers:
// what is told later was not lost, and a second later the node may have time. See [service.Service.Busy].
type busyLimiter struct {
	busy  func() bool
	clock func() time.Time
	limit *rate.Limiter
}

func newBusyLimiter(busy func() bool, clock func() time.Time) busyLimiter {
	most := float64(busyAttempts * runtime.GOMAXPROCS(0))
	return busyLimiter{busy, clock, rate.NewLimiter(rate.Limit(most), max(1, int(most*busyBurst.Seconds())))}
}

// mayAdd tells whether one more attempt may begin beside another one.
func (b *busyLimiter) mayAdd() bool { return !b.busy() || b.limit.AllowN(b.clock(), 1) }
