package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of times in /proc. Linux tells programs 100 a second
// whatever its own clock does.
const clockTick = time.Second / 100

// cpuTime is how long a process has kept processors busy so far.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's CPU time: %w", err)
	}
	return parseStat(text)
}

// parseStat reads utime and stime, fields 14 and 15. The name before them is in
// parentheses and may hold anything.
func parseStat(text []byte) (time.Duration, error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("a process's stat has only %d fields", len(fields))
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a process's CPU time: %w", err)
		}
		sum += time.Duration(ticks) * clockTick
	}
	return sum, nil
}

func cpuTimes(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		one, err := cpuTime(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// contextSwitches is how often the machine's processors have gone from one thread
// to another so far, whichever processes these were of.
func contextSwitches() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the machine's context switches: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if count, found := strings.CutPrefix(line, "ctxt "); found {
			return strconv.ParseFloat(strings.TrimSpace(count), 64)
		}
	}
	return 0, errors.New("/proc/stat does not tell of context switches")
}

// ownCPUTime is that of this process.
func ownCPUTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read this process's CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// checkFiles tells whether a process may have as many connections open. The
// runtime has raised its own limit to the highest that it may, and a node's
// does the same.
func checkFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if need := uint64(connections) + 1000; limit.Cur < need {
		return fmt.Errorf("only %d files may be open at once, and %d are needed: raise the limit with ulimit -Hn", limit.Cur, need)
	}
	return nil
}
