package trial

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"licet/loadtest/stage"
)

// Report is the result of a trial.
type Report struct {
	Seed     uint64   `json:"seed"`
	Proven   string   `json:"-"` // the verdict of a report without problems
	Problems []string `json:"problems"`
	Notes    []string `json:"notes,omitempty"`

	counts []string // lines of the first table
	lines  []string // of the second
}

// Count adds a line to the table of what was done, and how often.
func (r *Report) Count(what string, value any) {
	r.counts = append(r.counts, fmt.Sprintf("%s\t%v", what, value))
}

// CountTraffic adds the counts of a balancer.
func (r *Report) CountTraffic(t stage.Traffic) {
	r.Count("requests sent to each node", t.Sent)
	r.Count("requests that got no answer, and were repeated", t.Unanswered)
	r.Count("requests that a node refused, and another served", t.Moved)
}

// Line adds a line to the trial's own table. The first line is the head.
func (r *Report) Line(cells ...any) {
	line := fmt.Sprint(cells[0])
	for _, cell := range cells[1:] {
		line += fmt.Sprintf("\t%v", cell)
	}
	r.lines = append(r.lines, line)
}

// Problem adds a problem.
func (r *Report) Problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Note adds an error as a problem. A nil error is a no-op.
func (r *Report) Note(err error) {
	if err != nil {
		r.Problem("%v", err)
	}
}

// shownProblems is how many problems are printed.
const shownProblems = 100

// Print writes the report for people.
func (r *Report) Print(out io.Writer, took time.Duration) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.counts) > 0 {
		fmt.Fprintf(table, "DONE\tTIMES\n%s\n\n", strings.Join(r.counts, "\n"))
	}
	fmt.Fprintln(table, strings.Join(r.lines, "\n"))
	if err := table.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, note)
	}
	for _, problem := range r.Problems[:min(shownProblems, len(r.Problems))] {
		fmt.Fprintln(out, "WRONG:", problem)
	}
	verdict := r.Proven
	if len(r.Problems) > 0 {
		verdict = fmt.Sprintf("WRONG: %d", len(r.Problems))
	}
	_, err := fmt.Fprintf(out, "\nseed %d, %v: %s\n", r.Seed, took.Round(time.Second), verdict)
	return err
}
