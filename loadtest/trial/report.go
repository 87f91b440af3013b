package trial

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"licet/loadtest/stage"
)

// Report is what came of a trial.
type Report struct {
	Seed     uint64
	Proven   string // what is so where there is no problem
	Problems []string

	counts []string // lines of the first table
	lines  []string // of the second
}

// Count adds a line to the table of what was done, how often.
func (r *Report) Count(what string, value any) {
	r.counts = append(r.counts, fmt.Sprintf("%s\t%v", what, value))
}

// CountTraffic adds lines on how a balancer fared.
func (r *Report) CountTraffic(t stage.Traffic) {
	r.Count("requests sent to each node", t.Sent)
	r.Count("requests that got no answer, and were repeated", t.Broken)
	r.Count("requests that a node refused, and another served", t.Moved)
}

// Line adds a line to the table of the trial's own, of which the first is its head.
func (r *Report) Line(cells ...any) {
	line := fmt.Sprint(cells[0])
	for _, cell := range cells[1:] {
		line += fmt.Sprintf("\t%v", cell)
	}
	r.lines = append(r.lines, line)
}

// Problem notes something that is not as it must be.
func (r *Report) Problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Note keeps an error as a problem.
func (r *Report) Note(err error) {
	if err != nil {
		r.Problem("%v", err)
	}
}

// Leave has the nodes of a stage end in order, and notes where they do not, or where
// what they leave behind is not whole. It gives how many keys of each family are
// stored.
func (r *Report) Leave(ctx context.Context, s *stage.Stage) map[string]int {
	r.Note(s.EndAll())
	families, err := s.Verify(ctx)
	r.Note(err)
	r.Problems = append(r.Problems, s.Bugs()...)
	return families
}

// print writes the report for people.
func (r *Report) print(out io.Writer, took time.Duration) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "DONE\tTIMES\n%s\n\n%s\n", strings.Join(r.counts, "\n"), strings.Join(r.lines, "\n"))
	if err := table.Flush(); err != nil {
		return err
	}
	for _, problem := range r.Problems {
		fmt.Fprintln(out, "WRONG:", problem)
	}
	verdict := r.Proven
	if len(r.Problems) > 0 {
		verdict = fmt.Sprintf("WRONG: %d", len(r.Problems))
	}
	_, err := fmt.Fprintf(out, "\nseed %d, %v: %s\n", r.Seed, took.Round(time.Second), verdict)
	return err
}
