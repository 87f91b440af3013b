package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"licet/deploy/k8s/check/manifests"
)

// renderOwn renders an overlay of a user's own. BASE stands for the folder deploy/k8s.
func renderOwn(t *testing.T, overlay string) manifests.Set {
	t.Helper()
	folder := t.TempDir()
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(folder, here)
	if err != nil {
		t.Fatal(err)
	}
	overlay = "namespace: licet\n" + strings.ReplaceAll(overlay, "BASE", base)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := manifests.Render(folder)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestImagesPinned: after the commands under "Pin images by digest" in docs/guides/kubernetes.md, and with the chart's
// values that the page names, every container has an image with a digest.
func TestImagesPinned(t *testing.T) {
	_, section, _ := strings.Cut(readPage(t, "docs/guides/kubernetes.md"), "\n### Pin images by digest\n")
	section, _, _ = strings.Cut(section, "\n## ")
	digest := "sha256:" + strings.Repeat("ab", 32)
	etcd := regexp.MustCompile(`(?m)^etcd=(\S+)$`).FindStringSubmatch(section)
	if etcd == nil {
		t.Fatal("the page does not name the image of etcd")
	}
	images := "images:\n"
	for _, command := range regexp.MustCompile(`kustomize edit set image "([^=]+)=`).FindAllStringSubmatch(section, -1) {
		name := strings.ReplaceAll(command[1], "$etcd", etcd[1])
		images += fmt.Sprintf("  - {name: %s, newName: %s, digest: %q}\n", name, name, digest)
	}
	values := ""
	for _, path := range regexp.MustCompile("`([a-z.]*image)\\.digest`").FindAllStringSubmatch(section, -1) {
		// etcd.image becomes etcd: {image: {digest: …}}.
		parts := strings.Split(path[1], ".")
		values += strings.Join(parts, ": {") + ": {digest: " + digest + strings.Repeat("}", len(parts)) + "\n"
	}
	for where, set := range map[string]manifests.Set{
		"the overlay": renderOwn(t, "resources: [BASE/overlays/prod]\n"+images),
		"the restore": renderOwn(t, "resources: [BASE/restore]\n"+images),
		"the chart":   chart(t, values),
	} {
		containers := 0
		for _, w := range workloads(set) {
			for _, c := range append(w.template.Spec.InitContainers, w.template.Spec.Containers...) {
				containers++
				if !strings.HasSuffix(c.Image, "@"+digest) {
					t.Errorf("%s: %s runs %s, without the digest", where, w.name, c.Image)
				}
			}
		}
		if containers < 3 {
			t.Errorf("%s has %d containers", where, containers)
		}
	}
}

// TestTracing: an overlay of a user's own that adds the component has traces sent to the
// collector, and lets them through to it alone.
func TestTracing(t *testing.T) {
	set := renderOwn(t, "resources: [BASE/overlays/prod]\ncomponents: [BASE/components/tracing]\n")
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
