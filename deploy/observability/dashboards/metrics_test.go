package dashboards

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../../.."

// TestMetrics: the dashboards show every metric that Licet has, and none that it has
// not, with labels that it has.
func TestMetrics(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(repository, "metrics/testdata/metrics.golden"))
	if err != nil {
		t.Fatal(err)
	}
	labels, shown := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(string(golden)) {
		words := strings.Fields(line)
		labels[words[0]] = words[2:]
		if strings.HasPrefix(words[1], "histogram") {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				labels[words[0]+suffix] = append(slices.Clone(words[2:]), "le")
			}
		}
	}
	everywhere := []string{"job", "namespace", "pod", "instance"}
	series := regexp.MustCompile(`(licet_[a-z_]+)\{([^}]*)\}`)
	matcher := regexp.MustCompile(`([a-z_]+)=?[!~=]+"`)
	grouped := regexp.MustCompile(`by \(([^)]*)\) \(rate\((licet_[a-z_]+)\{`)
	for _, q := range Queries("1m") {
		for _, s := range series.FindAllStringSubmatch(q.Expr, -1) {
			has, ok := labels[s[1]]
			if !ok {
				t.Errorf("%s, %s: Licet has no metric %s", q.Dashboard, q.Panel, s[1])
				continue
			}
			shown[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s[1], "_bucket"), "_sum"), "_count")] = true
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				if !slices.Contains(has, m[1]) && !slices.Contains(everywhere, m[1]) {
					t.Errorf("%s, %s: %s has no label %s", q.Dashboard, q.Panel, s[1], m[1])
				}
			}
		}
		for _, s := range grouped.FindAllStringSubmatch(q.Expr, -1) {
			for label := range strings.SplitSeq(s[1], ", ") {
				if !slices.Contains(labels[s[2]], label) && !slices.Contains(everywhere, label) {
					t.Errorf("%s, %s: %s has no label %s", q.Dashboard, q.Panel, s[2], label)
				}
			}
		}
	}
	for line := range strings.Lines(string(golden)) {
		if name := strings.Fields(line)[0]; !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
