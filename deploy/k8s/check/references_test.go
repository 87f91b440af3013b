package check

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"licet/deploy/k8s/check/manifests"
)

// TestSelectors: what selects pods selects those of one workload, and what a Service calls a
// port is one of theirs.
func TestSelectors(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		selected := func(what string, selector *metav1.LabelSelector) *workload {
			var found []workload
			for _, w := range workloads(set) {
				if matches(selector, w.template.Labels) {
					found = append(found, w)
				}
			}
			if len(found) != 1 {
				t.Errorf("%s selects the pods of %d workloads: %v", what, len(found), found)
				return nil
			}
			return &found[0]
		}
		for _, s := range manifests.All[corev1.Service](set) {
			w := selected("Service/"+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
			if w == nil {
				continue
			}
			for _, p := range s.Spec.Ports {
				number := portOf(t, peer{ports: w.template.Spec.Containers[0].Ports}, p.TargetPort.StrVal)
				if s.Spec.ClusterIP == corev1.ClusterIPNone && p.Port != number {
					t.Errorf("Service/%s has no address of its own, so %s must be %d", s.Name, p.Name, number)
				}
			}
		}
		for _, p := range manifests.All[policyv1.PodDisruptionBudget](set) {
			selected("PodDisruptionBudget/"+p.Name, p.Spec.Selector)
		}
		for _, w := range workloads(set) {
			if w.selector != nil && !matches(w.selector, w.template.Labels) {
				t.Errorf("%s does not select its own pods", w.name)
			}
			constraints := w.template.Spec.TopologySpreadConstraints
			for _, c := range constraints {
				if !matches(c.LabelSelector, w.template.Labels) {
					t.Errorf("%s spreads other pods than its own over %s", w.name, c.TopologyKey)
				}
			}
			if w.selector == nil {
				continue
			}
			for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
				spread := slices.ContainsFunc(constraints,
					func(c corev1.TopologySpreadConstraint) bool { return c.TopologyKey == key })
				if a := w.template.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
					for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
						spread = spread || term.TopologyKey == key && matches(term.LabelSelector, w.template.Labels)
					}
				}
				if !spread {
					t.Errorf("%s is not spread over %s", w.name, key)
				}
			}
		}
	})
}

// TestReferences: every ConfigMap and volume claim of a pod exists, and etcdcerts or the user creates every Secret.
func TestReferences(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		written := writtenSecrets(t, set)
		for _, w := range workloads(set) {
			pod := w.template.Spec
			if set.Find("ServiceAccount/"+pod.ServiceAccountName) == nil {
				t.Errorf("%s runs as %q, which is not there", w.name, pod.ServiceAccountName)
			}
			mounted := map[string]bool{}
			for _, m := range pod.Containers[0].VolumeMounts {
				mounted[m.Name] = true
			}
			for _, v := range pod.Volumes {
				if !mounted[v.Name] {
					t.Errorf("%s does not mount its volume %s", w.name, v.Name)
				}
				switch {
				case v.Secret != nil:
					if name := v.Secret.SecretName; name != "licet-master-keys" && !slices.Contains(written, name) {
						t.Errorf("%s wants the Secret %s, which neither etcdcerts nor the user writes", w.name, name)
					}
				case v.PersistentVolumeClaim != nil:
					if set.Find("PersistentVolumeClaim/"+v.PersistentVolumeClaim.ClaimName) == nil {
						t.Errorf("%s wants the claim %s, which is not there", w.name, v.PersistentVolumeClaim.ClaimName)
					}
				default:
					t.Errorf("%s has a volume %s of another kind", w.name, v.Name)
				}
			}
			// The files that settings name are in volumes that are mounted.
			for name, value := range environment(t, set, pod.Containers[0]) {
				if !strings.HasPrefix(value, "/etc/") {
					continue
				}
				folder := value[:strings.LastIndex(value, "/")]
				if !slices.ContainsFunc(pod.Containers[0].VolumeMounts,
					func(m corev1.VolumeMount) bool { return m.MountPath == folder }) {
					t.Errorf("%s: %s is %s, and nothing is mounted at %s", w.name, name, value, folder)
				}
			}
		}
	})
}

// TestMaintenanceSecret: only the jobs that need etcd's user root mount the certificate of this user, and no pod mounts
// the authorities, which can make such a certificate.
func TestMaintenanceSecret(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		have := map[string][]string{}
		for _, w := range workloads(set) {
			for _, v := range w.template.Spec.Volumes {
				if v.Secret != nil {
					have[v.Secret.SecretName] = append(have[v.Secret.SecretName], w.name)
				}
			}
		}
		for secret, want := range map[string][]string{
			"etcd-maintenance-tls": {"CronJob/etcd-defragment", "CronJob/etcd-users", "CronJob/licet-backup"},
			"etcd-client-tls":      {"Deployment/licet"},
			"etcd-authority":       nil,
		} {
			if slices.Sort(have[secret]); !slices.Equal(have[secret], want) {
				t.Errorf("%s is mounted by %v, want %v", secret, have[secret], want)
			}
		}
	})
}

// writtenSecrets lists the Secrets that etcdcerts may read and replace.
func writtenSecrets(t *testing.T, set manifests.Set) []string {
	t.Helper()
	object := set.Find("Role/etcd-certificates")
	if object == nil {
		t.Fatal("there is no Role for the certificates")
	}
	for _, rule := range object.Typed.(*rbacv1.Role).Rules {
		if len(rule.ResourceNames) > 0 {
			return rule.ResourceNames
		}
	}
	t.Fatal("the Role for the certificates names no Secret")
	return nil
}

// TestMembers: all settings that name the members name as many as there are.
func TestMembers(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		etcd := set.Find("StatefulSet/etcd").Typed.(*appsv1.StatefulSet)
		count := int(*etcd.Spec.Replicas)
		c := etcd.Spec.Template.Spec.Containers[0]
		members := environment(t, set, c)
		node := environment(t, set, find(t, set, "Deployment/licet").template.Spec.Containers[0])
		listen := func(scheme, port string) string {
			return fmt.Sprintf("%s://0.0.0.0:%d", scheme, portOf(t, peer{ports: c.Ports}, port))
		}
		var cluster, endpoints []string
		for i := range count {
			host := fmt.Sprintf("etcd-%d.%s", i, etcd.Spec.ServiceName)
			cluster = append(cluster,
				fmt.Sprintf("etcd-%d=https://%s:%d", i, host, portOf(t, peer{ports: c.Ports}, "peer")))
			endpoints = append(endpoints, fmt.Sprintf("%s:%d", host, portOf(t, peer{ports: c.Ports}, "client")))
		}
		for _, f := range []struct{ what, have, want string }{
			{"ETCD_INITIAL_CLUSTER", members["ETCD_INITIAL_CLUSTER"], strings.Join(cluster, ",")},
			{"LICET_ETCD_ENDPOINTS", node["LICET_ETCD_ENDPOINTS"], strings.Join(endpoints, ",")},
			{"ETCD_LISTEN_CLIENT_URLS", members["ETCD_LISTEN_CLIENT_URLS"], listen("https", "client")},
			{"ETCD_LISTEN_PEER_URLS", members["ETCD_LISTEN_PEER_URLS"], listen("https", "peer")},
			{"ETCD_LISTEN_METRICS_URLS", members["ETCD_LISTEN_METRICS_URLS"], listen("http", "metrics")},
			{"ETCD_ADVERTISE_CLIENT_URLS", members["ETCD_ADVERTISE_CLIENT_URLS"], "https://" + endpoints[0]},
			{"ETCD_INITIAL_ADVERTISE_PEER_URLS", "etcd-0=" + members["ETCD_INITIAL_ADVERTISE_PEER_URLS"], cluster[0]},
		} {
			if f.have != f.want {
				t.Errorf("%s is %q, want %q", f.what, f.have, f.want)
			}
		}
		for _, name := range []string{"Job/etcd-certificates", "CronJob/etcd-certificates-renewal"} {
			for _, arg := range find(t, set, name).template.Spec.Containers[0].Args {
				if text, ok := strings.CutPrefix(arg, "--members="); ok {
					if n, err := strconv.Atoi(text); err != nil || n < count {
						t.Errorf("%s makes certificates for %s of %d members", name, text, count)
					}
				}
			}
		}
		mount := c.VolumeMounts[slices.IndexFunc(c.VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.Name == etcd.Spec.VolumeClaimTemplates[0].Name })]
		if !strings.HasPrefix(members["ETCD_DATA_DIR"], mount.MountPath+"/") {
			t.Errorf("the data is in %s, and the claim's volume at %s", members["ETCD_DATA_DIR"], mount.MountPath)
		}
	})
}

// TestNodePorts: nodes listen at the ports that their pods say, and are asked for their
// health where they tell it.
func TestNodePorts(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		c := find(t, set, "Deployment/licet").template.Spec.Containers[0]
		env := environment(t, set, c)
		if _, set := env["LICET_LISTEN"]; set {
			t.Error("LICET_LISTEN is set, and the image says another port")
		}
		said := help(t, program(t, "licet"), "serve")
		if !strings.Contains(said, `($LICET_LISTEN) (default ":8080")`) {
			t.Error("without LICET_LISTEN nodes listen at another port than 8080")
		}
		for port, want := range map[string]string{"http": ":8080", "metrics": env["LICET_METRICS_LISTEN"],
			"internal": env["LICET_INTERNAL_LISTEN"]} {
			if have := fmt.Sprintf(":%d", portOf(t, peer{ports: c.Ports}, port)); have != want {
				t.Errorf("port %s is %s, and nodes listen at %s", port, have, want)
			}
		}
		if len(c.Ports) != 3 {
			t.Errorf("%d ports", len(c.Ports))
		}
	})
}

// TestGrace: a pod is killed only after its node had all the time that it may take.
func TestGrace(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		pod := find(t, set, "Deployment/licet").template.Spec
		env := environment(t, set, pod.Containers[0])
		if hook := pod.Containers[0].Lifecycle; hook == nil || hook.PreStop == nil || hook.PreStop.Sleep == nil {
			t.Fatal("SIGTERM comes while requests are still sent there")
		}
		total := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
		for _, name := range []string{"LICET_DRAIN_DELAY", "LICET_SHUTDOWN_TIMEOUT"} {
			d, err := time.ParseDuration(env[name])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			total += d
		}
		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < total+5*time.Second {
			t.Errorf("the grace is %v; a stop may take %v", grace, total)
		}
	})
}

// TestAutoscaler: only the autoscaler sets the number of nodes, and its metric is the metric of the adapter's rule.
func TestAutoscaler(t *testing.T) {
	set := render(t, "prod")
	scalers := manifests.All[autoscalingv2.HorizontalPodAutoscaler](set)
	if len(scalers) != 1 {
		t.Fatalf("%d autoscalers", len(scalers))
	}
	spec := scalers[0].Spec
	if *spec.MinReplicas < 3 || spec.MaxReplicas <= *spec.MinReplicas {
		t.Errorf("there are from %d to %d nodes: with one away two must be left", *spec.MinReplicas, spec.MaxReplicas)
	}
	target := set.Find(spec.ScaleTargetRef.Kind + "/" + spec.ScaleTargetRef.Name)
	if target == nil {
		t.Fatalf("it scales %v, which is not there", spec.ScaleTargetRef)
	}
	if target.Typed.(*appsv1.Deployment).Spec.Replicas != nil {
		t.Error("the Deployment says how many there are, so each apply undoes what was scaled")
	}
	for _, w := range workloads(set) {
		if w.name == target.String() && w.template.Spec.Containers[0].Resources.Requests.Cpu().IsZero() {
			t.Error("CPU is scaled by, and none is asked for")
		}
	}
	adapter, err := os.ReadFile("../metrics-adapter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[autoscalingv2.MetricSourceType]bool{}
	for _, m := range spec.Metrics {
		kinds[m.Type] = true
		if m.Pods != nil && !strings.Contains(string(adapter), "as: "+m.Pods.Metric.Name+"\n") {
			t.Errorf("no rule of the adapter makes %s", m.Pods.Metric.Name)
		}
	}
	if !kinds[autoscalingv2.ResourceMetricSourceType] || !kinds[autoscalingv2.PodsMetricSourceType] {
		t.Errorf("it scales by %v, not by CPU and pressure", kinds)
	}
	if down := spec.Behavior.ScaleDown; *down.StabilizationWindowSeconds < 300 || len(down.Policies) != 1 ||
		down.Policies[0].Value != 1 {
		t.Error("it scales down quickly")
	}
}

// TestMonitors: each scrapes one Service, at a port that it has, and the job is called what
// rules want.
func TestMonitors(t *testing.T) {
	set := render(t, "prod")
	jobs := map[string]bool{}
	for _, m := range manifests.All[monitoring.ServiceMonitor](set) {
		for _, e := range m.Spec.Endpoints {
			var found []*corev1.Service
			for _, s := range manifests.All[corev1.Service](set) {
				named := slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port })
				if matches(&m.Spec.Selector, s.Labels) && named {
					found = append(found, s)
				}
			}
			if len(found) != 1 {
				t.Errorf("ServiceMonitor/%s: %d Services have the port %s", m.Name, len(found), e.Port)
				continue
			}
			jobs[found[0].Labels[m.Spec.JobLabel]] = true
			if !found[0].Spec.PublishNotReadyAddresses {
				t.Errorf("what is not ready is not scraped by ServiceMonitor/%s", m.Name)
			}
		}
	}
	if len(jobs) != 2 || !jobs["licet"] || !jobs["etcd"] {
		t.Errorf("the jobs are %v, and rules want licet and etcd", jobs)
	}
}
