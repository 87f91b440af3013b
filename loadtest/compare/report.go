package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// report collects what was measured.
type report struct {
	samples map[string][]float64 // of checks, by row and name
	notes   map[string][]string  // by row
	figures []*figure            // for information, in the order they came
	growth  []fillPoint          // of capacity
}

// figure is a number without a bound.
type figure struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Samples []float64 `json:"samples"`
}

func newReport() *report {
	return &report{samples: map[string][]float64{}, notes: map[string][]string{}}
}

func sampleKey(id, name string) string { return id + "/" + name }

// add adds one measurement of a row's check.
func (r *report) add(id, name string, value float64) {
	key := sampleKey(id, name)
	r.samples[key] = append(r.samples[key], value)
}

// note adds a remark about a row. The same remark is added once.
func (r *report) note(id, text string) {
	if text != "" && !slices.Contains(r.notes[id], text) {
		r.notes[id] = append(r.notes[id], text)
	}
}

// inform adds one measurement of a figure without a bound.
func (r *report) inform(name, unit string, value float64) {
	for _, f := range r.figures {
		if f.Name == name {
			f.Samples = append(f.Samples, value)
			return
		}
	}
	r.figures = append(r.figures, &figure{name, unit, []float64{value}})
}

// result is one line of the table.
type result struct {
	Row     string    `json:"row"`
	Figure  string    `json:"figure"`
	Must    string    `json:"must"`
	Aim     string    `json:"aim"`
	Unit    string    `json:"unit,omitempty"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"`
	Verdict verdict   `json:"verdict"`
	Notes   []string  `json:"notes,omitempty"`
}

// verdict is whether a check holds.
type verdict string

const (
	passed  verdict = "pass"
	aimed   verdict = "aim"  // even the aim is reached
	missed  verdict = "FAIL" // the must is not reached
	unknown verdict = "none" // not measured
)

func verdictOf(c *check, median float64) verdict {
	switch {
	case math.IsNaN(median):
		return unknown
	case !c.meets(median, c.must):
		return missed
	case c.meets(median, c.aim):
		return aimed
	}
	return passed
}

// results puts the table together. A row that was not asked for is not in it. A row
// that was asked for and has no sample counts as missed.
func (r *report) results(wanted func(id ...string) bool) []result {
	var list []result
	for _, row := range rows() {
		if !wanted(row.id) {
			continue
		}
		for i := range row.checks {
			c := &row.checks[i]
			samples := r.samples[sampleKey(row.id, c.name)]
			line := result{
				Row: row.id, Figure: row.title(c), Must: c.bound(c.must), Aim: c.bound(c.aim), Unit: c.unit,
				Samples: samples, Verdict: unknown, Notes: r.notes[row.id],
			}
			if len(samples) > 0 {
				line.Median, line.Min, line.Max = median(samples), slices.Min(samples), slices.Max(samples)
				line.Verdict = verdictOf(c, line.Median)
			}
			list = append(list, line)
		}
	}
	return list
}

// anyMissed reports whether a must is missed, or was not measured.
func anyMissed(results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool { return r.Verdict == missed || r.Verdict == unknown })
}

// median is the middle value, or the mean of the two in the middle.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// writeTable prints the table for people.
func (r *report) writeTable(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tmust\taim\tmedian\tspread\t")
	for _, line := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", line.Figure, line.Must, line.Aim,
			format(line.Median, line.Unit), format(line.Min, "")+"–"+format(line.Max, ""), line.Verdict)
	}
	fmt.Fprintln(t, "\t\t\t\t\t")
	for _, f := range r.figures {
		fmt.Fprintf(t, "%s\t\t\t%s\t%s\t\n", f.Name, format(median(f.Samples), f.Unit),
			format(slices.Min(f.Samples), "")+"–"+format(slices.Max(f.Samples), ""))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, row := range rows() {
		if notes := r.notes[row.id]; len(notes) > 0 {
			fmt.Fprintf(w, "%s: %s\n", row.id, strings.Join(notes, "; "))
		}
	}
	return nil
}

// document is the one line of JSON.
type document struct {
	Quick   bool        `json:"quick"` // small sizes: the numbers mean nothing
	Machine machine     `json:"machine"`
	Config  settings    `json:"settings"`
	Rows    []result    `json:"rows"`
	Figures []*figure   `json:"figures"`
	Growth  []fillPoint `json:"growth,omitempty"`
}

func writeJSON(w io.Writer, d document) error {
	return json.NewEncoder(w).Encode(d)
}
