package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// child is a process that this one has started.
type child struct {
	cmd   *exec.Cmd
	log   *os.File
	stdin io.Closer // nil where the process has none
	ended chan struct{}
}

func newChild(cmd *exec.Cmd, log *os.File, stdin io.Closer) *child {
	c := &child{cmd: cmd, log: log, stdin: stdin, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c
}

// end asks the process to end, waits for that, and kills it where it takes too
// long.
func (c *child) end(limit time.Duration) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end a process: %w", err)
	}
	late := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	<-c.ended
	if !late.Stop() {
		return fmt.Errorf("a process did not end within %v of being asked to", limit)
	}
	c.kill() // for its files
	return nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// kill is kill -9: nothing that is stored here is wanted again.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	if c.stdin != nil {
		_ = c.stdin.Close()
	}
	_ = c.log.Close()
}

// logTail is the end of what the process wrote.
func (c *child) logTail() string {
	text, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
