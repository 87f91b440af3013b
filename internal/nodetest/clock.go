package nodetest

import (
	"sync/atomic"
	"time"

	"licet/node/service"
)

// Clock is a clock that tests advance.
type Clock struct{ offset atomic.Int64 }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.offset.Load()))
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) { c.offset.Add(int64(d)) }

// WithClock makes a service use a clock.
func WithClock(clock *Clock) func(*service.Config) {
	return func(cfg *service.Config) { cfg.Clock = clock.Now }
}
