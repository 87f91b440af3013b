package linter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/dashboard-linter/lint"
)

const folder = "../../grafana"

// TestDashboardsPass is what dashboard-linter lint --strict does for each file:
// neither errors nor warnings, but for what .lint excepts.
func TestDashboardsPass(t *testing.T) {
	config := lint.NewConfigurationFile()
	if err := config.Load(filepath.Join(folder, ".lint")); err != nil {
		t.Fatal(err)
	}
	checks, excepted := 0, map[string]bool{}
	for _, name := range files(t) {
		for _, result := range results(t, name) {
			before := worst(result)
			result = config.Apply(result)
			checks++
			for _, r := range result.Result.Results {
				if r.Severity >= lint.Warning {
					t.Errorf("%s: %s: %s", filepath.Base(name), result.Rule.Name(), r.Message)
				}
			}
			if before >= lint.Warning && worst(result) == lint.Exclude {
				excepted[result.Rule.Name()+" "+result.Dashboard.Title+" "+result.Panel.Title] = true
			}
		}
	}
	t.Logf("%d checks, %d panels excepted from a rule", checks, len(excepted))
	for rule, entries := range config.Exclusions {
		if len(entries.Entries) == 0 || strings.TrimSpace(entries.Reason) == "" {
			t.Errorf("%s is excepted from as a whole, or without a reason", rule)
		}
		for _, e := range entries.Entries {
			if !excepted[rule+" "+e.Dashboard+" "+e.Panel] {
				t.Errorf("%s: %q of %q needs no exception", rule, e.Panel, e.Dashboard)
			}
		}
	}
}

// TestLinterFinds: it sees what is wrong with a dashboard, or its silence would tell
// nothing.
func TestLinterFinds(t *testing.T) {
	content, err := os.ReadFile(files(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	f := func(rule, old, broken string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "broken.json")
		if !strings.Contains(string(content), old) {
			t.Fatalf("no %s to break", old)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(content), old, broken)), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, result := range results(t, path) {
			if result.Rule.Name() == rule && worst(result) >= lint.Warning {
				return
			}
		}
		t.Errorf("with %s for %s, %s finds nothing", broken, old, rule)
	}
	f("uneditable-dashboard", `"editable": false`, `"editable": true`)
	f("target-promql-rule", `"expr": "sum`, `"expr": "sun`)
	f("target-rate-interval-rule", "[$__rate_interval]", "[5m]")
	f("target-job-rule", `job=~\"$job\", `, "")
	f("panel-units-rule", `"unit": "s"`, `"unit": "second"`)
	f("panel-title-description-rule", `"description"`, `"describe"`)
}

func files(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no dashboards in %s: %v", folder, err)
	}
	return names
}

func results(t *testing.T, name string) []lint.ResultContext {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := lint.NewDashboard(content)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	rules := lint.NewRuleSet()
	found, err := rules.Lint([]lint.Dashboard{dashboard})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var all []lint.ResultContext
	for _, results := range found.ByRule() {
		all = append(all, results...)
	}
	return all
}

func worst(result lint.ResultContext) lint.Severity {
	found := lint.Success
	for _, r := range result.Result.Results {
		found = max(found, r.Severity)
	}
	return found
}
