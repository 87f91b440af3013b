package rig

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress prints a line for each step, and on a terminal a bar for long steps. One
// goroutine at a time uses it; several may call a count function.
type Progress struct {
	out      io.Writer
	terminal bool
	began    time.Time
	bar      *progressbar.ProgressBar // of the current step; nil if it has none
}

// NewProgress returns a Progress whose time begins now.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, began: time.Now(), terminal: OnTerminal(out)}
}

// OnTerminal reports whether a writer is a terminal.
func OnTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Step begins the next step.
func (p *Progress) Step(format string, args ...any) {
	p.Clear()
	took := time.Since(p.began)
	fmt.Fprintf(p.out, "%3d:%02d  %s\n", int(took.Minutes()), int(took.Seconds())%60, fmt.Sprintf(format, args...))
}

// Say prints a line within a step. The step's bar comes back with the next count.
func (p *Progress) Say(format string, args ...any) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.out, "        %s\n", fmt.Sprintf(format, args...))
}

// Long begins a step that counts up to a total. The returned function takes the count so
// far, from any goroutine.
func (p *Progress) Long(total int, format string, args ...any) (count func(done int)) {
	p.Step(format, args...)
	if !p.terminal {
		return func(int) {}
	}
	bar := progressbar.NewOptions(total+1, // at its very end it would stop
		progressbar.OptionSetWriter(p.out), progressbar.OptionShowCount(), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond))
	p.bar = bar
	return func(done int) { _ = bar.Set(done) } // it fails where the terminal is gone
}

// Clear removes the bar, so that something else can be printed.
func (p *Progress) Clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
