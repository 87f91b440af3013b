package rig

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Memory is the memory of a process, in bytes.
type Memory struct {
	Resident  int64 // now
	Peak      int64 // the most since the start
	Anonymous int64 // resident, but for mapped files
}

// MemoryOf reads the memory of a process.
func MemoryOf(pid int) (m Memory, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return m, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return m, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return Memory{int64(status.VmRSS), int64(status.VmHWM), int64(status.RssAnon)}, nil
}

// CPUTime returns the processor time that processes have used so far.
func CPUTime(pids ...int) (sum time.Duration, err error) {
	for _, pid := range pids {
		process, err := procfs.NewProc(pid)
		if err != nil {
			return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
		}
		stat, err := process.Stat()
		if err != nil {
			return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
		}
		sum += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	return sum, nil
}
