package rig

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Child is a process that this one has started.
type Child struct {
	cmd   *exec.Cmd
	log   *os.File
	stdin io.Closer     // nil where the process has none
	Ended chan struct{} // closed once it has ended
}

func newChild(cmd *exec.Cmd, log *os.File, stdin io.Closer) *Child {
	c := &Child{cmd: cmd, log: log, stdin: stdin, Ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.Ended)
	}()
	return c
}

// End asks the process to end, waits for that, and kills it where it takes too
// long.
func (c *Child) End(limit time.Duration) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end a process: %w", err)
	}
	late := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	<-c.Ended
	if !late.Stop() {
		return fmt.Errorf("a process did not end within %v of being asked to", limit)
	}
	c.Kill() // for its files
	return nil
}

// ExitCode is that of a process that has ended; -1 where it was killed.
func (c *Child) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// PID is the id of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Kill is kill -9: nothing that is stored here is wanted again.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.Ended
	if c.stdin != nil {
		_ = c.stdin.Close()
	}
	_ = c.log.Close()
}

// Log is what the process wrote.
func (c *Child) Log() (string, error) {
	text, err := os.ReadFile(c.log.Name())
	return string(text), err
}

// LogTail is the end of what the process wrote.
func (c *Child) LogTail() string {
	text, err := c.Log()
	if err != nil {
		return err.Error()
	}
	return text[max(0, len(text)-2000):]
}
