package check

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"licet/deploy/k8s/check/cluster"
	"licet/deploy/k8s/check/manifests"
)

// server is the API server that all tests share: the first test that needs the server starts the server. It serves the
// operator's kinds.
var server = sync.OnceValues(func() (*cluster.Cluster, error) {
	out, err := exec.Command("../tools/operator-kinds").Output()
	if err != nil {
		if failed := new(exec.ExitError); errors.As(err, &failed) {
			return nil, fmt.Errorf("operator-kinds: %w: %s", err, failed.Stderr)
		}
		return nil, err
	}
	kinds := filepath.Join(strings.TrimSpace(string(out)), "monitoring.coreos.com_")
	started, err = cluster.Start(os.Getenv("LICET_KUBE"), kinds+"servicemonitors.yaml", kinds+"prometheusrules.yaml")
	return started, err
})

// started is the server that TestMain stops.
var started *cluster.Cluster

func TestMain(m *testing.M) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		_ = stop()
		os.Exit(1)
	}()
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// stop ends the server, and removes the programs that tests have built.
func stop() (err error) {
	if started != nil {
		err = started.Stop()
	}
	if dir, _ := programs(); dir != "" {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
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
		if _, err := api(t).Secret(t.Context(), set[0].Raw.GetName(), name); err != nil {
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
	account := t.TempDir()
	for name, text := range map[string]string{"token": token, "namespace": namespace, "ca.crt": string(api(t).CA)} {
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
