package check

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"licet/deploy/k8s/check/manifests"
)

// TestProbesAndMetrics asks a service that runs for everything that kubelets, Prometheus
// and the adapter will ask a node for, at the listener that they will ask.
func TestProbesAndMetrics(t *testing.T) {
	base := startService(t)
	get := func(path string) (int, string) {
		t.Helper()
		answer, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	set := render(t, "prod")
	c := find(t, set, "Deployment/licet").template.Spec.Containers[0]
	for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe,
		"readiness": c.ReadinessProbe} {
		if probe.HTTPGet.Port.StrVal != "metrics" {
			t.Errorf("%s asks at port %s", what, probe.HTTPGet.Port.String())
		}
		if status, text := get(probe.HTTPGet.Path); status != http.StatusOK {
			t.Errorf("%s: %s answers %d: %s", what, probe.HTTPGet.Path, status, text)
		}
	}
	if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("a node would be restarted for what its store does, or be sent requests in spite of it")
	}
	for _, m := range manifests.All[monitoring.ServiceMonitor](set) {
		if m.Name != "licet" {
			continue
		}
		status, text := get(m.Spec.Endpoints[0].Path)
		if status != http.StatusOK {
			t.Fatalf("%s answers %d", m.Spec.Endpoints[0].Path, status)
		}
		for _, name := range adapterMetrics(t) {
			if !strings.Contains(text, "\n"+name+" ") {
				t.Errorf("the adapter's rule asks for %s, which nodes do not have", name)
			}
		}
	}
}

// adapterMetrics lists the metrics that the rules of the adapter ask for.
func adapterMetrics(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../metrics-adapter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Rules []struct{ SeriesQuery, MetricsQuery string }
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range config.Rules {
		names = append(names, regexp.MustCompile(`licet_[a-z_]+`).FindAllString(r.SeriesQuery+r.MetricsQuery, -1)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) < 2 {
		t.Fatalf("the adapter's rules ask for %v", names)
	}
	return names
}

// startService starts licet dev and answers where it serves what a node serves at
// --metrics-listen.
func startService(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program(t, "licet"), "dev", "--listen", "127.0.0.1:0", "--metrics-listen",
		"127.0.0.1:0",
		"--log-format", "json", "--data-dir", filepath.Join(dir, "data"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended by then
	var metrics string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Message, URL string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("the log: %v: %s", err, lines.Text())
		}
		switch line.Message {
		case "metrics":
			u, err := url.Parse(line.URL)
			if err != nil {
				t.Fatal(err)
			}
			metrics = "http://" + u.Host
		case "ready":
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return metrics
		}
	}
	t.Fatal("the service ended before it was ready")
	return ""
}

// write makes TestRules write the operator's rules: make manifests.
var write = flag.Bool("write", false, "write components/monitoring/rules.yaml")

// TestRules checks that the operator gets the rules of deploy/prometheus.
func TestRules(t *testing.T) {
	want, err := operatorRules("../../prometheus/rules")
	if err != nil {
		t.Fatal(err)
	}
	const file = "../components/monitoring/rules.yaml"
	if *write {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Error("components/monitoring/rules.yaml is not what deploy/prometheus/rules says: make manifests")
	}
	// The same alerts, in whatever form.
	alerts := map[string]int{}
	count := func(groups []monitoring.RuleGroup, by int) {
		for _, g := range groups {
			for _, r := range g.Rules {
				alerts[g.Name+"/"+r.Alert+r.Record+r.Expr.String()] += by
			}
		}
	}
	for _, r := range manifests.All[monitoring.PrometheusRule](render(t, "prod")) {
		count(r.Spec.Groups, 1)
	}
	for _, text := range readFiles(t, "../../prometheus/rules/*.yml") {
		var spec monitoring.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		count(spec.Groups, -1)
	}
	if len(alerts) < 40 {
		t.Errorf("only %d rules", len(alerts))
	}
	for rule, n := range alerts {
		if n != 0 {
			t.Errorf("%s is there %d times too often", rule, n)
		}
	}
}

// TestDashboards: each dashboard is in a ConfigMap that Grafana's sidecar finds.
func TestDashboards(t *testing.T) {
	want := readFiles(t, "../../grafana/*.json")
	files := len(want)
	for _, c := range manifests.All[corev1.ConfigMap](render(t, "prod")) {
		for name, text := range c.Data {
			if !strings.HasSuffix(name, ".json") {
				continue
			}
			if c.Labels["grafana_dashboard"] != "1" {
				t.Errorf("ConfigMap/%s has no label for the sidecar", c.Name)
			}
			if text != want[name] {
				t.Errorf("ConfigMap/%s has another %s", c.Name, name)
			}
			delete(want, name)
		}
	}
	if files == 0 || len(want) > 0 {
		t.Errorf("of %d dashboards %d are missing", files, len(want))
	}
}

// readFiles returns the content of the files that a pattern matches, by their names.
func readFiles(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(text)
	}
	return files
}
