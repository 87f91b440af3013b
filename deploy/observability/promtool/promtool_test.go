package promtool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const folder = "../../prometheus"

func promtool(t *testing.T, args ...string) {
	t.Helper()
	dir := os.Getenv("LICET_PROMETHEUS")
	if dir == "" {
		t.Fatal("LICET_PROMETHEUS must name the folder with prometheus and promtool: run make observability")
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "promtool"),
		args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return found
}

func TestRules(t *testing.T) {
	promtool(t, append([]string{"check", "rules", "--lint-fatal"}, files(t, "rules/*.yml")...)...)
}

func TestConfig(t *testing.T) {
	promtool(t, "check", "config", "--lint-fatal", filepath.Join(folder, "prometheus.yml"))
	promtool(t, "check", "config", "--lint-fatal", filepath.Join(folder, "../compose/prometheus.yml"))
}

// TestAdapter: what prometheus-adapter makes of its rule, for the autoscaler's metric, is
// PromQL.
func TestAdapter(t *testing.T) {
	_, query, ok := strings.Cut(read(t, "../../k8s/metrics-adapter.yaml"), "    metricsQuery: >-\n")
	if !ok {
		t.Fatal("the adapter's rule has no query")
	}
	query = strings.NewReplacer("<<.GroupBy>>", "pod", "<<.LabelMatchers>>",
		`namespace="licet",pod=~"licet-1|licet-2"`).Replace(query)
	file := filepath.Join(t.TempDir(), "rule.yml")
	rule := "groups:\n- name: adapter\n  rules:\n  - record: licet:queue_pressure\n    expr: >-\n" + query
	if err := os.WriteFile(file, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint-fatal", file)
}

// TestRulesFire runs the rules on series for which is known what fires and what does not.
func TestRulesFire(t *testing.T) {
	for _, file := range files(t, "tests/*.yml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			promtool(t, "test", "rules", file)
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alert is what a file says of one.
type alert struct{ name, text string }

func alerts(t *testing.T) []alert {
	t.Helper()
	var all []alert
	for _, file := range files(t, "rules/*.yml") {
		parts := strings.Split(read(t, file), "\n      - ")
		for _, part := range parts[1:] {
			if name, text, found := strings.Cut(part, "\n"); found && strings.HasPrefix(name, "alert: ") {
				all = append(all, alert{strings.TrimPrefix(name, "alert: "), text})
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d alerts were found", len(all))
	}
	return all
}

const runbookBase = "https://github.com/licet/licet/blob/main/docs/runbooks/"

// TestAlertsAreWhole: each has a name that tells whose it is, a severity, what it says,
// a runbook, and tests in which it fires and in which it does not.
func TestAlertsAreWhole(t *testing.T) {
	tests := ""
	for _, file := range files(t, "tests/*.yml") {
		tests += read(t, file)
	}
	for _, a := range alerts(t) {
		if !regexp.MustCompile(`^Licet([A-Z][A-Za-z]*)+$`).MatchString(a.name) {
			t.Errorf("%s is no name for an alert of ours", a.name)
		}
		for _, want := range []string{
			`\n          severity: (critical|warning|info)\n`, `\n          summary: \S`,
			`\n          description: "\S`,
			`\n          runbook_url: ` + regexp.QuoteMeta(runbookBase+a.name) + `\.md(\n|$)`,
		} {
			if !regexp.MustCompile(want).MatchString(a.text) {
				t.Errorf("%s has nothing like %s", a.name, want)
			}
		}
		severity := regexp.MustCompile(`severity: (\w+)`).FindStringSubmatch(a.text)[1]
		fires := regexp.MustCompile(fmt.Sprintf(`alertname: %s\n        exp_alerts:\n(          .*\n)*?\s+severity: %s`,
			a.name, severity))
		quiet := regexp.MustCompile(fmt.Sprintf(`alertname: %s\n        exp_alerts: \[\]|`+
			`ALERTS\{alertname="%s"[^\n]*\n        exp_samples: \[\]`, a.name, a.name))
		if !fires.MatchString(tests) || !quiet.MatchString(tests) {
			t.Errorf("%s, %s: there is no test in which it fires, or none in which it does not", a.name, severity)
		}
	}
}

// TestRunbooks compares alerts, runbooks and the index of runbooks.
func TestRunbooks(t *testing.T) {
	const runbooks = "../../../docs/runbooks"
	var want []string
	for _, a := range alerts(t) {
		want = append(want, a.name+".md")
	}
	slices.Sort(want)
	want = slices.Compact(want)
	index := read(t, filepath.Join(runbooks, "README.md"))
	var got []string
	found, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		name := filepath.Base(path)
		if name == "README.md" {
			continue
		}
		got = append(got, name)
		text := read(t, path)
		for _, part := range []string{"# " + strings.TrimSuffix(name, ".md") + "\n", "\n## What it means\n",
			"\n## What to look at\n", "\n## What to do\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q", name, part)
			}
		}
		if strings.Count(index, "("+name+")") != 1 {
			t.Errorf("the index has not one row with %s", name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("there are runbooks %q, and alerts for %q", got, want)
	}
}
