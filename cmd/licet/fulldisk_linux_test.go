package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of this size in a user namespace, which needs no privileges, and returns a path into
// it.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	here := t.TempDir()
	holder := exec.Command("sh", "-c", `mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec cat`, "sh", size, here)
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = holder.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "mounted\n" {
		t.Fatalf("mount a small disk: %q, %v", line, err)
	}
	return filepath.Join("/proc", fmt.Sprint(holder.Process.Pid), "root", here)
}

// fill fills the disk of a directory, and returns a function that frees the space.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	file, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err := file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
}

// wantFullDisk checks the message of a process that ended because its disk is full: one plain line that names the
// directory and the space.
func wantFullDisk(t *testing.T, exit int, stderr, dir string) {
	t.Helper()
	line := stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:]
	if exit != exitFailed || !strings.HasPrefix(line, "licet: the disk of "+dir+" is full") ||
		!strings.Contains(line, "200 MiB") || strings.Contains(stderr, "goroutine ") {
		t.Errorf("exit code %d, stderr:\n%s", exit, stderr)
	}
}

// TestFullDiskAtStart: with too little space, the first start ends with one line, and succeeds once there is space.
func TestFullDiskAtStart(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "400m")
	dir := filepath.Join(disk, "data")
	free := fill(t, disk)
	cmd := licetCommand("dev", "--data-dir", dir, "--listen", "127.0.0.1:0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	_ = cmd.Run()
	wantFullDisk(t, cmd.ProcessState.ExitCode(), stderr.String(), dir)
	if n := strings.Count(stderr.String(), "\n"); n != 1 {
		t.Errorf("stderr has %d lines:\n%s", n, stderr.String())
	}
	free()
	startProcess(t, dir).want(t, 200, "GET", "/v1/orders", "")
}

// TestDiskFillsWhileRunning: licet dev ends with one line about the disk, and keeps what it acknowledged. On the full
// disk, licet store ends with the same line.
func TestDiskFillsWhileRunning(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "400m")
	dir := filepath.Join(disk, "data")
	p := startProcess(t, dir)
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`).Data
	acknowledged := []string{order.text("order_no")}
	free := fill(t, disk)
	body := `{"product_id":"editor","amount":5,"currency":"USD","metadata":{"x":"` + strings.Repeat("x", 15000) + `"}}`
	for ended := false; !ended; {
		select {
		case <-p.ended:
			ended = true
		default:
			r, err := p.send(t.Context(), "POST", "/v1/orders", body)
			if err == nil && r.status == 201 {
				acknowledged = append(acknowledged, r.Data.text("order_no"))
			}
		}
	}
	wantFullDisk(t, p.cmd.ProcessState.ExitCode(), p.log.String(), dir)
	p.log.forgive(`"level":"error"`) // requests that the disk failed
	create := licetCommand("store", "keys", "create", "--account", "acct_a", "--mode", "test", "--name", "a",
		"--scopes", "*", "--data-dir", dir)
	var stderr strings.Builder
	create.Stderr = &stderr
	_ = create.Run()
	wantFullDisk(t, create.ProcessState.ExitCode(), stderr.String(), dir)
	free()
	again := startProcess(t, dir)
	for _, order := range acknowledged {
		again.want(t, 200, "GET", "/v1/orders/"+order, "")
	}
}
