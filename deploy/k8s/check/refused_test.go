package check

import (
	"errors"
	"strings"
	"testing"

	"licet/deploy/k8s/check/cluster"
)

// TestBrokenManifestsAreRefused breaks the manifests of production one by one. What is
// refused, and why, shows that silence about the unbroken ones means something.
func TestBrokenManifestsAreRefused(t *testing.T) {
	set := render(t, "prod")
	applied(t, set) // also what may not be changed later is there
	const (
		pod       = "spec.template.spec"
		container = pod + ".containers.0"
	)
	// f puts a value at a path of an object, or removes what is there.
	f := func(object, path string, value any, want string) {
		t.Helper()
		found := set.Find(object)
		if found == nil {
			t.Fatalf("there is no %s", object)
		}
		broken := found.Raw.DeepCopy()
		if err := put(broken.Object, strings.Split(path, "."), value); err != nil {
			t.Fatalf("%s: %s: %v", object, path, err)
		}
		_, err := api(t).Apply(t.Context(), broken, true)
		var refusal *cluster.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, want) {
			t.Errorf("%s with %s = %v: got %v, want %q", object, path, value, err, want)
		}
	}

	// What a schema tells.
	f("Deployment/licet", container+".resorces", map[string]any{}, "field not declared in schema")
	f("Deployment/licet", "spec.revisionHistoryLimit", "five", "expected numeric")
	f("StatefulSet/etcd", "spec.updateStrategy.type", []any{}, "expected string")
	f("HorizontalPodAutoscaler/licet", "spec.behaviour", map[string]any{}, "field not declared in schema")
	f("ServiceMonitor/licet", "spec.endpoints.0.interval", "15 seconds",
		"spec.endpoints[0].interval in body should match")
	f("ServiceMonitor/licet", "spec.endpoint", []any{}, "field not declared in schema")
	f("PrometheusRule/licet-slo", "spec.groups.0.interval", "often", "spec.groups[0].interval in body should match")

	// What only the server knows.
	f("Deployment/licet", container+".resources.requests.memory", "2Gi", "must be less than or equal to memory limit")
	f("Deployment/licet", "spec.strategy.rollingUpdate.maxSurge", int64(0), "may not be 0 when `maxSurge` is 0")
	f("Deployment/licet", container+".ports.0.containerPort", int64(99999), "must be between 1 and 65535")
	f("Deployment/licet", container+".ports.1.name", "http", `Duplicate value: "http"`)
	f("Deployment/licet", container+".livenessProbe.exec", map[string]any{"command": []any{"true"}},
		"may not specify more than 1 handler type")
	f("Deployment/licet", container+".livenessProbe.httpGet.port", "metrics-of-this-node",
		"must be no more than 15 characters")
	f("Deployment/licet", container+".lifecycle.preStop.sleep.seconds", int64(60),
		"must be non-negative and less than terminationGracePeriodSeconds")
	f("Deployment/licet", container+".volumeMounts.0.name", "keys", "Not found")
	f("Deployment/licet", pod+".topologySpreadConstraints.0.whenUnsatisfiable", "Never", "Unsupported value")
	f("Deployment/licet", "spec.template.metadata.labels.app.kubernetes.io/name", "other",
		"`selector` does not match template `labels`")
	f("PersistentVolumeClaim/licet-backups", "spec.resources.requests.storage", "-1Gi", "must be greater than zero")
	f("HorizontalPodAutoscaler/licet", "spec.maxReplicas", int64(1), "must be greater than or equal to `minReplicas`")
	f("HorizontalPodAutoscaler/licet", "spec.metrics.1.pods.target.averageValue", "-1", "must be positive")
	f("PodDisruptionBudget/licet", "spec.minAvailable", int64(1), "minAvailable and maxUnavailable cannot be both set")
	f("CronJob/licet-backup", "spec.schedule", "7 * * *", "expected exactly 5 fields")
	f("CronJob/licet-backup", "spec.timeZone", "Atlantis", "unknown time zone")
	f("CronJob/etcd-defragment", "spec.jobTemplate.spec.template.spec.restartPolicy", "Always",
		`valid values: "OnFailure", "Never"`)
	f("Service/licet", "spec.ports.0.port", int64(0), "must be between 1 and 65535")
	f("NetworkPolicy/licet", "spec.egress.2.to.0.ipBlock.cidr", "10.0.0.0/8", "must be a strict subset of `cidr`")
	f("NetworkPolicy/licet", "spec.policyTypes", []any{"Inwards"}, "Unsupported value")

	// What the restricted Pod Security Standard of the namespace warns of.
	f("Deployment/licet", pod+".securityContext.runAsNonRoot", nil, "runAsNonRoot != true")
	f("Deployment/licet", container+".securityContext.capabilities", nil, "unrestricted capabilities")
	f("StatefulSet/etcd", container+".securityContext.privileged", true, "privileged")
	f("StatefulSet/etcd", pod+".hostNetwork", true, "host namespaces")
	f("CronJob/licet-backup", "spec.jobTemplate.spec.template.spec.volumes.0",
		map[string]any{"name": "backups", "hostPath": map[string]any{"path": "/"}}, "restricted volume types")

	// What can't be changed any more.
	f("Deployment/licet", "spec.selector.matchLabels.app.kubernetes.io/component", "other", "field is immutable")
	f("StatefulSet/etcd", "spec.serviceName", "other", "updates to statefulset spec for fields other than")
	f("StatefulSet/etcd", "spec.volumeClaimTemplates.0.spec.resources.requests.storage", "64Gi",
		"updates to statefulset spec for fields other than")
	f("Service/etcd", "spec.clusterIP", "10.96.0.7", "may not change once set")
	f("RoleBinding/etcd-certificates", "roleRef.name", "other", "cannot change roleRef")
	f("PersistentVolumeClaim/licet-backups", "spec.accessModes", []any{"ReadWriteMany"}, "is immutable after creation")
}

// put puts a value at a path; nil removes what is there. An element of a list goes by its
// number. The rest of the path is one name where the name before it contains labels, whose names
// have dots.
func put(object map[string]any, path []string, value any) error {
	_, err := set(object, path, value)
	return err
}

func set(node any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch n := node.(type) {
	case map[string]any:
		name, rest := path[0], path[1:]
		if strings.HasPrefix(strings.Join(path, "."), "app.kubernetes.io/") {
			name, rest = strings.Join(path, "."), nil
		}
		if n[name] == nil && len(rest) > 0 {
			return nil, errors.New("there is no " + name)
		}
		below, err := set(n[name], rest, value)
		if err != nil {
			return nil, err
		}
		if n[name] = below; below == nil {
			delete(n, name)
		}
		return n, nil
	case []any:
		for i := range n {
			if path[0] != string(rune('0'+i)) {
				continue
			}
			below, err := set(n[i], path[1:], value)
			n[i] = below
			return n, err
		}
	}
	return nil, errors.New("there is no " + path[0])
}

// TestPut: put returns an error for a path that does not exist; otherwise a case above would test nothing.
func TestPut(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{"a": []any{map[string]any{"b": "c"}}, "l": map[string]any{"app.kubernetes.io/name": "x"}}
	}
	for path, ok := range map[string]bool{"a.0.b": true, "a.0.new": true, "l.app.kubernetes.io/name": true,
		"a.1.b": false, "n.o": false, "a.0.b.c": false} {
		if err := put(object(), strings.Split(path, "."), "v"); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}
