package lab_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"licet/deploy/observability/dashboards"
	"licet/deploy/observability/lab"
	"licet/loadtest/rig"
)

func TestMain(m *testing.M) {
	rig.Main(func(context.Context, []string, io.Writer, io.Writer) int { return m.Run() })
}

const (
	// window is what dashboards put in for their rates, here.
	window = "30s"
	// patience is how long series may take to come: sweeps begin a minute and a half
	// after a node at the latest, and a loaded machine needs minutes to scrape them.
	patience = 5 * time.Minute
)

// empty are the expressions that have no series in the lab, with the reason. It is an error too
// if such an expression has series.
var empty = map[string]string{
	"job:licet_refunds_due:max offset 1d": "the lab is not a day old",
}

// question is an expression that is to have series.
type question struct {
	place, expr string
	label       string // of at least one of the series; "": any
}

// TestExpressionsHaveSeries asks a real Prometheus, which scrapes real nodes and a real
// etcd under load, for everything that a dashboard or a rule asks for. What is
// misspelled has no series.
func TestExpressionsHaveSeries(t *testing.T) {
	l := start(t)
	ctx := t.Context()
	questions := asked(t, l)
	// Proof that a misspelled metric would be noticed.
	wrong := question{place: "a misspelled metric", expr: strings.ReplaceAll(questions[0].expr, "licet_", "lisec_")}
	if wrong.expr == questions[0].expr {
		t.Fatalf("%s does not name a metric of ours", wrong.expr)
	}

	open := slices.Clone(questions)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		open = slices.DeleteFunc(open, func(q question) bool { return answered(t, l.Prometheus, q) == nil })
		if len(open) <= len(empty) || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
	}
	without := map[string]bool{}
	for _, q := range open {
		without[q.expr] = true
		if empty[q.expr] == "" {
			t.Errorf("%s: %v\n%s", q.place, answered(t, l.Prometheus, q), q.expr)
		}
	}
	for expr, why := range empty {
		if !without[expr] {
			t.Errorf("this expression has series or is unused, and is listed as without series (%s):\n%s", why, expr)
		}
	}
	if answered(t, l.Prometheus, wrong) == nil {
		t.Error("a misspelled metric counts as a metric with series")
	}
	t.Logf("%d expressions", len(questions))

	t.Run("rules are evaluated", func(t *testing.T) { evaluated(t, l) })
	t.Run("no license contradicts itself", func(t *testing.T) {
		for _, s := range query(t, l.Prometheus, "licet_invariant_violations_total + licet_panics_total") {
			if s.Value != 0 {
				t.Errorf("%v: %v", s.Metric, s.Value)
			}
		}
	})
	t.Run("native histograms", func(t *testing.T) { native(t, l) })
	t.Run("promtool check metrics", func(t *testing.T) { checkMetrics(t, l) })
	if n, latest := l.Errors(); n > 0 {
		t.Errorf("the load met %d answers that it did not look for, the latest: %v", n, latest)
	}
}

func start(t *testing.T) *lab.Lab {
	t.Helper()
	began := time.Now()
	l, err := lab.Start(t.Context(), lab.Config{Repository: repository(t), Programs: programs(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	t.Logf("started after %v", time.Since(began).Round(time.Second))
	return l
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// programs is the folder with prometheus and promtool.
func programs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LICET_PROMETHEUS")
	if dir == "" {
		t.Fatal("LICET_PROMETHEUS must name the folder with prometheus and promtool: run make observability")
	}
	return dir
}

// asked is everything that dashboards and rules ask for.
func asked(t *testing.T, l *lab.Lab) []question {
	t.Helper()
	var all []question
	for _, q := range dashboards.Queries(window) {
		all = append(all, question{q.Dashboard + ", " + q.Panel, q.Expr, q.Label})
	}
	if len(all) < 50 {
		t.Errorf("the dashboards have only %d expressions", len(all))
	}
	recording, alerting := rules(t, l)
	if n := len(recording) + len(alerting); n < 50 {
		t.Errorf("Prometheus has only %d rules", n)
	}
	for _, r := range recording {
		all = append(all, question{place: r.Name, expr: r.Name}, question{place: r.Name, expr: r.Query})
		parts, err := alternatives(r.Query)
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		for _, part := range parts {
			all = append(all, question{place: r.Name, expr: part})
		}
	}
	for _, r := range alerting {
		parts, err := partsOf(r.Query)
		if err != nil || len(parts) == 0 {
			t.Errorf("%s asks for nothing: %s, %v", r.Name, r.Query, err)
		}
		for _, part := range parts {
			all = append(all, question{place: r.Name, expr: part})
		}
	}
	all = append(all, runbooks(t, l.Prometheus)...)
	return append(all, pages(t)...)
}

// rules returns the rules that Prometheus has loaded.
func rules(t *testing.T, l *lab.Lab) (recording []v1.RecordingRule, alerting []v1.AlertingRule) {
	t.Helper()
	loaded, err := l.Prometheus.Rules(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range loaded.Groups {
		for _, rule := range g.Rules {
			switch r := rule.(type) {
			case v1.RecordingRule:
				recording = append(recording, r)
			case v1.AlertingRule:
				alerting = append(alerting, r)
			}
		}
	}
	return recording, alerting
}

var (
	code   = regexp.MustCompile("`([^`\n]+)`|(?m)^ {4,}(.+)$")
	metric = regexp.MustCompile(`\b(?:licet|etcd)_[a-z_0-9]+\b`)
)

// runbooks is every metric that a runbook names. What it asks for is for times of
// trouble and may have no series here; but it must parse.
func runbooks(t *testing.T, p *lab.Prometheus) []question {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository(t), "docs", "runbooks", "*.md"))
	if err != nil || len(files) < 20 {
		t.Fatalf("only %d runbooks were found: %v", len(files), err)
	}
	var all []question
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range code.FindAllStringSubmatch(string(text), -1) {
			expr := found[1] + found[2]
			names := metric.FindAllString(expr, -1)
			if len(names) == 0 {
				continue
			}
			if _, err := p.Series(t.Context(), expr); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(file), err, expr)
			}
			for _, name := range names {
				all = append(all,
					question{place: filepath.Base(file), expr: fmt.Sprintf(`{__name__=~"%s(_count)?"}`, name)})
			}
		}
	}
	return all
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	indented = regexp.MustCompile(`(?m)(?:^ {4,}.+\n)+`)
	named    = regexp.MustCompile(`\b(?:licet|etcd|process|go)_[a-z_0-9]+\b`)
	// stepped is a look back over days, step by step. Prometheus takes the steps at full
	// minutes of the clock, of which a lab may see none.
	stepped = regexp.MustCompile(`\[\d+d:\d+m\]`)
)

// pages is what the pages for operators ask Prometheus for. Unlike a runbook's it is
// asked while all is well, so an expression that stands by itself has series here;
// one in a line is for cases too, and what it names has.
func pages(t *testing.T) []question {
	t.Helper()
	var all []question
	for _, name := range []string{"operations.md", "sizing.md", "upgrade.md"} {
		text, err := os.ReadFile(filepath.Join(repository(t), "docs", "guides", name))
		if err != nil {
			t.Fatal(err)
		}
		prose := fenced.ReplaceAllString(string(text), "")
		for _, expr := range expressions(prose) {
			all = append(all, question{place: name, expr: stepped.ReplaceAllString(expr, "[1h:5s]")})
		}
		for _, metric := range named.FindAllString(prose, -1) {
			all = append(all, question{place: name, expr: fmt.Sprintf(`{__name__=~"%s(_count)?"}`, metric)})
		}
	}
	return all
}

// expressions are the blocks of a page that name a metric. If an expression continues in the next
// line, that line is indented further.
func expressions(prose string) []string {
	var all []string
	for _, block := range indented.FindAllString(prose, -1) {
		var expr []string
		for line := range strings.Lines(block) {
			line = strings.TrimRight(strings.TrimPrefix(line, "    "), "\n")
			if n := len(expr); n > 0 && strings.HasPrefix(line, " ") {
				expr[n-1] += " " + strings.TrimSpace(line)
			} else {
				expr = append(expr, line)
			}
		}
		for _, e := range expr {
			if named.MatchString(e) {
				all = append(all, e)
			}
		}
	}
	return all
}

// answered returns an error unless at least one series of the expression has a number.
func answered(t *testing.T, p *lab.Prometheus, q question) error {
	t.Helper()
	series, err := p.Series(t.Context(), q.expr)
	if err != nil {
		return err
	}
	if len(series) == 0 {
		return fmt.Errorf("no series")
	}
	for _, s := range series {
		number := s.Histogram == nil && !math.IsNaN(float64(s.Value))
		if number && (q.label == "" || s.Metric[model.LabelName(q.label)] != "") {
			return nil
		}
	}
	return fmt.Errorf("of %d series none has a number, and the label %q if any is wanted", len(series), q.label)
}

func query(t *testing.T, p *lab.Prometheus, expr string) model.Vector {
	t.Helper()
	series, err := p.Series(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	if len(series) == 0 {
		t.Fatalf("no series: %s", expr)
	}
	return series
}

// evaluated checks that Prometheus evaluates each rule without an error.
func evaluated(t *testing.T, l *lab.Lab) {
	good := func(name string, health v1.RuleHealth, lastError string) {
		if health != v1.RuleHealthGood || lastError != "" {
			t.Errorf("%s: %s %s", name, health, lastError)
		}
	}
	recording, alerting := rules(t, l)
	for _, r := range recording {
		good(r.Name, r.Health, r.LastError)
	}
	for _, r := range alerting {
		good(r.Name, r.Health, r.LastError)
	}
}

// native checks that a Prometheus with native histograms gets them.
func native(t *testing.T, l *lab.Lab) {
	for _, expr := range []string{
		"sum(histogram_count(licet_http_request_duration_seconds))",
		"histogram_quantile(0.99, sum(rate(licet_http_request_duration_seconds[30s])))",
		"histogram_quantile(0.99, sum(rate(licet_store_request_duration_seconds[30s])))",
	} {
		for _, s := range query(t, l.Native, expr) {
			if !(s.Value > 0) {
				t.Errorf("%s is %v", expr, s.Value)
			}
		}
	}
}

// checkMetrics has promtool look at what a node exposes.
func checkMetrics(t *testing.T, l *lab.Lab) {
	response, err := http.Get(l.Stage.Nodes[0].Metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	check := exec.CommandContext(t.Context(), filepath.Join(programs(t), "promtool"), "check", "metrics")
	check.Stdin = response.Body
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
