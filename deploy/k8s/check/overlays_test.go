package check

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"licet/deploy/k8s/check/manifests"
)

// overlays are what users apply.
var overlays = []string{"dev", "prod"}

// render renders an overlay. A failure tells of the object that is wrong.
func render(t *testing.T, overlay string) manifests.Set {
	t.Helper()
	set, err := manifests.Render("../overlays/" + overlay)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// eachOverlay runs a test for every overlay.
func eachOverlay(t *testing.T, test func(t *testing.T, set manifests.Set)) {
	t.Helper()
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) { test(t, render(t, overlay)) })
	}
}

// workload is whatever makes pods.
type workload struct {
	name     string // such as Deployment/licet
	template *corev1.PodTemplateSpec
	selector *metav1.LabelSelector // nil: its own
}

func workloads(set manifests.Set) []workload {
	var list []workload
	for _, o := range set {
		switch w := o.Typed.(type) {
		case *appsv1.Deployment:
			list = append(list, workload{o.String(), &w.Spec.Template, w.Spec.Selector})
		case *appsv1.StatefulSet:
			list = append(list, workload{o.String(), &w.Spec.Template, w.Spec.Selector})
		case *batchv1.Job:
			list = append(list, workload{o.String(), &w.Spec.Template, nil})
		case *batchv1.CronJob:
			list = append(list, workload{o.String(), &w.Spec.JobTemplate.Spec.Template, nil})
		}
	}
	return list
}

// find finds the workload of a name.
func find(t *testing.T, set manifests.Set, name string) workload {
	t.Helper()
	for _, w := range workloads(set) {
		if w.name == name {
			return w
		}
	}
	t.Fatalf("there is no %s", name)
	return workload{}
}

// TestOverlaysAreStrict: no member is misspelled or of a wrong type. Render says so, and
// this that it would.
func TestOverlaysAreStrict(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		if len(set) < 25 {
			t.Errorf("%d objects: something is left out", len(set))
		}
		for _, o := range set {
			if kind := o.Raw.GetKind(); o.Raw.GetNamespace() == "" && kind != "Namespace" {
				t.Errorf("%s is in no namespace", o)
			}
		}
	})
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {%s}\n"
	f := func(spec, want string) {
		t.Helper()
		_, err := manifests.Decode([]byte(strings.Replace(service, "%s", spec, 1)))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", spec, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", spec, err, want)
		}
	}
	f("clusterIP: None", "")
	f("clusterip: None", `unknown field "spec.clusterip"`)
	f("ports: [{port: https}]", "cannot unmarshal")
	f("clusterIP: None, clusterIP: None", "already set")
}

// TestLabels: what Kubernetes recommends, on every object and pod.
func TestLabels(t *testing.T) {
	want := []string{"name", "instance", "component", "part-of", "managed-by"}
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		for _, w := range workloads(set) {
			object := set.Find(w.name)
			for _, label := range want {
				for place, labels := range map[string]map[string]string{"": object.Raw.GetLabels(),
					"'s pods": w.template.Labels} {
					if labels["app.kubernetes.io/"+label] == "" {
						t.Errorf("%s%s have no label %s", w.name, place, label)
					}
				}
			}
		}
	})
}

// TestPods: what every pod must be, apart from what the restricted Pod Security Standard
// says, which the API server looks at.
func TestPods(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		for _, w := range workloads(set) {
			pod := w.template.Spec
			token := pod.AutomountServiceAccountToken
			if token == nil || *token != (pod.ServiceAccountName == "etcd-certificates") {
				t.Errorf("%s: only the certificates' pods may have a token", w.name)
			}
			if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
				t.Errorf("%s: variables of Services would pass for settings", w.name)
			}
			if user := pod.SecurityContext.RunAsUser; user == nil || *user != imageUser(t) {
				t.Errorf("%s does not run as the image's user", w.name)
			}
			// Secrets and claims belong to root, but for this group.
			if group := pod.SecurityContext.FSGroup; len(pod.Volumes) > 0 && (group == nil || *group != imageUser(t)) {
				t.Errorf("%s can't read what it mounts", w.name)
			}
			for _, c := range pod.Containers {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s may write to its root", w.name)
				}
				if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() ||
					c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s asks for no CPU or memory, or has no limit of memory", w.name)
				}
				if !c.Resources.Limits.Cpu().IsZero() {
					t.Errorf("%s has a limit of CPU", w.name)
				}
				if _, tag, ok := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":"); !ok || tag == "latest" {
					t.Errorf("%s: image %s is not pinned", w.name, c.Image)
				}
			}
		}
	})
}

// imageUser is the user of the Dockerfile, which a test of deploy/image compares with the
// image that needs no engine.
func imageUser(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\nUSER 65532:65532\n") {
		t.Fatal("the Dockerfile has another user")
	}
	return 65532
}
