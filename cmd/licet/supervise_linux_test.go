package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/kv/embedded"
)

// TestCrashWhileRunning damages the database below a running etcd: the panic or the memory fault of etcd's goroutine
// ends licet dev with one line that names the data directory, and with exit code 1. Nothing acknowledged is lost.
func TestCrashWhileRunning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, database string)
		cause  string
	}{
		{"the database is cut", func(t *testing.T, database string) {
			if err := os.Truncate(database, 8<<10); err != nil {
				t.Fatal(err)
			}
		}, "unexpected fault address 0x"},
		{"pages of the database are garbled", func(t *testing.T, database string) {
			content, err := os.ReadFile(database)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(database, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteAt(garble(content, 8<<10, len(content))[8<<10:], 8<<10); err != nil {
				t.Fatal(err)
			}
		}, "panic: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			p, err := launch(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.kill)
			order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`).Data
			database := filepath.Join(dir, embedded.StoreDir, "member", "snap", "db")
			c.damage(t, database)
			acknowledged := []string{order.text("order_no")}
			for ended := false; !ended; {
				select {
				case <-p.ended:
					ended = true
				default:
					r, err := p.send(t.Context(), "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`)
					if err == nil && r.status == 201 {
						acknowledged = append(acknowledged, r.Data.text("order_no"))
					}
				}
			}
			said := p.log.String()
			line := said[strings.LastIndex(strings.TrimSuffix(said, "\n"), "\n")+1:]
			trace := filepath.Join(dir, crashFile)
			if exit := p.cmd.ProcessState.ExitCode(); exit != exitFailed ||
				!strings.HasPrefix(line, "licet: the etcd in "+dir+" has failed: start licet again") ||
				strings.Contains(said, "goroutine ") {
				t.Errorf("exit code %d, stderr:\n%s", exit, said)
			}
			// The first goroutine that meets a garbled page is sometimes one whose panics etcd itself logs.
			if reported := strings.Contains(line, "(execute job failed)"); !reported || c.cause != "panic: " {
				text, err := os.ReadFile(trace)
				if err != nil || !bytes.HasPrefix(text, []byte(c.cause)) ||
					!bytes.Contains(text, []byte("\ngoroutine ")) ||
					!strings.Contains(line, "("+c.cause) || !strings.Contains(line, trace) {
					t.Errorf("stderr:\n%s\n%s: %v\n%s", said, trace, err, text)
				}
			}
			// The damage is the test's. Without the database, etcd reads its log.
			if err := os.Remove(database); err != nil {
				t.Fatal(err)
			}
			again := startProcess(t, dir)
			for _, order := range acknowledged {
				again.want(t, 200, "GET", "/v1/orders/"+order, "")
			}
		})
	}
}

// TestKilledParent kills the parent of a licet dev, and then the child of another: the other process ends at once, and
// the next licet dev takes the data directory and the port over.
func TestKilledParent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, dir)
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`).Data
	address := strings.TrimPrefix(p.url, "http://")
	for range 3 {
		service := p.servicePID(t)
		if service == p.cmd.Process.Pid {
			t.Fatal("licet dev has no child")
		}
		p.kill()
		waitFor(t, func() bool { return errors.Is(syscall.Kill(service, 0), syscall.ESRCH) })
		p = startProcess(t, dir, "--listen", address)
		p.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "")
	}
	if err := syscall.Kill(p.servicePID(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if exit, said := p.cmd.ProcessState.ExitCode(), p.log.String(); exit != exitFailed || !strings.HasSuffix(said,
		"licet: another process has killed the service in "+dir+": start licet again; the stored data is intact "+
			"(signal: killed)\n") {
		t.Errorf("exit code %d, stderr:\n%s", exit, said)
	}
	p = startProcess(t, dir, "--listen", address)
	p.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "")
}

// TestKilledEtcd kills the etcd below a command of licet store: the message names etcd, as the command has no service.
func TestKilledEtcd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	startProcess(t, dir).terminate(t)
	err := withEtcdOf(t.Context(), dir, zerolog.Nop(), io.Discard, func(ctx context.Context, _ string) error {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, path := range lines {
			line, _ := os.ReadFile(path) // other processes end meanwhile
			if !strings.HasSuffix(string(line), "\x00"+runEtcd+"\x00"+dir+"\x00") {
				continue
			}
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			if err != nil {
				return err
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if want := "another process has killed the etcd in " + dir + ": start licet again; the stored data is intact " +
		"(signal: killed)"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// devAtTerminal starts a licet dev that a terminal controls: Ctrl-C reaches the whole process group.
func devAtTerminal(t *testing.T, dir string) *dialog {
	t.Helper()
	person, terminal := pseudoterminal(t)
	d := &dialog{t: t, person: person, cmd: licetCommand("dev", "--data-dir", dir, "--listen", "127.0.0.1:0")}
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = terminal, terminal, terminal
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	d.begin(terminal)
	d.says(lastLineOfStart, "")
	return d
}

// TestStartFitsTheTerminal: on a terminal of 24 lines of 80 columns, everything that a first start of licet dev prints
// stays in sight, below the command itself and above the cursor.
func TestStartFitsTheTerminal(t *testing.T) {
	t.Parallel()
	d := devAtTerminal(t, filepath.Join(t.TempDir(), "data"))
	d.says(lastLineOfStart, "\x03")
	if code := d.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	shown, _, _ := strings.Cut(d.screen.String(), lastLineOfStart)
	shown = regexp.MustCompile("\x1b\\[[0-9;]*m|\r").ReplaceAllString(shown, "")
	const command, last, cursor = 1, 1, 1
	rows := command + last + cursor
	for line := range strings.Lines(shown) {
		rows += max(1, (len(line)-1+79)/80)
	}
	if rows > 24 || !strings.Contains(shown, "ready") {
		t.Errorf("%d lines on the screen:\n%s", rows, shown)
	}
}

// TestCtrlC: the first Ctrl-C stops licet dev in order, the second at once. The log has colors, and keeps its place
// before the steps.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	d := devAtTerminal(t, dir)
	d.says(lastLineOfStart, "\x03")
	if code, shown := d.ends(), d.screen.String(); code != exitOK || strings.Count(shown, "stopping") != 1 ||
		strings.Index(shown, "\x1b[32mINF\x1b[0m \x1b[1mready\x1b[0m") > strings.Index(shown, lastLineOfStart) ||
		!strings.Contains(shown, "\x1b[32mINF\x1b[0m \x1b[1mready\x1b[0m") {
		t.Errorf("exit code %d, on the screen\n%q", code, shown)
	}
	if _, err := os.Stat(filepath.Join(dir, envFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stopped service leaves %s behind: %v", envFile, err)
	}

	d = devAtTerminal(t, dir)
	env, err := os.ReadFile(filepath.Join(dir, envFile))
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(string(env), "LICET_URL=http://"), "\n")
	slow, err := net.Dial("tcp", address) // the stop waits for the rest of the request
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	const head = "POST /v1/licenses/activate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
	if _, err := slow.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(slow).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatal(line, err)
	}
	d.says(lastLineOfStart, "\x03")
	d.says("stopping", "")
	time.Sleep(signalEcho + 100*time.Millisecond) // until another Ctrl-C counts
	d.says("stopping", "\x03")
	const atOnce = "licet: stopping at once on the second signal"
	if code, shown := d.ends(), d.screen.String(); code != exitFailed || strings.Count(shown, atOnce) != 1 {
		t.Errorf("exit code %d, on the screen\n%s", code, shown)
	}
}

// TestRelay: lines pass as they are, also in pieces. A crash is held back, without lines of the log.
func TestRelay(t *testing.T) {
	var child bytes.Buffer
	log := func(line string) {
		if n, err := (markedLog{&child}).Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	log("a log line\n")
	child.WriteString("the panic: in a line\n")
	log("panic: in the log\n")
	child.WriteString("panic: a")
	log("the log goes on\n")
	child.WriteString(" bug\n\ngoroutine 7 [running]:\n")
	log("to the end\n")
	const passed = "a log line\nthe panic: in a line\npanic: in the log\nthe log goes on\nto the end\n"
	for size := 1; size <= child.Len(); size++ {
		var out bytes.Buffer
		r := &relay{logTo: &out, textTo: &out}
		for rest := child.Bytes(); len(rest) > 0; {
			n, err := r.Write(rest[:min(size, len(rest))])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if out.String() != passed || !r.crashed || string(r.text) != "panic: a bug\n\ngoroutine 7 [running]:\n" {
			t.Errorf("in pieces of %d bytes: passed on %q, held %q", size, out.String(), r.text)
		}
	}
}

// TestCrashOf: the last call of our code or of etcd's server decides who has crashed.
func TestCrashOf(t *testing.T) {
	const runtime = "goroutine 7 [running]:\nruntime.throw({0x1, 0x2})\n\t/go/src/runtime/panic.go:1 +0x2\n" +
		"runtime.sigpanic()\n\t/go/src/runtime/signal.go:1\nslices.Sort[...]()\n\t/go/src/slices/sort.go:1\n"
	for stack, etcd := range map[string]bool{
		"go.etcd.io/bbolt.(*Tx).page(...)\n\t/x.go:1\ngo.etcd.io/etcd/server/v3/storage.f()\n": true,
		"go.etcd.io/raft/v3.(*raft).Step()\n\t/x.go:1\nlicet/kv/embedded.f()\n":                true,
		"google.golang.org/grpc.f()\n\t/x.go:1\ngo.etcd.io/etcd/server/v3/etcdserver.f()\n":    true,
		"licet/kv.f()\n\t/licet/kv/x.go:1\ngo.etcd.io/etcd/client/v3.(*watcher).Watch()\n":     false,
		"go.etcd.io/etcd/client/v3.f()\n\t/x.go:1\nlicet/kv/internal/etcd.f()\n":               false,
		"main.run()\n\t/x.go:1\ngo.etcd.io/bbolt.Open()\n":                                     false,
		"strings.f()\n": false,
	} {
		if got := ofEtcd(runtime + stack); got != etcd {
			t.Errorf("%v for %s", got, stack)
		}
	}
}

// TestCrash covers a crash outside etcd, and a trace that can't be kept.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	trace := []byte("fatal error: a bug\n[signal SIGX]\n\ngoroutine 7 [running]:\nlicet/node.f()\n\n" +
		"goroutine 8 [select]:\ngo.etcd.io/x.f()\n")
	for _, noun := range []string{childService, childEtcd} {
		want := "the " + noun + " in " + dir + " has crashed: start licet again, and report the crash; " +
			"the stored data is intact (fatal error: a bug; [signal SIGX]; the trace is in " +
			filepath.Join(dir, crashFile) + ")"
		if err := crash(noun, dir, trace); err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if err := crash(childService, filepath.Join(dir, "none"), trace); !strings.Contains(err.Error(),
		"; the trace is lost: open ") {
		t.Error(err)
	}
}
