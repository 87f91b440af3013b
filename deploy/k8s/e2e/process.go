package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// daemon is a process that runs until the end.
type daemon struct {
	name string
	log  string
	cmd  *exec.Cmd
	over chan struct{}
	err  error // once over is closed
}

// start starts a daemon, with a log of its own.
func (c *cluster) start(on *machine, name, program string, args ...string) {
	d := &daemon{name: on.name + "/" + name, log: filepath.Join(c.logs, on.name+"-"+name+".log"),
		over: make(chan struct{})}
	log := must(os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644))
	defer log.Close()
	// It outlives the step that starts it, and ends with its machine.
	d.cmd = on.inside(context.Background(), program, args...)
	d.cmd.Env = c.environ()
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		stop("%s: %w", d.name, err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.over)
	}()
	c.daemons = append(c.daemons, d)
}

// ended returns an error if a daemon has ended: none may.
func (c *cluster) ended() error {
	for _, d := range c.daemons {
		select {
		case <-d.over:
			return fmt.Errorf("%s has ended: %w; the end of %s:\n%s", d.name, d.err, d.log, tail(d.log, 15))
		default:
		}
	}
	return nil
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// ownSession makes a command the leader of a session. The end of its context ends the whole
// session: the programs that nsenter and shells have started too.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
}

// output runs a command and returns its output. An error contains all output.
func output(cmd *exec.Cmd) (string, error) {
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	ownSession(cmd)
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(problems.String() + "\n" + out.String())
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return out.String(), nil
}

// until repeats a check until nothing ends the check, for at most longest. The error contains the last failure.
func (c *cluster) until(all context.Context, longest time.Duration, what string, is func(context.Context)) {
	ctx, cancel := context.WithTimeout(all, longest)
	defer cancel()
	var last error
	for {
		err := attempt(func() { is(ctx) })
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		stopIf(c.ended())
		select {
		case <-ctx.Done():
			if all.Err() != nil {
				stop("%s: %w", what, context.Cause(all))
			}
			stop("%s: not within %v: %w", what, longest, errors.Join(last, context.Cause(ctx)))
		case <-time.After(300 * time.Millisecond):
		}
	}
}
