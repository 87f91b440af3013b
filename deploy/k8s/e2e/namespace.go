package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// firstProcess is the argument that makes this program the first process of a machine.
const firstProcess = "first-process-of"

// machine stands for a machine: a first process in namespaces of its own, with its own
// network, processes, mounts and name. When the first process ends, Linux ends all others,
// and removes mounts and network.
type machine struct {
	name string
	dir  string
	cmd  *exec.Cmd
}

// newMachine starts a machine. Its files are in dir.
func newMachine(name, dir string) (*machine, error) {
	for _, sub := range []string{"lib", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	ready, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	// The name of the program in /proc would be another one's there.
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &machine{name: name, dir: dir, cmd: exec.Command(self, firstProcess, name, dir)}
	m.cmd.Stderr = os.Stderr
	m.cmd.ExtraFiles = []*os.File{tell}
	m.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
		Setsid:    true, // Ctrl-C is for this process alone
		Pdeathsig: syscall.SIGKILL,
	}
	err = m.cmd.Start()
	tell.Close()
	if err != nil {
		return nil, fmt.Errorf("make namespaces for %s: %w", name, err)
	}
	if n, _ := ready.Read(make([]byte, 1)); n == 0 {
		m.end()
		return nil, fmt.Errorf("the first process of %s has ended at once", name)
	}
	return m, nil
}

func (m *machine) pid() string { return strconv.Itoa(m.cmd.Process.Pid) }

// end ends everything on the machine, and waits until it is gone.
func (m *machine) end() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// inside returns a command that runs on the machine.
func (m *machine) inside(ctx context.Context, program string, args ...string) *exec.Cmd {
	all := append([]string{"--target", m.pid(), "--net", "--mount", "--pid", "--uts", "--ipc", "--", program}, args...)
	return exec.CommandContext(ctx, "nsenter", all...)
}

// onNetwork returns a command that has the machine's network, and nothing else of it.
func (m *machine) onNetwork(ctx context.Context, program string, args ...string) *exec.Cmd {
	all := append([]string{"--target", m.pid(), "--net", "--", program}, args...)
	return exec.CommandContext(ctx, "nsenter", all...)
}

// shown returns settings of the kernel that a kubelet demands. They apply to the whole
// machine, not for namespaces, so the kubelet sees files with the demanded values, and may
// write them.
func shown() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// beFirst is the first process: it sets up the machine, and then reaps processes, as a
// first process must. It returns only with an error.
func beFirst(name, dir string) error {
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return err
	}
	// Private first, so that no mount reaches the host; then shared, so that containers see mounts.
	for _, flag := range []uintptr{syscall.MS_PRIVATE, syscall.MS_SHARED} {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|flag, ""); err != nil {
			return fmt.Errorf("mounts: %w", err)
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := syscall.Mount("run", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for from, to := range map[string]string{"lib": "/var/lib", "log": "/var/log"} {
		if err := syscall.Mount(filepath.Join(dir, from), to, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", to, err)
		}
	}
	for setting, value := range shown() {
		if _, err := os.Stat(filepath.Join("/proc/sys", setting)); err != nil {
			continue // a kernel without it
		}
		file := filepath.Join("/run/shown", setting)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, filepath.Join("/proc/sys", setting), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount over %s: %w", setting, err)
		}
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("loopback: %w: %s", err, out)
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	tell := os.NewFile(3, "ready")
	if _, err := tell.WriteString("r"); err != nil {
		return err
	}
	if err := tell.Close(); err != nil {
		return err
	}
	for range died {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if pid <= 0 {
				break
			}
		}
	}
	return errors.New("it can't end")
}
