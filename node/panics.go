package node

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/rs/zerolog"

	"licet/metrics"
)

// ReportPanic counts a panic and logs, by an event that says where it was caught,
// where it came from. It is for every package that catches one. Of its value only
// the type is logged, unless it is the runtime's own: it may hold what a caller sent.
func ReportPanic(m *metrics.Metrics, event *zerolog.Event, p any) {
	m.Panics.Inc()
	event = event.Str("type", fmt.Sprintf("%T", p))
	if fault, ok := p.(runtime.Error); ok {
		event = event.Str("fault", fault.Error())
	}
	event.Str("stack", string(debug.Stack())).Msg("panic")
}
