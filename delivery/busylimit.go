package delivery

import (
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

const (
	// busyAttempts is the rate of extra attempts on a busy node, per second and per GOMAXPROCS. It takes a few
	// hundredths of a processor. The first attempt of each endpoint does not count.
	busyAttempts = 100
	// busyBurst is how long unused attempts stay available.
	busyBurst = 100 * time.Millisecond
)

// busyLimiter limits extra attempts on a busy node, so that requests get the processors. Delaying events is
// harmless; delaying requests is not. See [service.Service.Busy].
type busyLimiter struct {
	busy  func() bool
	clock func() time.Time
	limit *rate.Limiter
}

func newBusyLimiter(busy func() bool, clock func() time.Time) busyLimiter {
	most := float64(busyAttempts * runtime.GOMAXPROCS(0))
	return busyLimiter{busy, clock, rate.NewLimiter(rate.Limit(most), max(1, int(most*busyBurst.Seconds())))}
}

// mayAdd reports whether one more extra attempt may start.
func (b *busyLimiter) mayAdd() bool { return !b.busy() || b.limit.AllowN(b.clock(), 1) }
