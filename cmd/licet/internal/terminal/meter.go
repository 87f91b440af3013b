package terminal

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Meter shows progress on a terminal, and nothing elsewhere. Only one goroutine may use a Meter.
type Meter struct {
	terminal io.Writer // nil where there is none
	what     string
	bytes    bool
	bar      *progressbar.ProgressBar // from the first set on
}

// NewMeter returns a meter of bytes or of items. The meter writes to stderr, since the output of a command goes to
// stdout.
func NewMeter(stderr io.Writer, what string, bytes bool) *Meter {
	m := &Meter{what: what, bytes: bytes}
	if Is(stderr) {
		m.terminal = stderr
	}
	return m
}

// Shown reports whether the meter writes to a terminal.
func (m *Meter) Shown() bool { return m.terminal != nil }

// Total returns the total that count returns, or 0 if the meter is not shown or count fails. With a total of 0 the
// meter shows only the progress.
func (m *Meter) Total(count func() (int64, error)) int64 {
	if !m.Shown() {
		return 0
	}
	total, err := count()
	if err != nil {
		return 0
	}
	return total
}

// Set shows the progress toward a total, which may be an estimate. A total below 0 is unknown.
func (m *Meter) Set(done, total int64) {
	if !m.Shown() {
		return
	}
	if total >= 0 {
		// The bar ends at one more than the total, since a bar stops at its end, and an estimate may grow.
		total = max(total, done) + 1
	}
	if m.bar == nil {
		m.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(m.terminal),
			progressbar.OptionSetDescription(m.what),
			progressbar.OptionShowBytes(m.bytes),
			progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
		)
	}
	if total >= 0 && m.bar.GetMax64() != total {
		m.bar.ChangeMax64(total)
	}
	_ = m.bar.Set64(done) // fails if the terminal is gone
}

// Clear removes the meter from its line, so that the program can print.
func (m *Meter) Clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}
