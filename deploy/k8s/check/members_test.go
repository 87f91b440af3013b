package check

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"licet/deploy/k8s/check/manifests"
)

// TestMemberRuns starts the one member of the development overlay as its pod does, but at other
// addresses: with the certificates that the Job makes and all of its settings. It answers
// probes where kubelets ask, takes no client without a certificate, and is worked on by the
// commands of the CronJobs. After one of these has made the users, the certificate of nodes does
// for none of the CronJobs. Of the backup the Jobs of a restore make the members of production.
func TestMemberRuns(t *testing.T) {
	set := render(t, "dev")
	applied(t, set)
	makeCertificates(t, set, "Job/etcd-certificates")
	pod := find(t, set, "StatefulSet/etcd").template.Spec
	folders := mountSecrets(t, set, pod)
	folders["/var/lib/etcd"] = t.TempDir()
	client, metrics, _ := startMember(t, inFolders(environment(t, set, pod.Containers[0]), folders))

	c := pod.Containers[0]
	probes := func() {
		t.Helper()
		for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe,
			"readiness": c.ReadinessProbe} {
			switch {
			case probe == nil || probe.HTTPGet == nil:
				t.Errorf("members have no %s probe", what)
			case probe.HTTPGet.Port.String() != "metrics":
				t.Errorf("%s asks at port %s, where a certificate is asked for", what, probe.HTTPGet.Port.String())
			case probe.HTTPGet.Path == "/readyz" != (what == "readiness"):
				t.Errorf("%s asks for %s: a restart brings no majority back", what, probe.HTTPGet.Path)
			default:
				if status, err := status(metrics + probe.HTTPGet.Path); status != http.StatusOK {
					t.Errorf("%s: %s answers %d, %v", what, probe.HTTPGet.Path, status, err)
				}
			}
		}
	}
	probes()
	if status, err := status(metrics + "/metrics"); status != http.StatusOK {
		t.Errorf("metrics: %d, %v", status, err)
	}
	if err := stranger(client); err == nil {
		t.Error("a client without a certificate is served")
	}

	backups := t.TempDir()
	attempt := func(name, certificatesOf string) ([]byte, error) {
		t.Helper()
		pod := find(t, set, name).template.Spec
		holder := find(t, set, certificatesOf).template.Spec
		holder.Volumes = slices.DeleteFunc(slices.Clone(holder.Volumes), func(v corev1.Volume) bool {
			return v.Secret != nil && v.Secret.SecretName == "licet-master-keys" // the user's; no CronJob needs it
		})
		folders := mountSecrets(t, set, holder)
		folders["/backups"] = backups
		env := inFolders(environment(t, set, pod.Containers[0]), folders)
		env["LICET_ETCD_ENDPOINTS"] = client
		cmd := exec.CommandContext(t.Context(), program(t, "licet"), expand(pod.Containers[0].Args, nil, folders)...)
		cmd.Env = variables(env)
		return cmd.CombinedOutput()
	}
	run := func(name, want string) {
		t.Helper()
		if out, err := attempt(name, name); err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%s: %v, want %q\n%s", name, err, want, out)
		}
	}
	run("CronJob/etcd-users", "turn authentication on\nauthentication is on\n")
	run("CronJob/etcd-users", "authentication is on\n")
	probes()
	for name, problem := range map[string]string{
		"CronJob/etcd-users":   `has the CommonName "licet"`,
		"CronJob/licet-backup": "permission denied: use the certificate of the user root",
	} {
		if out, err := attempt(name, "Deployment/licet"); err == nil || !strings.Contains(string(out), problem) {
			t.Errorf("%s with the certificate of nodes: %v, want %q\n%s", name, err, problem, out)
		}
	}
	run("CronJob/etcd-defragment", client)
	run("CronJob/licet-backup", "every change up to revision")
	made, err := filepath.Glob(filepath.Join(backups, "licet-*Z.db"))
	if err != nil || len(made) != 1 {
		t.Fatalf("the backup's CronJob has made %q, %v", made, err)
	}
	restore(t, made[0])
}

// restore runs the Jobs that make members out of a backup, as their pods do.
func restore(t *testing.T, backup string) {
	t.Helper()
	jobs, err := manifests.Render("../restore")
	if err != nil {
		t.Fatal(err)
	}
	production := render(t, "prod")
	etcd := production.Find("StatefulSet/etcd").Typed.(*appsv1.StatefulSet)
	member := environment(t, production, etcd.Spec.Template.Spec.Containers[0])
	for i := range int(*etcd.Spec.Replicas) {
		pod := find(t, jobs, fmt.Sprintf("Job/etcd-restore-%d", i)).template.Spec
		env := environment(t, jobs, pod.Containers[0])
		name, claim := fmt.Sprintf("etcd-%d", i), fmt.Sprintf("data-etcd-%d", i)
		args := expand(pod.Containers[0].Args, env, nil)
		for _, want := range []string{
			"--name=" + name, "--data-dir=" + member["ETCD_DATA_DIR"], "--initial-cluster=" +
				member["ETCD_INITIAL_CLUSTER"],
			"--initial-advertise-peer-urls=" + strings.ReplaceAll(member["ETCD_INITIAL_ADVERTISE_PEER_URLS"], "etcd-0",
				name),
			// Without these two, nodes take a revision of the lost store for one of this.
			"--bump-revision=1000000000", "--mark-compacted",
		} {
			if !slices.Contains(args, want) {
				t.Errorf("Job/etcd-restore-%d: %q has no %s", i, args, want)
			}
		}
		if env["TOKEN"] == member["ETCD_INITIAL_CLUSTER_TOKEN"] {
			t.Error("the restored cluster passes for the lost one")
		}
		found := jobs.Find("PersistentVolumeClaim/" + claim)
		if found == nil {
			t.Fatalf("no claim %s is made", claim)
		}
		want := etcd.Spec.VolumeClaimTemplates[0].Spec
		have := found.Typed.(*corev1.PersistentVolumeClaim).Spec
		if have.Resources.Requests.Storage().Cmp(*want.Resources.Requests.Storage()) != 0 ||
			!slices.Equal(have.AccessModes, want.AccessModes) {
			t.Errorf("the claim %s is another one than the StatefulSet makes", claim)
		}
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}) {
			t.Errorf("Job/etcd-restore-%d does not write to %s", i, claim)
		}
		env["BACKUP"] = filepath.Base(backup)
		data := t.TempDir()
		args = expand(pod.Containers[0].Args, env,
			map[string]string{"/backups": filepath.Dir(backup), "/var/lib/etcd": data})
		command(t, kube(t, filepath.Base(pod.Containers[0].Command[0])), args, nil)
		if _, err := os.Stat(filepath.Join(data, filepath.Base(member["ETCD_DATA_DIR"]),
			"member/snap/db")); err != nil {
			t.Error(err)
		}
	}
}

// mountSecrets writes the Secrets that a pod mounts into folders, and answers which is where.
func mountSecrets(t *testing.T, set manifests.Set, pod corev1.PodSpec) map[string]string {
	t.Helper()
	folders := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			secret, err := api(t).Secret(t.Context(), set[0].Raw.GetName(), volume.Secret.SecretName)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			folders[mount.MountPath] = dir
			for name, text := range secret.Data {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return folders
}

// inFolders has settings name the folders that stand for those of a pod.
func inFolders(env, folders map[string]string) map[string]string {
	moved := map[string]string{}
	for name, value := range env {
		moved[name] = inFolder(value, folders)
	}
	return moved
}

func inFolder(text string, folders map[string]string) string {
	for mounted, dir := range folders {
		text = strings.ReplaceAll(text, mounted, dir)
	}
	return text
}

// expand makes of a container's arguments what Kubernetes makes of them.
func expand(args []string, env, folders map[string]string) []string {
	var list []string
	for _, arg := range args {
		arg = inFolder(arg, folders)
		for name, value := range env {
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		list = append(list, arg)
	}
	return list
}

// command runs a program to its good end.
func command(t *testing.T, path string, args []string, env map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = variables(env)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(path), args, err, out)
	}
}

func variables(env map[string]string) []string {
	list := []string{} // not nil, which would be all of this process's
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// startMember runs etcd until the test ends. It returns the address for clients, the URL for probes, and the path of
// the log.
func startMember(t *testing.T, env map[string]string) (client, metrics, logFile string) {
	t.Helper()
	for _, name := range []string{"CLIENT", "PEER", "METRICS"} {
		u, err := url.Parse(env["ETCD_LISTEN_"+name+"_URLS"])
		if err != nil || u.Hostname() != "0.0.0.0" {
			t.Fatalf("members listen for %s at %s: %v", name, u, err)
		}
		env["ETCD_LISTEN_"+name+"_URLS"] = u.Scheme + "://" + freeAddress(t)
	}
	cmd := exec.CommandContext(t.Context(), kube(t, "etcd"))
	cmd.Env = variables(env)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	log, err := os.Create(filepath.Join(t.TempDir(), "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { <-ended }) // the test's context has ended by then
	metrics = env["ETCD_LISTEN_METRICS_URLS"]
	for deadline := time.Now().Add(time.Minute); ; {
		code, err := status(metrics + "/readyz")
		if code == http.StatusOK {
			break
		}
		select {
		case err := <-ended:
			ended <- err
		case <-time.After(50 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("the member is not ready: %d, %v\n%s", code, err, text)
	}
	// Its certificate names no address.
	listen, err := url.Parse(env["ETCD_LISTEN_CLIENT_URLS"])
	if err != nil {
		t.Fatal(err)
	}
	return "localhost:" + listen.Port(), metrics, log.Name()
}

// freeAddress returns an address of this machine that no process listens on, with a port below those that the system
// chooses for outgoing connections: so no connection takes the port before the process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	for try := 1; ; try++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
		if try == 1000 {
			t.Fatal(err)
		}
	}
}

func status(url string) (int, error) {
	answer, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// stranger connects to a member without a certificate.
func stranger(address string) error {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer conn.Close()
	// In TLS 1.3 the client finishes before the server refuses it; an accepted client gets
	// the first frame of HTTP/2.
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
