package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Child is a process that this process has started.
type Child struct {
	cmd   *exec.Cmd
	log   *os.File
	stdin io.Closer     // nil if the process has none
	Ended chan struct{} // closed once the process has ended
}

// Start starts a process whose standard error goes to a file. The child closes the file.
func Start(cmd *exec.Cmd, log *os.File) (*Child, error) {
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c := &Child{cmd: cmd, log: log, Ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.Ended)
	}()
	return c, nil
}

// End sends SIGTERM and waits until the process has ended. A process that takes longer
// than the limit is killed, which is an error.
func (c *Child) End(limit time.Duration) error {
	if err := c.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end a process: %w", err)
	}
	late := time.AfterFunc(limit, func() { _ = c.cmd.Process.Kill() })
	<-c.Ended
	if !late.Stop() {
		return fmt.Errorf("a process did not end within %v of SIGTERM", limit)
	}
	c.Kill() // closes its files
	return nil
}

// Kill sends SIGKILL, waits until the process has ended, and closes its files.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.Ended
	if c.stdin != nil {
		_ = c.stdin.Close()
	}
	_ = c.log.Close()
}

// Signal sends a signal to the process.
func (c *Child) Signal(signal os.Signal) error { return c.cmd.Process.Signal(signal) }

// Running reports whether the process has not ended yet.
func (c *Child) Running() bool {
	select {
	case <-c.Ended:
		return false
	default:
		return true
	}
}

// ExitCode returns the exit code of a process that has ended, -1 if a signal ended it.
func (c *Child) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// PID returns the id of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Log returns what the process has written to standard error.
func (c *Child) Log() (string, error) {
	text, err := os.ReadFile(c.log.Name())
	return string(text), err
}

// LogTail returns the last 2,000 bytes of the log, for an error.
func (c *Child) LogTail() string {
	text, err := c.Log()
	if err != nil {
		return err.Error()
	}
	return text[max(0, len(text)-2000):]
}
