package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// pseudoterminal opens a terminal and what sits before it.
func pseudoterminal(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	var number, unlocked int32
	for request, into := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request,
			uintptr(unsafe.Pointer(into))); failed != 0 {
			t.Fatal(failed)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return person, terminal
}

// dialog is a command at a terminal.
type dialog struct {
	t      *testing.T
	cmd    *exec.Cmd
	person *os.File
	screen logBuffer
	ended  sync.WaitGroup
	stdout bytes.Buffer
}

// at starts a command with its input and its standard error at a terminal.
func (p *process) at(t *testing.T, args ...string) *dialog {
	t.Helper()
	person, terminal := pseudoterminal(t)
	d := &dialog{t: t, person: person, cmd: licetCommand(args...)}
	d.cmd.Env = append(d.cmd.Env, "LICET_URL="+p.url, "LICET_API_KEY="+p.key, "XDG_CONFIG_HOME="+t.TempDir())
	d.cmd.Stdin, d.cmd.Stderr, d.cmd.Stdout = terminal, terminal, &d.stdout
	d.begin(terminal)
	return d
}

// begin starts the command, which owns the terminal from then on, and reads its screen.
func (d *dialog) begin(terminal *os.File) {
	d.t.Helper()
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	_ = terminal.Close()
	d.ended.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := d.person.Read(buffer)
			_, _ = d.screen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	})
}

// says waits until something stands on the screen, and answers it.
func (d *dialog) says(words, answer string) {
	d.t.Helper()
	waitFor(d.t, func() bool { return strings.Contains(d.screen.String(), words) })
	if _, err := d.person.WriteString(answer); err != nil {
		d.t.Fatal(err)
	}
}

// ends returns the exit code.
func (d *dialog) ends() int {
	d.t.Helper()
	timer := time.AfterFunc(time.Minute, func() { _ = d.cmd.Process.Kill() })
	defer timer.Stop()
	_ = d.cmd.Wait()
	d.ended.Wait()
	return d.cmd.ProcessState.ExitCode()
}

// TestAsksOnATerminal answers questions as a person would.
func TestAsksOnATerminal(t *testing.T) {
	p := shared(t)
	key := p.grant(t, 1)
	status := func() string { return p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data.text("status") }

	d := p.at(t, "licenses", "revoke", key)
	d.says("Revoke the license "+key+" at "+p.url+", for good? [y/N]", "n\n")
	if code := d.ends(); code != exitFailed || status() != "not_activated" ||
		!strings.Contains(d.screen.String(), "licet: not done") {
		t.Errorf("a no: exit code %d, the license is %s: %s", code, status(), d.screen.String())
	}
	d = p.at(t, "licenses", "revoke", key)
	d.says("[y/N]", "\x03") // Ctrl-C is but a character to a process that the terminal does not control
	d.says("[y/N]", "\n")
	if code := d.ends(); code != exitFailed || status() != "not_activated" {
		t.Errorf("no clear word: exit code %d, the license is %s", code, status())
	}
	d = p.at(t, "licenses", "revoke", key)
	d.says("[y/N]", "")
	_ = d.cmd.Process.Signal(os.Interrupt)
	if code := d.ends(); code != exitFailed || status() != "not_activated" {
		t.Errorf("interrupted: exit code %d, the license is %s", code, status())
	}
	d = p.at(t, "licenses", "revoke", key)
	d.says("[y/N]", "y\n")
	if code := d.ends(); code != exitOK || status() != "revoked" || !strings.Contains(d.stdout.String(), "revoked") {
		t.Errorf("a yes: exit code %d, the license is %s: %s", code, status(), d.screen.String())
	}
	other := p.grant(t, 1)
	d = p.at(t, "licenses", "revoke", other, "--yes")
	if code := d.ends(); code != exitOK || d.screen.String() != "" {
		t.Errorf("with --yes: exit code %d, %s", code, d.screen.String())
	}
	// Without a terminal, the command asks no question.
	order := p.want(t, 201, "POST", "/v1/orders",
		`{"product_id":"editor","amount":0,"currency":"USD"}`).Data.text("order_no")
	cmd := licetCommand("orders", "refund", order)
	cmd.Env = append(cmd.Env, "LICET_URL="+p.url, "LICET_API_KEY="+p.key)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refunded") {
		t.Errorf("%v: %s", err, out)
	}
	for _, question := range []struct {
		words string
		args  []string
	}{
		{"Refund the order " + order, []string{"orders", "refund", order}},
		{"Remove the product editor", []string{"products", "delete", "editor"}},
		{"Revoke key_none at", []string{"keys", "revoke", "key_none"}},
		{"Revoke 2 licenses at", []string{"licenses", "revoke", key, other}},
		{"Remove the personal data of ann@example.com from all orders",
			[]string{"redact", "--buyer-email", "ann@example.com"}},
	} {
		d := p.at(t, question.args...)
		d.says(question.words, "\n")
		if code := d.ends(); code != exitFailed {
			t.Errorf("%v: exit code %d", question.args, code)
		}
	}
}

// TestProgressOfAList has the list go to a file, and the bar to the terminal.
func TestProgressOfAList(t *testing.T) {
	p := shared(t)
	key := p.grant(t, 1)
	d := p.at(t, "licenses", "list", "--all", "--output", "json")
	if code := d.ends(); code != exitOK || !strings.Contains(d.screen.String(), "licenses (") ||
		strings.Contains(d.screen.String(), key) || !strings.Contains(d.stdout.String(), key) {
		t.Errorf("exit code %d, on the screen\n%s\nin the file\n%s", code, d.screen.String(), d.stdout.String())
	}
}

// onScreen runs a command with its output at a terminal of the given width, and returns what it shows.
func (p *process) onScreen(t *testing.T, columns uint16, env []string, args ...string) string {
	t.Helper()
	person, terminal := pseudoterminal(t)
	size := [4]uint16{24, columns}
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), syscall.TIOCSWINSZ,
		uintptr(unsafe.Pointer(&size))); failed != 0 {
		t.Fatal(failed)
	}
	cmd := licetCommand(args...)
	cmd.Env = append(append(cmd.Env, "LICET_URL="+p.url, "LICET_API_KEY="+p.key, "TERM=xterm"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	shown, _ := io.ReadAll(person) // fails at the end of the command
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	return strings.ReplaceAll(string(shown), "\r\n", "\n")
}

// TestTablesOnATerminal fits tables to the terminal, and uses colors unless NO_COLOR is set.
func TestTablesOnATerminal(t *testing.T) {
	t.Parallel()
	p := shared(t)
	key := p.grant(t, 1)
	p.want(t, 200, "POST", "/v1/licenses/activate", `{"license_key":"`+key+`","device_id":"laptop-1"}`)
	p.want(t, 409, "POST", "/v1/licenses/activate", `{"license_key":"`+key+`","device_id":"laptop-2"}`)
	list := []string{"licenses", "list", "--status", "activated"}
	plain := p.onScreen(t, 80, []string{"NO_COLOR=1"}, list...)
	for line := range strings.Lines(plain) {
		about := strings.Contains(line, "for lack of width") || strings.HasPrefix(line, "there is more")
		if !about && len([]rune(line)) > 81 {
			t.Errorf("a terminal of 80 shows %q", line)
		}
	}
	if !strings.Contains(plain, key) || strings.Contains(plain, "\x1b") || strings.Contains(plain, "CREATED AT") ||
		!strings.Contains(plain, "order no, id; --wide shows all columns") {
		t.Errorf("a terminal of 80 without colors shows\n%s", plain)
	}
	colored := p.onScreen(t, 80, nil, list...)
	if !strings.Contains(colored, "\x1b[32mactivated\x1b[0m") || !strings.Contains(colored, "\x1b[1mSTATUS\x1b[0m") {
		t.Errorf("a terminal with colors shows\n%q", colored)
	}
	if wide := p.onScreen(t, 80, []string{"NO_COLOR=1"}, append(list, "--wide")...); !strings.Contains(wide,
		"CREATED AT") || strings.Contains(wide, "for lack of width") {
		t.Errorf("with --wide it shows\n%s", wide)
	}
	device := strings.Repeat("0", 32) + strings.Repeat("f", 32)
	other := p.grant(t, 1)
	p.want(t, 200, "POST", "/v1/licenses/activate", `{"license_key":"`+other+`","device_id":"`+device+`"}`)
	profiles := filepath.Join(t.TempDir(), "licet", "profiles.json")
	if err := os.MkdirAll(filepath.Dir(profiles), 0o700); err != nil {
		t.Fatal(err)
	}
	writeText(t, profiles, `{"current":"a","profiles":{"a":{"url":"https://licenses.example.com","api_key":"`+p.key+
		`","api_key_id":"key_vq01jd4q8x2m7r3n5t9v1w4y6z8a"}}}`)
	for _, c := range []struct {
		reported uint16 // by the terminal
		columns  string
		lost     string
		args     []string
	}{
		{80, "", "last seen at, lease expires at", []string{"licenses", "get", other}},
		{80, "", "last seen at, lease expires at", []string{"licenses", "devices", other}},
		{0, "80", "last seen at, lease expires at", []string{"licenses", "devices", other}},
		{200, "80", "last seen at, lease expires at", []string{"licenses", "devices", other}},
		{80, "200", "", []string{"licenses", "devices", other}},
		{80, "no", "last seen at, lease expires at", []string{"licenses", "devices", other}},
		{80, "", ": timestamp, about, actor", []string{"licenses", "events", key}},
		{60, "", "expires at, id", []string{"licenses", "grant", "--product-id", "editor"}},
		{60, "", "id", []string{"licenses", "suspend", key, other}},
		{60, "", "api key id, sign", []string{"profile", "list"}},
	} {
		shown := p.onScreen(t, c.reported, []string{"NO_COLOR=1", "COLUMNS=" + c.columns,
			"XDG_CONFIG_HOME=" + filepath.Dir(filepath.Dir(profiles))}, c.args...)
		lines := strings.Split(strings.TrimSpace(shown), "\n")
		last := lines[len(lines)-1]
		says := strings.HasPrefix(last, "not shown, for lack of width: ") &&
			strings.HasSuffix(last, c.lost+"; --wide shows all columns")
		if says != (c.lost != "") {
			t.Errorf("%v with COLUMNS=%s on a terminal of %d: %s", c.args, c.columns, c.reported, shown)
		}
		if c.args[1] == "devices" && strings.Contains(shown, device) != (c.lost == "") {
			t.Errorf("%v on a terminal of %d shows the device id as\n%s", c.args, c.reported, shown)
		}
	}
}

// TestTypedKeyIsNotShown makes a profile at a terminal.
func TestTypedKeyIsNotShown(t *testing.T) {
	p := shared(t)
	d := p.at(t, "profile", "set", "dev", "--url", p.url, "--api-key-id", p.keyID)
	d.says("API key (not shown): ", p.key+"\n")
	d.says("API secret (not shown): ", p.secret+"\r")
	if code := d.ends(); code != exitOK || strings.Contains(d.screen.String(), p.key) ||
		strings.Contains(d.screen.String(), p.secret) || !strings.Contains(d.screen.String(), "saved the profile") {
		t.Errorf("exit code %d, on the screen\n%s", code, d.screen.String())
	}
	d = p.at(t, "profile", "set", "dev", "--url", p.url)
	d.says("API key (not shown): ", "lk_\x03") // Ctrl-C
	if code := d.ends(); code != exitFailed || !strings.Contains(d.screen.String(), "licet: not done") {
		t.Errorf("Ctrl-C: exit code %d, on the screen\n%s", code, d.screen.String())
	}
	d = p.at(t, "profile", "set", "dev", "--url", p.url)
	d.says("API key (not shown): ", "")
	_ = d.cmd.Process.Signal(os.Interrupt)
	if code := d.ends(); code != exitFailed {
		t.Errorf("interrupted: exit code %d, on the screen\n%s", code, d.screen.String())
	}
}
