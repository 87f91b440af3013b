package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"go.etcd.io/etcd/api/v3/version"
)

// machine is what the measurements depend on.
type machine struct {
	Cores  int    `json:"cores"`
	CPU    string `json:"cpu"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Etcd   string `json:"etcd"`
	Commit string `json:"commit"`
}

// thisMachine describes this machine. What can't be found out stays empty.
func thisMachine(ctx context.Context) machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Etcd: version.Version}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cores, err := fs.CPUInfo(); err == nil && len(cores) > 0 {
			m.CPU = cores[0].ModelName
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty",
		"--abbrev=12").Output(); err == nil {
		m.Commit = strings.TrimSpace(string(out))
	}
	return m
}

// contextSwitches returns how often the machine's processors have gone from one thread
// to another so far.
func contextSwitches() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := fs.Stat()
	return float64(stat.ContextSwitches), err
}

// ownCPUTime returns the processor time of this process, exact to a microsecond.
func ownCPUTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read this process's CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// checkFiles reports whether a process may have so many connections open. Go's runtime
// has raised the limit as far as it may, in this process and in the nodes.
func checkFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if need := uint64(connections) + 1000; limit.Cur < need {
		return fmt.Errorf("only %d files may be open at once, and %d are needed: raise the limit with ulimit -Hn",
			limit.Cur, need)
	}
	return nil
}
