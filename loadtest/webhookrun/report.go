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

// report is what came of a run.
type report struct {
	seed     uint64
	took     time.Duration
	done     map[string]int
	traffic  stage.Traffic
	kills    int
	both     int // of which took two nodes at once
	late     int // of which while only deliveries were left
	hurried  int // times that the unreliable endpoint was disabled and enabled
	events   int // in the feed
	lines    []deliveries
	problems []string
}

// deliveries are the figures of one endpoint.
type deliveries struct {
	name                           string
	calls, failed, events, repeats int
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
	fmt.Fprintf(table, "nodes killed and started again\t%d\n", r.kills)
	fmt.Fprintf(table, "… of which two at once\t%d\n", r.both)
	fmt.Fprintf(table, "… of which while only deliveries were left\t%d\n", r.late)
	fmt.Fprintf(table, "times that the unreliable endpoint was enabled again\t%d\n", r.hurried)
	fmt.Fprintf(table, "requests sent to each node\t%v\n", r.traffic.Sent)
	fmt.Fprintf(table, "requests that got no answer, and were repeated\t%d\n", r.traffic.Broken)
	fmt.Fprintf(table, "requests that a node refused, and another served\t%d\n", r.traffic.Moved)
	fmt.Fprintf(table, "events in the feed\t%d\n", r.events)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(table, "\nENDPOINT\tCALLS\tNOT ANSWERED WELL\tEVENTS TAKEN\tTAKEN ONCE MORE")
	for _, d := range r.lines {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", d.name, d.calls, d.failed, d.events, d.repeats)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, problem := range r.problems {
		fmt.Fprintln(out, "WRONG:", problem)
	}
	verdict := "every event was delivered, and none was made up"
	if len(r.problems) > 0 {
		verdict = fmt.Sprintf("WRONG: %d", len(r.problems))
	}
	_, err := fmt.Fprintf(out, "\nseed %d, %v: %s\n", r.seed, r.took.Round(time.Second), verdict)
	return err
}
