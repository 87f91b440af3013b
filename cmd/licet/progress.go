package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// meter shows on a terminal how far something is, and nothing elsewhere. It is
// used by one goroutine.
type meter struct {
	terminal io.Writer // nil where there is none
	what     string
	bytes    bool
	bar      *progressbar.ProgressBar // from the first set on
}

// newMeter makes a meter of bytes, or of a number of things. It shows on
// stderr: what a command prints is for others to read.
func newMeter(stderr io.Writer, what string, bytes bool) *meter {
	m := &meter{what: what, bytes: bytes}
	if onTerminal(stderr) {
		m.terminal = stderr
	}
	return m
}

// shown tells whether anybody sees it.
func (m *meter) shown() bool { return m.terminal != nil }

// total asks how much there is in all if anybody sees it. It is not worth
// failing over: without an answer it is 0, and just what is done is shown.
func (m *meter) total(count func() (int64, error)) int64 {
	if !m.shown() {
		return 0
	}
	total, err := count()
	if err != nil {
		return 0
	}
	return total
}

// set shows how much is done of a total, which may be an estimate.
func (m *meter) set(done, total int64) {
	if !m.shown() {
		return
	}
	// One more than there is: at its end the bar would stop, and an estimate
	// may grow.
	total = max(total, done) + 1
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
	if m.bar.GetMax64() != total {
		m.bar.ChangeMax64(total)
	}
	_ = m.bar.Set64(done) // it fails where the terminal is gone
}

// clear takes it off the line, so that something else can be printed.
func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}

// onTerminal tells whether there is somebody at the other end of a stream.
func onTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
