package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUnitIsHardened checks the unit with systemd's own tools. The threshold is ten times the exposure.
func TestUnitIsHardened(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=19",
		"--no-pager", "debian/licet.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPackage installs the package under a systemd of its own, with the commands of the install page, and starts the
// service in front of a real etcd: the unit's restrictions apply. Then it stops, removes and purges the package.
func TestPackage(t *testing.T) {
	programs := os.Getenv("LICET_KUBE")
	if programs == "" || os.Getuid() != 0 {
		t.Skip("needs root, and the folder of etcd in LICET_KUBE: sudo make release-check")
	}
	packages, layer := t.TempDir(), t.TempDir()
	err := run([]string{"--source", repository, "--out", packages, "--version", "1.2.3", "--platforms",
		"linux/" + runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	m := boot(t, layer, packages)
	etcd, service := free(t), free(t)
	data := t.TempDir()
	start(t, filepath.Join(programs, "etcd"), "--data-dir", data, "--listen-client-urls", "http://"+etcd,
		"--advertise-client-urls", "http://"+etcd, "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error")

	runInstallPage(t, m) // installs the package, too
	if out := m.run("systemctl is-enabled licet; systemctl is-active licet; stat -c '%a %U %G' /etc/licet"); out !=
		"disabled\ninactive\n750 root licet\n" {
		t.Errorf("after the installation: %s", out)
	}
	m.run("test ! -e /etc/licet/master.keys")
	m.run("licet store master-key new | install -m 640 -g licet /dev/stdin /etc/licet/master.keys")
	m.run("printf 'LICET_ETCD_ENDPOINTS=%s\\nLICET_LISTEN=%s\\n' " + etcd + " " + service + " >>/etc/licet/licet.env")
	m.run("systemctl enable --now licet")
	await(t, "http://"+service+"/readyz", m)
	pid := strings.TrimSpace(m.run("systemctl show --property MainPID --value licet"))
	status := m.run("cat /proc/" + pid + "/status")
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000"} {
		if !strings.Contains(status, want+"\n") {
			t.Errorf("the service runs without %q:\n%s", want, status)
		}
	}
	if user := m.run("ps -o user= -p " + pid); strings.TrimSpace(user) != "licet" {
		t.Errorf("the service runs as %s", user)
	}
	m.run("dpkg -i /packages/*.deb") // an upgrade restarts the service
	if now := strings.TrimSpace(m.run("systemctl show --property MainPID --value licet")); now == pid || now == "0" {
		t.Errorf("after the upgrade the process is %s; it was %s", now, pid)
	}
	await(t, "http://"+service+"/readyz", m)
	m.run("dpkg --remove licet")
	if out := m.run("systemctl is-active licet; ls /etc/licet"); out != "inactive\nlicet.env\nmaster.keys\n" {
		t.Errorf("after the removal: %s", out)
	}
	m.run("dpkg --purge licet")
	if out := m.run("stat -c '%a %U %G %n' /etc/licet/* ; getent passwd licet"); out !=
		"600 root root /etc/licet/master.keys\n" {
		t.Errorf("after the purge: %s", out)
	}
}

// machine is a booted systemd.
type machine struct {
	t   *testing.T
	pid string
}

// boot boots systemd and waits until it takes commands.
func boot(t *testing.T, layer, packages string) *machine {
	t.Helper()
	unshare := start(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc",
		"sh", "testdata/boot.sh", layer, packages)
	m := &machine{t: t}
	for deadline := time.Now().Add(time.Minute); ; {
		children, _ := os.ReadFile("/proc/" + strconv.Itoa(unshare) + "/task/" + strconv.Itoa(unshare) + "/children")
		m.pid = strings.TrimSpace(string(children))
		if name, _ := os.ReadFile("/proc/" + m.pid + "/comm"); m.pid != "" && string(name) == "systemd\n" {
			if out, _ := m.command("systemctl is-system-running"); strings.Contains(out, "running") ||
				strings.Contains(out, "degraded") {
				return m
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("systemd does not come up")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run runs a command inside and returns its output. The command may only fail after it has printed something.
func (m *machine) run(line string) string {
	m.t.Helper()
	out, err := m.command(line)
	if err != nil && out == "" || strings.Contains(out, "rror") {
		journal, _ := m.command("journalctl --no-pager --output cat --unit licet")
		m.t.Fatalf("%s: %v\n%s\n%s", line, err, out, journal)
	}
	return out
}

func (m *machine) command(line string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "-t", m.pid, "-m", "-p", "-C", "-u", "-i", "-r", "-w", "sh", "-c", line)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.t.Logf("%s: %v %s", line, err, stderr.Bytes())
	}
	return string(out), err
}

// start starts a process that ends with the test, and returns its id.
func start(t *testing.T, name string, args ...string) int {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, log.Bytes())
		}
	})
	return cmd.Process.Pid
}

// free returns an address of this machine that no process listens on, with a port below those that the system chooses
// for outgoing connections: so no connection takes the port before the process listens.
func free(t *testing.T) string {
	t.Helper()
	for try := 1; ; try++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		if try == 1000 {
			t.Fatal(err)
		}
	}
}

// await waits until an address answers 200.
func await(t *testing.T, address string, m *machine) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(address); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			journal, _ := m.command("journalctl --no-pager --output cat --unit licet")
			t.Fatalf("%s does not answer 200\n%s", address, journal)
		}
	}
}
