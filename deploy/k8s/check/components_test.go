package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"licet/deploy/k8s/check/manifests"
)

// TestTracing: an overlay of a user's own that adds the component has traces sent to the
// collector, and lets them through to it alone.
func TestTracing(t *testing.T) {
	folder := t.TempDir()
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(folder, here)
	if err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("namespace: licet\nresources: [%s/overlays/prod]\ncomponents: [%s/components/tracing]\n",
		base, base)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := manifests.Render(folder)
	if err != nil {
		t.Fatal(err)
	}
	applied(t, set)
	template := find(t, set, "Deployment/licet").template
	env := environment(t, set, template.Spec.Containers[0])
	if code, said := serve(t, env); code != 1 || !strings.Contains(said, "master keys: open ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(env["LICET_TRACING_OTLP_ENDPOINT"], "http://"), ":")
	if host != "otel-collector.monitoring" || port != "4318" {
		t.Errorf("traces go to %s", env["LICET_TRACING_OTLP_ENDPOINT"])
	}
	node := peer{namespace: "licet", labels: template.Labels}
	collector := peer{namespace: "monitoring",
		labels: map[string]string{"app.kubernetes.io/name": "opentelemetry-collector"}}
	other := peer{namespace: "monitoring", labels: map[string]string{"app.kubernetes.io/name": "prometheus"}}
	f := func(policies []*networkingv1.NetworkPolicy, to peer, port int32, want bool) {
		t.Helper()
		if got := allowed(policies, node, to, port, corev1.ProtocolTCP); got != want {
			t.Errorf("to %v, port %d: allowed is %v", to.labels, port, got)
		}
	}
	policies := manifests.All[networkingv1.NetworkPolicy](set)
	f(policies, collector, 4318, true)
	f(policies, collector, 4317, false)
	f(policies, other, 4318, false)
	f(manifests.All[networkingv1.NetworkPolicy](render(t, "prod")), collector, 4318, false)
}
