package dashboards

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRunbooks: what panels link to is there, and their thresholds are values that
// the alerts of that name compare with.
func TestRunbooks(t *testing.T) {
	rules, err := filepath.Glob(filepath.Join(repository, "deploy/prometheus/rules/*.yml"))
	if err != nil || len(rules) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	compared := map[string][]float64{} // by alert
	compares := regexp.MustCompile(`[<>=]=? ?([0-9.]+)(?: \* ([0-9.]+))?`)
	for _, name := range rules {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, alert := range strings.Split(string(content), "- alert: ")[1:] {
			name, rest, _ := strings.Cut(alert, "\n")
			expr, _, _ := strings.Cut(rest, "labels:")
			compared[name] = append([]float64{}, compared[name]...) // there, whatever it compares with
			for _, m := range compares.FindAllStringSubmatch(expr, -1) {
				value, err := strconv.ParseFloat(m[1], 64)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if factor, err := strconv.ParseFloat(m[2], 64); err == nil {
					value *= factor
				}
				compared[name] = append(compared[name], value)
			}
		}
	}
	// The objectives themselves, and what the fastest burn comes to.
	compared["LicetErrorBudgetBurn"] = append(compared["LicetErrorBudgetBurn"], 0.001, 14.4*0.001)
	compared["LicetLatencyBudgetBurn"] = append(compared["LicetLatencyBudgetBurn"], 0.1)

	linked := map[string]bool{}
	for _, p := range pages() {
		for _, panel := range p.all() {
			var known []float64
			for _, name := range panel.Runbooks {
				linked[name] = true
				known = append(known, compared[name]...)
				if _, ok := compared[name]; !ok {
					t.Errorf("%s, %s: there is no alert %s", p.Title, panel.Title, name)
				}
				if _, err := os.Stat(filepath.Join(repository, "docs/runbooks", name+".md")); err != nil {
					t.Errorf("%s, %s: %v", p.Title, panel.Title, err)
				}
			}
			for _, s := range slices.Concat(panel.Warning, panel.Critical) {
				// Above none is one, and half of one where Prometheus extrapolates.
				if !slices.ContainsFunc(known,
					func(v float64) bool { return math.Abs(v-s) < 1e-9 || v == 0 && s <= 1 }) {
					t.Errorf("%s, %s: %v is no value that %v compare with: %v", p.Title, panel.Title, s,
						panel.Runbooks, known)
				}
			}
		}
	}
	for name := range compared {
		if !linked[name] {
			t.Errorf("no panel links to the runbook of %s", name)
		}
	}
}
