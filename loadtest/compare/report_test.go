package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	f := func(want float64, samples ...float64) {
		t.Helper()
		if got := median(samples); got != want {
			t.Errorf("%v: got %v, want %v", samples, got, want)
		}
	}
	f(3, 3)
	f(2, 3, 1)
	f(3, 9, 3, 1)
	f(2.5, 9, 3, 1, 2)
	if !math.IsNaN(median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestVerdicts(t *testing.T) {
	f := func(c check, value float64, want verdict) {
		t.Helper()
		if got := verdictOf(&c, value); got != want {
			t.Errorf("%v against %+v: got %v, want %v", value, c, got, want)
		}
	}
	more := check{atLeast: true, must: 1, aim: 1.4}
	f(more, 0.99, missed)
	f(more, 1, passed)
	f(more, 1.4, aimed)
	less := check{must: 1.5, aim: 1}
	f(less, 1.51, missed)
	f(less, 1.5, passed)
	f(less, 1, aimed)
	f(less, math.NaN(), unknown)
}

func TestResults(t *testing.T) {
	r := newReport()
	for _, value := range []float64{1.2, 0.9, 1.5} {
		r.add("distinct", "", value)
	}
	r.add("devices", "binding it", 1)
	r.note("distinct", "a note")
	r.note("distinct", "a note")
	r.inform("puts", "/s", 2)
	r.inform("puts", "/s", 4)
	results := r.results(func(ids ...string) bool { return ids[0] != "soak" })
	if got := results[0]; got.Median != 1.2 || got.Min != 0.9 || got.Max != 1.5 || got.Verdict != passed ||
		len(got.Notes) != 1 {
		t.Errorf("got %+v", got)
	}
	for _, line := range results {
		switch {
		case line.Row == "soak":
			t.Error("a row that --only does not name")
		case line.Row == "distinct", strings.HasSuffix(line.Figure, ": binding it"):
		case line.Verdict != unknown:
			t.Errorf("without a sample: %+v", line)
		}
	}
	if !anyMissed(results) || anyMissed(results[:1]) {
		t.Error("what is not measured is not missed, or what holds is")
	}
	var table, line bytes.Buffer
	if err := r.writeTable(&table, results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"÷ single put", "≥ 1.4", "0.9–1.5", "pass", "distinct: a note", "puts", "3 /s"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, &table)
		}
	}
	if err := writeJSON(&line, document{Rows: results, Figures: r.figures}); err != nil {
		t.Fatal(err)
	}
	var back document
	if err := json.Unmarshal(line.Bytes(), &back); err != nil || bytes.Count(line.Bytes(), []byte("\n")) != 1 {
		t.Errorf("%v: %s", err, &line)
	}
}

func TestFormat(t *testing.T) {
	f := func(value float64, unit, want string) {
		t.Helper()
		if got := format(value, unit); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(1, "", "1")
	f(0.85, "", "0.85")
	f(12.34, "ms", "12.3 ms")
	f(18500.4, "/s", "18500 /s")
}

func TestPerLicense(t *testing.T) {
	for goroutines, want := range map[float64]float64{-3: 0, 7: 0, 100: 0.001, 100_000: 1} {
		if got := perLicense(goroutines, 100_000); got != want {
			t.Errorf("%v: got %v, want %v", goroutines, got, want)
		}
	}
}

// parser returns a function that parses a command line, which must have a problem, or none if the problem is empty.
func parser(t *testing.T) func(problem string, args ...string) *config {
	return func(problem string, args ...string) *config {
		t.Helper()
		cfg, err := parseConfig(args, &bytes.Buffer{})
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%v: got %v, want %q", args, err, problem)
		}
		return cfg
	}
}

func TestConfig(t *testing.T) {
	f := parser(t)
	f("none of distinct", "--only", "distinct,nothing")
	f("unexpected argument", "distinct")
	f("above 0", "--rounds", "0")
	f("unknown flag", "--fast")
	f("no attack", "--attack", "nothing")
	name := attacks()[1].name
	if cfg := f("", "--attack", name); cfg.wantsAttack(attacks()[0]) || !cfg.wantsAttack(attacks()[1]) {
		t.Errorf("got %+v", cfg)
	}
	if cfg := f(""); cfg.Rounds != 5 || cfg.Span != 2*time.Second || !cfg.wants("storm") {
		t.Errorf("got %+v", cfg)
	}
	if cfg := f("", "--quick", "--span", "3s", "--only", "storm,idle"); cfg.Rounds != 1 || cfg.Span != 3*time.Second ||
		cfg.wants("hot") || !cfg.wants("hot", "idle") {
		t.Errorf("got %+v", cfg)
	}
}
