package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSlowStart holds the process for longer than slowStart, as a slow disk would: licet dev says what it waits for, and
// starts.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	cmd := licetCommand("dev", "--data-dir", dir, "--listen", "127.0.0.1:0")
	var log logBuffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	waitFor(t, func() bool { // the start has begun, before etcd
		_, err := os.Stat(dir)
		return !errors.Is(err, fs.ErrNotExist)
	})
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGSTOP {
			time.Sleep(slowStart) // the time itself is what the process must notice
		}
	}
	waitFor(t, func() bool { return strings.Contains(log.String(), " ready ") })
	said, _, _ := strings.Cut(log.String(), " ready ")
	if !strings.Contains(said, "waiting for etcd") || !strings.Contains(said, "data_dir="+dir) {
		t.Errorf("the log of a slow start is\n%s", log.String())
	}
}
