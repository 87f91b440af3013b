package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report prints progress, and at the end the result of each step.
type report struct {
	out   io.Writer
	began time.Time
	rows  []row
	notes []string
}

type row struct {
	name string
	took time.Duration
	err  error
	seen string
}

func newReport(out io.Writer) *report { return &report{out: out, began: time.Now()} }

// say prints a line with the time since the beginning.
func (r *report) say(format string, args ...any) {
	fmt.Fprintf(r.out, "%7.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// saw adds what a step has measured to its row.
func (r *report) saw(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.say("    %s", text)
	if n := len(r.rows); n > 0 {
		if r.rows[n-1].seen != "" {
			text = r.rows[n-1].seen + "; " + text
		}
		r.rows[n-1].seen = text
	}
}

// step runs one step, with a time limit.
func (r *report) step(ctx context.Context, name string, do func(context.Context) error) error {
	const longest = 30 * time.Minute // the first build of all programs
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r.say("== %s", name)
	r.rows = append(r.rows, row{name: name})
	began := time.Now()
	err := do(ctx)
	if err == nil {
		err = ctx.Err()
	}
	at := &r.rows[len(r.rows)-1]
	at.took, at.err = time.Since(began), err
	if err != nil {
		r.say("   FAIL after %.1f s: %v", at.took.Seconds(), err)
		return fmt.Errorf("%s: %w", name, err)
	}
	r.say("   ok, %.1f s", at.took.Seconds())
	return nil
}

// summary prints the table. A failed step is an error.
func (r *report) summary() error {
	fmt.Fprintln(r.out)
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RESULT\tSECONDS\tSTEP\tSEEN")
	failed := 0
	for _, row := range r.rows {
		result := "ok"
		if row.err != nil {
			result = "FAIL"
			failed++
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%s\n", result, row.took.Seconds(), row.name, row.seen)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range r.notes {
		fmt.Fprintf(r.out, "note: %s\n", note)
	}
	fmt.Fprintf(r.out, "%d of %d steps failed, %.0f s\n", failed, len(r.rows), time.Since(r.began).Seconds())
	if failed > 0 {
		return errors.New("not all is well")
	}
	return nil
}

// note adds a line below the table.
func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}
