package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MemoryOf is a line of /proc/<pid>/status in bytes: VmRSS is what a process
// holds in memory, VmHWM the most it has held.
func MemoryOf(pid int, line string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's memory: %w", err)
	}
	return parseStatus(string(text), line)
}

func parseStatus(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name+":")
		if !found {
			continue
		}
		number := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB"))
		kilobytes, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a process's %s: %w", name, err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("a process's status has no %s", name)
}

// ResidentMemory is what a process holds in memory, in bytes.
func ResidentMemory(pid int) (int64, error) { return MemoryOf(pid, "VmRSS") }
