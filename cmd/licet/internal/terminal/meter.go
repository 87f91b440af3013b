package terminal

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Meter shows on a terminal how far something is, and nothing elsewhere. It is
// used by one goroutine.
type Meter struct {
	terminal io.Writer // nil where there is none
	what     string
	bytes    bool
	bar      *progressbar.ProgressBar // from the first set on
}

// NewMeter makes a meter of bytes, or of a number of things. It shows on
// stderr: what a command prints is for others to read.
func NewMeter(stderr io.Writer, what string, bytes bool) *Meter {
	m := &Meter{what: what, bytes: bytes}
	if Is(stderr) {
		m.terminal = stderr
	}
	return m
}

// Shown tells whether anybody sees it.
func (m *Meter) Shown() bool { return m.terminal != nil }

// Total asks how much there is in all if anybody sees it. It is not worth
// failing over: without an answer it is 0, and just what is done is shown.
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

// Set shows how much is done of a total, which may be an estimate. Where nobody
// knows how much there is, the total is less than 0.
func (m *Meter) Set(done, total int64) {
	if !m.Shown() {
		return
	}
	if total >= 0 {
		// One more than there is: at its end the bar would stop, and an estimate
		// may grow.
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
	_ = m.bar.Set64(done) // it fails where the terminal is gone
}

// Clear takes it off the line, so that something else can be printed.
func (m *Meter) Clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}
