package nodetest

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/metrics"
	"licet/node/clocks"
	"licet/node/service"
	"licet/node/store"
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

// Source is a clock whose wall time only steps: the monotonic time stands still while a test advances the clock.
func (c *Clock) Source() (wall time.Time, elapsed time.Duration) { return c.Now(), 0 }

// comparing is the node of comparisons that NewComparison returns.
var comparing = store.Incarnation{9}

// NewComparison returns a comparison of a clock with the clocks of nodes that tests make up, see CompareWith.
func NewComparison(source clocks.Source) *clocks.Comparison {
	return clocks.New(clocks.Config{Self: comparing, Clock: source,
		Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), Log: zerolog.Nop()})
}

// CompareWith compares a clock of NewComparison with the clocks of other nodes, whose clocks are ahead by some times.
// By the monotonic time of the source, the node trusts its clock for some seconds after that, and counts as starting
// for some seconds after NewComparison. By [Clock.Source] these times do not end, however slow the machine is.
func CompareWith(c *clocks.Comparison, ahead ...time.Duration) {
	created := time.Now().UnixNano() // other nodes than before
	own := -created                  // another registration than before, older than the others'
	for version := range int64(4) {
		now, registerAgain := c.Stamp()
		if registerAgain {
			c.Leave()
			c.Compare(nil)
		}
		stamps := []store.Stamp{{Node: comparing, At: now, Created: own, Version: version + 1}}
		for i, by := range ahead {
			stamps = append(stamps, store.Stamp{
				Node: store.Incarnation{byte(i + 1)}, At: now.Add(by), Created: created, Version: version + 1,
			})
		}
		c.Compare(stamps)
	}
}
