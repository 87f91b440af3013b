package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/internal/etcdtest"
)

// runAsLicet tells this test binary to be licet. The processes that the tests
// start are so built with the tests' own flags, -race among them.
const runAsLicet = "RUN_TEST_BINARY_AS_LICET"

func TestMain(m *testing.M) {
	if bank := os.Getenv(runWithBank); bank != "" {
		os.Exit(serveWithBank(bank, os.Args[1:]))
	}
	if offset := os.Getenv(runWithClock); offset != "" {
		os.Exit(serveWithClock(offset, os.Args[1:]))
	}
	if os.Getenv(runAsLicet) != "" || supervised() {
		main() // it exits
	}
	etcdtest.Main()
	depth.Parallel(depth.Of(6, 4)) // at the usual depth, most tests wait
	// The tests must not read the developer's profiles.
	if err := os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "licet-test-none")); err != nil {
		panic(err)
	}
	code := m.Run()
	if sharedProcess != nil {
		sharedProcess.kill()
		_ = os.RemoveAll(sharedProcess.dir)
	}
	os.Exit(code)
}

// licetCommand is licet with these arguments and none of the environment's
// settings.
func licetCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// Without it the race detector makes each process wait a second at its end.
	cmd.Env = append(plainEnvironment(), runAsLicet+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func plainEnvironment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LICET_") && !strings.HasPrefix(pair, "OTEL_") &&
			!strings.Contains(strings.ToLower(pair), "_proxy=") {
			env = append(env, pair)
		}
	}
	return env
}

// process is a licet dev or a licet serve that runs in a process of its own.
type process struct {
	api
	dir    string
	keyID  string
	secret string
	stdout string
	log    *logBuffer
	cmd    *exec.Cmd
	ended  chan struct{} // closed once cmd.Wait has returned
}

// logBuffer takes what a process writes while tests read it.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// forgive drops the lines that contain a text, which a test has brought about.
func (b *logBuffer) forgive(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest bytes.Buffer
	for line := range bytes.Lines(b.text.Bytes()) {
		if !bytes.Contains(line, []byte(text)) {
			rest.Write(line)
		}
	}
	b.text = rest
}

const lastLineOfStart = "Ctrl-C stops the service."

// launch starts licet dev on a free port and waits until it says it is ready. Its
// API key is not limited: the tests do all with one, as fast as they can.
func launch(dir string, args ...string) (*process, error) {
	args = append([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--log-format", "json",
		"--rate-limit-account", "0", "--rate-limit-new-devices", "0"}, args...)
	p := &process{dir: dir, log: new(logBuffer), cmd: licetCommand(args...), ended: make(chan struct{})}
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	giveUp := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer giveUp.Stop()
	ready := false
	lines := bufio.NewScanner(stdout)
	for !ready && lines.Scan() {
		p.stdout += lines.Text() + "\n"
		ready = lines.Text() == lastLineOfStart
	}
	go func() {
		rest, _ := io.ReadAll(stdout)
		_ = p.cmd.Wait()
		p.log.Write(rest)
		close(p.ended)
	}()
	if !ready {
		p.kill()
		return nil, fmt.Errorf("licet dev did not start; its log:\n%s", p.log)
	}
	return p, p.readEnv()
}

func (p *process) readEnv() error {
	text, err := os.ReadFile(filepath.Join(p.dir, envFile))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch name {
		case exportLine:
		case "LICET_URL":
			p.url = value
		case "LICET_API_KEY":
			p.key = value
		case "LICET_API_KEY_ID":
			p.keyID = value
		case "LICET_API_SECRET":
			p.secret = value
		default:
			return fmt.Errorf("%s has the line %q", envFile, line)
		}
	}
	p.client = newClient()
	return nil
}

// startProcess starts licet dev and sees to its end.
func startProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, err := launch(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		p.wantNoRace(t)
		if t.Failed() {
			t.Logf("the log of licet:\n%s", tail(p.log.String()))
		}
	})
	return p
}

func tail(text string) string { return text[max(0, len(text)-8000):] }

func (p *process) wantNoRace(t *testing.T) {
	t.Helper()
	for _, bad := range []string{"DATA RACE", `"level":"error"`, "panic"} {
		if strings.Contains(p.log.String(), bad) {
			t.Errorf("the log of licet has %s in it:\n%s", bad, tail(p.log.String()))
		}
	}
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// servicePID returns the id of the process that runs the service: of a licet dev, its child.
func (p *process) servicePID(t *testing.T) int {
	t.Helper()
	pid := p.cmd.Process.Pid
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(threads) == 0 {
		t.Skip("this is no Linux: ", err)
	}
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // a thread may have ended
		for _, field := range strings.Fields(string(children)) {
			if pid, err = strconv.Atoi(field); err != nil {
				t.Fatal(err)
			}
		}
	}
	return pid
}

// terminate sends SIGTERM, waits for the end and returns the exit code.
func (p *process) terminate(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("SIGTERM did not end it")
	}
	return p.cmd.ProcessState.ExitCode()
}

// sharedProcess serves all tests that need nothing but a service.
var (
	sharedProcess *process
	startShared   = sync.OnceValue(func() error {
		dir, err := os.MkdirTemp("", "licet-test-")
		if err != nil {
			return err
		}
		sharedProcess, err = launch(dir)
		return err
	})
)

func shared(t *testing.T) *process {
	t.Helper()
	if err := startShared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sharedProcess.wantNoRace(t) })
	return sharedProcess
}

// atOnce runs f n times in parallel and waits for all of them.
func atOnce(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}

// waitFor waits until done says so.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	pause := time.Millisecond // it grows: many conditions are pages of metrics, which take the nodes' time
	for deadline := time.Now().Add(time.Minute); !done(); pause = min(2*pause, 25*time.Millisecond) {
		time.Sleep(pause)
		if time.Now().After(deadline) {
			t.Fatal("what was waited for did not come within a minute")
		}
	}
}
