package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// workDir is where all files of a run are, but for logs. The place is fixed, so that a run
// can remove what an earlier run left that was killed.
const workDir = "/var/tmp/licet-k8s-e2e"

// cgroups is the prefix of the names of the nodes' cgroups.
const cgroups = "licet-k8s-e2e-"

// onlyOne locks the machine against another run.
func onlyOne() (unlock func(), err error) {
	file, err := os.OpenFile(workDir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another k8s-e2e runs on this machine: %w", err), file.Close())
	}
	return func() {
		_ = os.Remove(file.Name())
		_ = file.Close()
	}, nil
}

// refuse returns an error if this machine has a Kubernetes or containers of its own, whose
// cgroups and settings must not change, or lacks a tool.
func refuse() error {
	theirs := []string{"kubelet", "containerd", "dockerd", "crio", "k3s", "kube-proxy"}
	processes, err := processNames()
	if err != nil {
		return err
	}
	for _, name := range theirs {
		if processes[name] > 0 {
			return fmt.Errorf("%s runs on this machine: it is left alone. Run this where there is no Kubernetes and "+
				"no container engine", name)
		}
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
			return errors.New("there are no cgroups in /sys/fs/cgroup: kubelets need them")
		}
	}
	for _, tool := range []string{"ip", "nsenter", "bash", "curl", "jq", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is needed: %w", tool, err)
		}
	}
	return nil
}

// processNames returns how many processes of each name there are.
func processNames() (map[string]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, entry := range entries {
		name, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		if err == nil {
			count[strings.TrimSpace(string(name))]++
		}
	}
	return count, nil
}

// state is what a run could change of a machine, by name.
type state map[string]string

// look reads the state of the machine.
func look(ctx context.Context, tools *programs) (state, error) {
	s := state{}
	settings := append(slices.Collect(maps.Keys(shown())), "net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables",
		"kernel/hostname", "fs/inotify/max_user_instances")
	for _, setting := range settings {
		value, err := os.ReadFile(filepath.Join("/proc/sys", setting))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		s["setting "+setting] = strings.TrimSpace(string(value))
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 {
			s["mount "+fields[1]] = fields[2]
		}
	}
	if err := s.lookAtCgroups(); err != nil {
		return nil, err
	}
	for _, path := range []string{
		"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers",
		"/run/containerd", "/run/flannel", "/run/netns", "/etc/cni", "/opt/cni", "/opt/containerd", "/etc/kubernetes",
		"/usr/libexec/kubernetes", "/run/xtables.lock", workDir,
	} {
		_, err := os.Lstat(path)
		s["file "+path] = map[bool]string{true: "there", false: "not there"}[err == nil]
	}
	for what, args := range map[string][]string{
		"link": {"ip", "-brief", "link"}, "route": {"ip", "route"}, "rule": {"iptables-save"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		if what == "rule" {
			cmd = exec.CommandContext(ctx, filepath.Join(tools.debian, "usr/sbin", args[0]))
			cmd.Env = packageEnviron(tools.debian)
		}
		out, err := output(cmd)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				s[what+" "+line] = "there"
			}
		}
	}
	return s, s.lookAtProcesses()
}

// lookAtProcesses adds the processes of a run: they are in its cgroups, or name its files.
func (s state) lookAtProcesses() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		group, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if strings.Contains(string(group), cgroups) || strings.Contains(string(line), workDir) {
			s["process "+entry.Name()] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return nil
}

// lookAtCgroups adds the cgroups at the top of each hierarchy, where kubelets make theirs,
// and all cgroups with the name of a run or of a kubelet. Others come and go at any time.
func (s state) lookAtCgroups() error {
	tops := hierarchies()
	return filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // a cgroup that is removed meanwhile belongs to another program
		}
		if slices.Contains(tops, filepath.Dir(path)) || strings.Contains(path, cgroups) ||
			strings.Contains(path, "kubepods") {
			s["cgroup "+path] = "there"
		}
		return nil
	})
}

// compare returns an error that names everything that is not as it was.
func (s state) compare(ctx context.Context, tools *programs) error {
	after, err := look(ctx, tools)
	if err != nil {
		return err
	}
	var differ []string
	for name, was := range s {
		if is, ok := after[name]; is != was {
			differ = append(differ,
				fmt.Sprintf("%s: was %s, is %s", name, was, map[bool]string{true: is, false: "gone"}[ok]))
		}
	}
	for name, is := range after {
		if _, ok := s[name]; !ok {
			differ = append(differ, fmt.Sprintf("%s: was not there, is %s", name, is))
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return fmt.Errorf("the machine is not as it was:\n%s", strings.Join(differ, "\n"))
	}
	return nil
}

// sweep removes the files and cgroups of a run, once its processes are gone.
func sweep() error {
	roots, err := filepath.Glob("/sys/fs/cgroup/*/" + cgroups + "*")
	if err != nil {
		return err
	}
	one, err := filepath.Glob("/sys/fs/cgroup/" + cgroups + "*")
	if err != nil {
		return err
	}
	var problems []error
	for _, root := range append(roots, one...) {
		problems = append(problems, removeCgroup(root))
	}
	return errors.Join(append(problems, os.RemoveAll(workDir))...)
}

// removeCgroup removes one with all below it, the lowest first.
func removeCgroup(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		if err := syscall.Rmdir(dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	return nil
}
