package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"licet/cmd/licet/internal/terminal"
	"licet/kv/embedded"
)

const (
	// childVariable marks the child process of a command that runs etcd. Its value says where the standard error of the
	// parent goes.
	childVariable = "LICET_DEV_CHILD"
	toTerminal    = "terminal"
	toFile        = "file"

	// crashFile is the file of a data directory with the trace of the last crash.
	crashFile = "crash.txt"
)

// exitCode is the exit code of a child process that has printed its own message.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// The nouns for a child process in messages: licet dev runs the whole service in a child, other commands only its etcd.
const (
	childService = "service"
	childEtcd    = "etcd"
)

// supervise runs licet with args once more, as a child process, and returns when the child has ended. A panic in a
// goroutine of etcd and a memory fault of its database end a Go process with a trace: supervise returns an error of one
// line instead, and the trace stays in the data directory. The log of the child goes to stderr, and the other lines of
// its standard error, such as its last message, to text. Messages call the child by the noun.
//
// The standard input of the child is a pipe. A byte asks the child to stop. The end of the pipe, which is also the end
// of a killed parent, ends the child at once. See obey.
func supervise(
	ctx context.Context, noun, dir string, args []string, stdout, stderr, text io.Writer,
) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	log := &relay{logTo: stderr, textTo: text}
	child := exec.CommandContext(ctx, program, args...)
	child.Stdout, child.Stderr = stdout, log
	if terminal.Is(stdout) && terminal.Is(stderr) {
		child.Stdout = log // one pipe keeps the order of log and output on the screen
	}
	child.Env = append(os.Environ(), childVariable+"="+toFile)
	if isTerminal(stderr) {
		child.Env = append(child.Env, childVariable+"="+toTerminal)
	}
	orders, err := child.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the %s: %w", noun, err)
	}
	child.Cancel = func() error {
		_, err := orders.Write([]byte{'\n'})
		return err
	}
	err = child.Run()
	end := child.ProcessState
	switch {
	case end == nil && ctx.Err() != nil: // a stop before the start
		return nil
	case end == nil:
		return fmt.Errorf("start the %s: %w", noun, err)
	case log.crashed:
		return crash(noun, dir, log.text)
	}
	log.flush()
	switch code := end.ExitCode(); code {
	case exitOK:
		return nil
	case -1:
		return fmt.Errorf("another process has killed the %s in %s: start licet again; the stored data is intact (%v)",
			noun, dir, end)
	default:
		return exitCode(code)
	}
}

// crash writes the trace of a crash into the data directory and returns the error that names the cause and the file.
func crash(noun, dir string, trace []byte) error {
	path := filepath.Join(dir, crashFile)
	kept := "the trace is in " + path
	if err := os.WriteFile(path, trace, privateFile); err != nil {
		kept = "the trace is lost: " + err.Error()
	}
	// Blank lines follow the cause, and the stack of the goroutine that crashed.
	cause, stacks, _ := strings.Cut(string(trace), "\n\n")
	stack, _, _ := strings.Cut(stacks, "\n\n")
	err := fmt.Errorf("%s; %s", strings.ReplaceAll(strings.TrimSpace(cause), "\n", "; "), kept)
	if ofEtcd(stack) {
		return embedded.WithAdvice(embedded.NewFailure(err), dir)
	}
	return fmt.Errorf("the %s in %s has crashed: start licet again, and report the crash; the stored data is intact "+
		"(%w)", noun, dir, err)
}

// ofEtcd reports whether the stack of a crash is of etcd's server. The topmost frame of the server or of our code
// decides: above this frame are frames of the runtime and of libraries, and our code has frames of etcd's client below.
func ofEtcd(stack string) bool {
	begins := func(frame string, prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(frame, prefix) })
	}
	ours := strings.TrimSuffix(reflect.TypeFor[embedded.Failure]().PkgPath(), "kv/embedded")
	for frame := range strings.Lines(stack) {
		switch {
		case begins(frame, "go.etcd.io/etcd/server/", "go.etcd.io/raft/", "go.etcd.io/bbolt"):
			return true
		case begins(frame, ours, "main."):
			return false
		}
	}
	return false
}

// logMark precedes each line of the log of a child process: lines of the log get into the trace of a crash.
const logMark = '\x1e'

// markedLog marks the lines of a log. Each Write is a line.
type markedLog struct{ to io.Writer }

func (m markedLog) Write(line []byte) (int, error) {
	n, err := m.to.Write(append([]byte{logMark}, line...))
	return max(0, n-1), err
}

// relay copies the standard error of a child process line by line. Once a crash begins, relay holds everything back but
// the log. It ignores errors of its destination, such as a full disk: the service must not end with its log.
type relay struct {
	logTo, textTo io.Writer
	log           []byte // a part of a line of the log
	text          []byte // a part of another line; after a crash began, the trace
	logging       bool
	crashed       bool
}

func (r *relay) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case r.logging:
			r.log = append(r.log, b)
			if b == '\n' {
				_, _ = r.logTo.Write(r.log)
				r.log, r.logging = r.log[:0], false
			}
		case b == logMark:
			r.logging = true
		default:
			r.text = append(r.text, b)
			if b == '\n' && !r.crashed {
				r.endText()
			}
		}
	}
	return len(p), nil
}

// endText passes on the text, unless the text begins a crash.
func (r *relay) endText() {
	for _, begin := range []string{"panic: ", "fatal error: ", "unexpected fault address "} {
		r.crashed = r.crashed || bytes.HasPrefix(r.text, []byte(begin))
	}
	if !r.crashed {
		_, _ = r.textTo.Write(r.text)
		r.text = r.text[:0]
	}
}

// flush passes on the last lines, which have no end.
func (r *relay) flush() {
	_, _ = r.logTo.Write(r.log)
	_, _ = r.textTo.Write(r.text)
}

// supervised reports whether this process is such a child.
func supervised() bool { return os.Getenv(childVariable) != "" }

// obey passes the requests of the parent to stop on as signals, and ends this process as soon as its parent has ended.
func obey(parent io.Reader, signals chan<- os.Signal) {
	var order [1]byte
	for {
		if _, err := parent.Read(order[:]); err != nil {
			os.Exit(exitFailed)
		}
		signals <- os.Interrupt
	}
}
