package main

import (
	"bufio"
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTrial is the first trial of a new user: three commands lead from the binary alone to an activated device. The
// machine has no other program, no settings and an empty working directory.
func TestTrial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command := func(line string, env ...string) *exec.Cmd {
		cmd := licetCommand(strings.Fields(line)[1:]...)
		cmd.Dir = dir
		cmd.Env = append([]string{runAsLicet + "=1", "GORACE=atexit_sleep_ms=0", "HOME=" + dir, "PATH="}, env...)
		return cmd
	}
	began := time.Now()
	dev := command("licet dev", "LICET_LISTEN=127.0.0.1:0") // other tests may use the usual port
	var log logBuffer
	dev.Stderr = &log
	stdout, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(time.Minute, func() { _ = dev.Process.Kill() })
	defer giveUp.Stop()
	lines := bufio.NewScanner(stdout)
	var printed string
	for lines.Scan() && lines.Text() != lastLineOfStart {
		printed += lines.Text() + "\n"
	}
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		if err := dev.Wait(); err != nil {
			t.Errorf("licet dev: %v\n%s", err, log.String())
		}
	})
	user := func(line string) string {
		var out, problem bytes.Buffer
		cmd := command(line)
		cmd.Stdout, cmd.Stderr = &out, &problem
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s\nthe log of licet dev:\n%s", line, err, problem.String(), log.String())
		}
		return out.String()
	}
	commands := printedCommands(t, printed)
	if commands[0] != "licet sandbox buy editor" || commands[1] != "licet licenses activate KEY laptop-1" {
		t.Fatalf("licet dev prints the commands %q", commands)
	}
	key := strings.TrimSpace(user(commands[0]))
	activated := user(strings.Replace(commands[1], "KEY", key, 1))
	if !strings.Contains(activated, "laptop-1") || !strings.Contains(activated, "activated") {
		t.Errorf("the activation printed\n%s", activated)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("the trial took %v", took)
	}
}
