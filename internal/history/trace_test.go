package history

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// trace notes which commits and hops a run made, and how they ended. Whoever looks for the cause of a violation reads
// there which node ran a command, and what that node answered.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (r *run) noteCommit(by *process, change store.Change, began time.Duration, outcome store.Outcome, err error) {
	var text strings.Builder
	for _, w := range change.Writes {
		if l := w.Record.License; l != nil {
			fmt.Fprintf(&text, " license %v, revision %d, devices %v;",
				w.Ref.LicenseID(), l.Revision, boundIn(&w.Record))
			continue
		}
		fmt.Fprintf(&text, " %q;", fmt.Sprint(w.Ref))
	}
	r.trace.add("%v to %v: %v commits%s landed %v, %v", began, time.Since(r.started), by.opened.Incarnation(),
		&text, outcome.Landed, err)
}

// boundIn returns the devices of a record that are bound, as far as the record has them, sorted.
func boundIn(r *licensing.Record) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for id, entry := range r.Devices {
			if entry.Bound && !yield(id) {
				return
			}
		}
	})
}

func (r *run) noteHop(at *process, hop node.Hop, began time.Duration, answer node.HopAnswer, err error) {
	var text strings.Builder
	for n, cmd := range hop.Commands {
		fmt.Fprintf(&text, " %T %s", cmd, cmd.DeviceID())
		if n < len(answer.Answers) {
			fmt.Fprintf(&text, " (%s)", licensing.ReasonOf(answer.Answers[n].Err))
		}
	}
	r.trace.add("%v to %v: %v runs for %v on %v:%s: %v", began, time.Since(r.started), at.opened.Incarnation(),
		hop.From, hop.License, &text, err)
}

func (t *trace) add(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n") + "\n"
}
