package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"licet/loadtest/stage"
)

// report is what came of a day.
type report struct {
	seed     uint64
	took     time.Duration
	done     map[string]int
	traffic  stage.Traffic
	stop     time.Duration // the longest orderly one of a node
	lines    []line
	problems []string
}

func (r *report) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// note keeps an error as a problem.
func (r *report) note(err error) {
	if err != nil {
		r.problem("%v", err)
	}
}

// print writes the report for people.
func (r *report) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DONE\tTIMES")
	for _, what := range slices.Sorted(maps.Keys(r.done)) {
		fmt.Fprintf(table, "%s\t%d\n", what, r.done[what])
	}
	fmt.Fprintf(table, "longest orderly stop of a node\t%v\n", r.stop.Round(time.Millisecond))
	fmt.Fprintf(table, "requests sent to each node\t%v\n", r.traffic.Sent)
	fmt.Fprintf(table, "requests that got no answer, and were repeated\t%d\n", r.traffic.Broken)
	fmt.Fprintf(table, "requests that a node refused, and another served\t%d\n", r.traffic.Moved)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(table, "\nCOUNTED\tLEDGER\tSERVICE\t")
	for _, line := range r.lines {
		mark := ""
		if !line.agrees() {
			mark = "DIFFERS"
		}
		fmt.Fprintf(table, "%s\t%v\t%v\t%s\n", line.what, line.ledger, line.service, mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, problem := range r.problems {
		fmt.Fprintln(out, "WRONG:", problem)
	}
	verdict := "the ledger and the service agree"
	if len(r.problems) > 0 {
		verdict = fmt.Sprintf("WRONG: %d", len(r.problems))
	}
	_, err := fmt.Fprintf(out, "\nseed %d, %v: %s\n", r.seed, r.took.Round(time.Second), verdict)
	return err
}
