package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/kv/embedded"
)

// TestSlowStart keeps etcd from its database by a lock, as a slow disk would: licet dev says what it waits for, and
// starts once the lock is gone. At full depth, that takes longer than the start after etcd may take: etcd reads a large
// store for that long.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	snap := filepath.Join(dir, embedded.StoreDir, "member", "snap")
	if err := os.MkdirAll(snap, 0o700); err != nil {
		t.Fatal(err)
	}
	database, err := os.OpenFile(filepath.Join(snap, "db"), os.O_CREATE|os.O_RDWR, 0o600) // etcd fills an empty file
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if err := syscall.Flock(int(database.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
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
	waitFor(t, func() bool { return strings.Contains(log.String(), "waiting for etcd") })
	if said := log.String(); !strings.Contains(said, "data_dir="+dir) || strings.Contains(said, " ready ") {
		t.Errorf("the log of a slow start is\n%s", said)
	}
	if depth.Full() {
		time.Sleep(startTimeout + time.Second)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(log.String(), " ready ") })
}
