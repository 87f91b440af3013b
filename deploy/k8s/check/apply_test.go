package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"licet/deploy/k8s/check/cluster"
	"licet/deploy/k8s/check/manifests"
)

// server is the API server that all tests share: started at the first one's wish.
var server = sync.OnceValues(func() (*cluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, os.Getenv("LICET_KUBE"))
	if err != nil {
		return nil, err
	}
	started = c
	return c, install(ctx, c)
})

// started is the server that TestMain stops.
var started *cluster.Cluster

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		if err := started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func api(t *testing.T) *cluster.Cluster {
	t.Helper()
	kube(t, "kube-apiserver")
	c, err := server()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// install has the server serve the operator's kinds.
func install(ctx context.Context, c *cluster.Cluster) error {
	out, err := exec.CommandContext(ctx, "../tools/operator-kinds").Output()
	if err != nil {
		if failed := new(exec.ExitError); errors.As(err, &failed) {
			return fmt.Errorf("operator-kinds: %w: %s", err, failed.Stderr)
		}
		return err
	}
	folder := strings.TrimSpace(string(out))
	var list []*unstructured.Unstructured
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		text, err := os.ReadFile(filepath.Join(folder, "monitoring.coreos.com_"+kind+".yaml"))
		if err != nil {
			return err
		}
		object := new(unstructured.Unstructured)
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return err
		}
		if _, err := c.Apply(ctx, object, false); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		list = append(list, object)
	}
	for _, object := range list {
		if err := c.Served(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
	}
	return nil
}

// applied applies all objects of a set once; a second test finds them there.
func applied(t *testing.T, set manifests.Set) {
	t.Helper()
	for _, o := range set {
		if _, err := api(t).Apply(t.Context(), o.Raw, false); err != nil {
			t.Errorf("%s: %v", o, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestOverlaysApply: a real API server takes every object, without a warning. Applied
// again, nothing changes: what is applied is what is kept.
func TestOverlaysApply(t *testing.T) {
	api(t)
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		applied(t, set)
		for _, o := range set {
			first, err := api(t).Apply(t.Context(), o.Raw, false)
			if err != nil {
				t.Errorf("%s again: %v", o, err)
				continue
			}
			second, err := api(t).Apply(t.Context(), o.Raw, false)
			if err != nil || first.GetResourceVersion() != second.GetResourceVersion() {
				t.Errorf("%s changes when it is applied again: %v", o, err)
			}
		}
	})
}

// TestRestoreApplies: so are the Jobs that make members out of a backup.
func TestRestoreApplies(t *testing.T) {
	applied(t, render(t, "prod")[:1]) // the namespace
	set, err := manifests.Render("../restore")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range set {
		if _, err := api(t).Apply(t.Context(), o.Raw, true); err != nil {
			t.Errorf("%s: %v", o, err)
		}
	}
}

// TestCertificatesAreMade runs etcdcerts as its Job does, with a token of its account and
// no other right than that account has.
func TestCertificatesAreMade(t *testing.T) {
	set := render(t, "prod")
	applied(t, set)
	if said := makeCertificates(t, set, "Job/etcd-certificates"); bytes.Count([]byte(said), []byte("made, good")) != 5 {
		t.Errorf("the first run: %s", said)
	}
	// Each Secret that a pod mounts is there, with the files that settings name.
	for _, name := range writtenSecrets(t, set) {
		if _, err := api(t).Get(t.Context(), "/api/v1/namespaces/"+set[0].Raw.GetName()+"/secrets/"+name); err != nil {
			t.Error(err)
		}
	}
	if said := makeCertificates(t, set, "CronJob/etcd-certificates-renewal"); bytes.Count([]byte(said),
		[]byte(": good\n")) != 4 {
		t.Errorf("the second run: %s", said)
	}
}

// makeCertificates runs etcdcerts as a workload of an overlay does, and returns its output.
func makeCertificates(t *testing.T, set manifests.Set, name string) string {
	t.Helper()
	pod := find(t, set, name).template.Spec
	namespace := set[0].Raw.GetName()
	token, err := api(t).Token(t.Context(), namespace, pod.ServiceAccountName)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(api(t).CAFile)
	if err != nil {
		t.Fatal(err)
	}
	account := t.TempDir()
	for name, text := range map[string]string{"token": token, "namespace": namespace, "ca.crt": string(authority)} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program(t, "etcdcerts"),
		append(pod.Containers[0].Args, "--service-account="+account)...)
	cmd.Env = append(os.Environ(), kubernetesAddress(t)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("etcdcerts: %v\n%s", err, out)
	}
	return string(out)
}

// kubernetesAddress returns the environment by which a pod finds the API server.
func kubernetesAddress(t *testing.T) []string {
	t.Helper()
	u, err := url.Parse(api(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + u.Hostname(), "KUBERNETES_SERVICE_PORT=" + u.Port()}
}

// TestAccountsMayDoNoMore: the account of the certificates may do nothing but what it is
// for, and those of nodes and members nothing at all.
func TestAccountsMayDoNoMore(t *testing.T) {
	set := render(t, "prod")
	applied(t, set)
	namespace := set[0].Raw.GetName()
	secrets := "/api/v1/namespaces/" + namespace + "/secrets"
	for account, allowed := range map[string]map[string]int{
		"etcd-certificates": {
			"GET " + secrets + "/etcd-no-such-secret": 403, "GET " + secrets + "/etcd-authority": 200,
			"POST " + secrets: 403, "PATCH " + secrets + "/etcd-no-such-secret": 403,
		},
		"licet": {"GET " + secrets + "/etcd-authority": 403},
		"etcd":  {"GET " + secrets + "/etcd-authority": 403},
	} {
		token, err := api(t).Token(t.Context(), namespace, account)
		if err != nil {
			t.Fatal(err)
		}
		for _, refused := range []string{
			"GET " + secrets, "GET " + secrets + "/licet-master-keys", "DELETE " + secrets + "/etcd-authority",
			"GET /api/v1/namespaces/default/secrets/etcd-authority", "GET /api/v1/namespaces/" + namespace + "/pods",
			"GET /api/v1/nodes",
		} {
			allowed[refused] = 403
		}
		for call, want := range allowed {
			method, path, _ := strings.Cut(call, " ")
			got, err := api(t).Status(t.Context(), token, method, path)
			if err != nil {
				t.Fatal(err)
			}
			if want == 200 && got == 404 {
				got = 200 // allowed, and not made yet
			}
			if got != want {
				t.Errorf("%s as %s answers %d, want %d", call, account, got, want)
			}
		}
	}
}
