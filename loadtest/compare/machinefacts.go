package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"go.etcd.io/etcd/api/v3/version"
)

// thisMachine says what the numbers were measured on. What can't be found out
// stays empty.
func thisMachine(ctx context.Context) machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Etcd: version.Version}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(text), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		m.CPU = strings.Trim(line, "\t: ")
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output(); err == nil {
		m.Commit = strings.TrimSpace(string(out))
	}
	return m
}
