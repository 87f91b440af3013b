package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"licet/cmd/licet/internal/terminal"
)

// Level is how serious a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, and may fail later or under load
	Problem Level = "problem" // does not work
)

// Finding is the result of one check.
type Finding struct {
	Level  Level  `json:"level"`
	Check  string `json:"check"`  // what was checked, such as "etcd quota"
	Found  string `json:"found"`  // what is the case
	Advice string `json:"advice"` // what to do; empty only if the level is OK
}

// Report collects findings.
type Report struct{ Findings []Finding }

// ok adds a check that found nothing wrong.
func (r *Report) ok(check, found string, args ...any) {
	r.Findings = append(r.Findings, Finding{OK, check, fmt.Sprintf(found, args...), ""})
}

// add adds what is wrong.
func (r *Report) add(level Level, check, advice, found string, args ...any) {
	r.Findings = append(r.Findings, Finding{level, check, fmt.Sprintf(found, args...), advice})
}

// Fail adds a check that could not be made.
func (r *Report) Fail(check string, err error, advice string) {
	r.add(Problem, check, advice, "%v", err)
}

// Count returns how many findings have a level.
func (r *Report) Count(level Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// JSON writes the report as one object on one line.
func (r *Report) JSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]any{
		"findings": append([]Finding{}, r.Findings...), "problems": r.Count(Problem), "warnings": r.Count(Warning),
	})
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// style returns the color of a level.
func style(level Level) terminal.Style {
	switch level {
	case Problem:
		return terminal.Red
	case Warning:
		return terminal.Yellow
	}
	return terminal.Green
}

// Text writes the report for people: one line for each finding, and below it what to do.
func (r *Report) Text(w io.Writer, colors bool) error {
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Check))
	}
	var text strings.Builder
	for _, f := range r.Findings {
		level := fmt.Sprintf("%-7s", f.Level)
		if colors {
			level = style(f.Level).Paint(level)
		}
		fmt.Fprintf(&text, "%s  %-*s  %s\n", level, width, f.Check, f.Found)
		if f.Advice != "" {
			fmt.Fprintf(&text, "%s→ %s\n", strings.Repeat(" ", len("warning")+2), f.Advice)
		}
	}
	fmt.Fprintf(&text, "%s, %s, %s\n", count(r.Count(Problem), "problem"), count(r.Count(Warning), "warning"),
		count(len(r.Findings), "check"))
	_, err := io.WriteString(w, text.String())
	return err
}
