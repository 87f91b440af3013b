package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"licet/deploy/k8s/check/manifests"
)

const repository = "../../.."

// programs builds the programs of the image, once, and returns their folder.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "licet-programs")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", dir, "./cmd/...")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, nil
})

// program is the path of one of them.
func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// kube is the path of a program that ../tools/build has made.
func kube(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("LICET_KUBE")
	if dir == "" {
		t.Fatal("LICET_KUBE must name the folder with kube-apiserver and etcd: run make k8s-check")
	}
	return filepath.Join(dir, name)
}

// help is what a program says of its flags.
func help(t *testing.T, path string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, append(args, "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s --help: %v\n%s", filepath.Base(path), err, out)
	}
	return string(out)
}

// environment is what a container of a set gets, as Kubernetes puts it together. Secrets are
// files only, and the pod's own name is that of the first member.
func environment(t *testing.T, set manifests.Set, c corev1.Container) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			t.Fatalf("container %s takes variables from something else than a ConfigMap", c.Name)
		}
		object := set.Find("ConfigMap/" + from.ConfigMapRef.Name)
		if object == nil {
			t.Fatalf("container %s takes variables from %s, which is not there", c.Name, from.ConfigMapRef.Name)
		}
		for key, value := range object.Typed.(*corev1.ConfigMap).Data {
			env[key] = value
		}
	}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			if v.ValueFrom.FieldRef == nil || v.ValueFrom.FieldRef.FieldPath != "metadata.name" {
				t.Fatalf("container %s takes %s from something unknown", c.Name, v.Name)
			}
			value = "etcd-0"
		}
		for name, known := range env {
			value = strings.ReplaceAll(value, "$("+name+")", known)
		}
		if strings.Contains(value, "$(") {
			t.Errorf("container %s: %s is %q, with a variable that comes later or never", c.Name, v.Name, value)
		}
		env[v.Name] = value
	}
	return env
}

var mentioned = regexp.MustCompile(`\(\$(LICET_[A-Z_]+)\)`)

// TestSettingsOfLicet: each variable that a container of licet gets is a flag of the command
// that it runs, and each flag on its command line is one. Those of ConfigMaps that several
// commands share must be flags of one of them.
func TestSettingsOfLicet(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		commands := 0
		for _, w := range workloads(set) {
			c := w.template.Spec.Containers[0]
			if c.Name != "licet" {
				continue
			}
			commands++
			if len(c.Command) > 0 || len(c.Args) == 0 {
				t.Fatalf("%s does not run a command of the image's program", w.name)
			}
			command := c.Args[:1:1]
			if c.Args[0] == "store" {
				command = c.Args[:2:2]
			}
			said := help(t, program(t, "licet"), command...)
			known := map[string]bool{}
			for _, m := range mentioned.FindAllStringSubmatch(said, -1) {
				known[m[1]] = true
			}
			for name := range environment(t, set, c) {
				if !known[name] {
					t.Errorf("%s: licet %s has no flag for %s", w.name, strings.Join(command, " "), name)
				}
			}
			for _, arg := range c.Args[len(command):] {
				flag, _, _ := strings.Cut(arg, "=")
				if strings.HasPrefix(flag, "-") && !strings.Contains(said, "  "+flag+" ") {
					t.Errorf("%s: licet %s has no flag %s", w.name, strings.Join(command, " "), flag)
				}
			}
		}
		if commands == 0 {
			t.Error("no container runs licet")
		}
	})
}

// TestNodesTakeTheirSettings runs licet serve with them. It gets as far as the master
// keys, which are not there: no setting is refused, which would be another exit code.
func TestNodesTakeTheirSettings(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		env := environment(t, set, find(t, set, "Deployment/licet").template.Spec.Containers[0])
		code, said := serve(t, env)
		if code != 1 || !strings.Contains(said, "master keys: open "+env["LICET_MASTER_KEY_FILE"]) {
			t.Errorf("exit code %d: %s", code, said)
		}
		env["LICET_DRAIN_DELAY"] = "5"
		if code, said := serve(t, env); code != 2 {
			t.Errorf("a wrong setting: exit code %d: %s", code, said)
		}
	})
}

func serve(t *testing.T, env map[string]string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "licet"), "serve")
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("licet serve: %v\n%s", err, out)
	}
	return exit.ExitCode(), string(out)
}

// TestSettingsOfEtcd: each variable that the members get is a flag of etcd's.
func TestSettingsOfEtcd(t *testing.T) {
	said := help(t, kube(t, "etcd"))
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		for name := range environment(t, set, find(t, set, "StatefulSet/etcd").template.Spec.Containers[0]) {
			flag := "--" + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "ETCD_")), "_", "-")
			if !strings.Contains(said, flag+" ") && !strings.Contains(said, flag+"\n") {
				t.Errorf("etcd has no flag %s", flag)
			}
		}
	})
}

// TestMembersTakeTheirSettings runs etcd with them. It gets as far as the certificates,
// which are not there.
func TestMembersTakeTheirSettings(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		env := environment(t, set, find(t, set, "StatefulSet/etcd").template.Spec.Containers[0])
		env["ETCD_DATA_DIR"] = filepath.Join(t.TempDir(), "data")
		f := func(want string) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), kube(t, "etcd"))
			for name, value := range env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte(want)) {
				t.Errorf("etcd: %v, want %q\n%s", err, want, out)
			}
		}
		f("open " + env["ETCD_PEER_CERT_FILE"] + ": no such file")
		right := env["ETCD_FEATURE_GATES"]
		env["ETCD_FEATURE_GATES"] = "StopServiceOnDefrag=true"
		f("unrecognized feature gate")
		env["ETCD_FEATURE_GATES"], env["ETCD_AUTO_COMPACTION_MODE"] = right, "hourly"
		f("hourly")
	})
}

// TestEtcdVersion: the members run the version of etcd that nodes accept, which is the version built here, and the
// restore uses the same version.
func TestEtcdVersion(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), kube(t, "etcd"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ := bytes.Cut(bytes.TrimPrefix(out, []byte("etcd Version: ")), []byte("\n"))
	want := "gcr.io/etcd-development/etcd:v" + string(version)
	f := func(folder string) {
		t.Helper()
		set, err := manifests.Render(folder)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, w := range workloads(set) {
			for _, c := range w.template.Spec.Containers {
				if strings.Contains(c.Image, "/etcd:") {
					count++
					if c.Image != want {
						t.Errorf("%s: %s has image %s; built and tried is %s", folder, w.name, c.Image, want)
					}
				}
			}
		}
		if count == 0 {
			t.Errorf("%s has no etcd", folder)
		}
	}
	f("../overlays/dev")
	f("../overlays/prod")
	f("../restore")
}

// TestSettingsOfCertificates: etcdcerts takes its flags, and there are certificates for all
// members. Outside of a pod it gets no further.
func TestSettingsOfCertificates(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		for _, name := range []string{"Job/etcd-certificates", "CronJob/etcd-certificates-renewal"} {
			c := find(t, set, name).template.Spec.Containers[0]
			if len(c.Command) != 1 || c.Command[0] != "/usr/local/bin/etcdcerts" {
				t.Fatalf("%s runs %v", name, c.Command)
			}
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "etcdcerts"), c.Args...)
			cmd.Env = []string{"KUBERNETES_SERVICE_HOST="}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 ||
				!bytes.Contains(out, []byte("in a pod of Kubernetes")) {
				t.Errorf("%s: %v: %s", name, err, out)
			}
		}
	})
}
