package main

import (
	"context"
	"html"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPrintedPurchase runs the commands that licet dev prints, with the key that the first of them prints.
func TestPrintedPurchase(t *testing.T) {
	needTools(t, "sh")
	p := shared(t)
	commands := printedCommands(t, p.stdout)
	if len(commands) != 4 {
		t.Fatalf("licet dev prints the commands %q", commands)
	}
	path := "PATH=" + selfAsLicet(t) + ":$PATH\n"
	_, activate, _ := strings.Cut(paste(t, "sh", path+commands[0]+"\n"+commands[1]), "Activate a device with:\n")
	activate, _, _ = strings.Cut(activate, "\n")
	before, after, _ := strings.Cut(commands[2], "KEY")
	if activate = strings.TrimSpace(activate); !strings.HasPrefix(activate, before) ||
		!strings.HasSuffix(activate, after) {
		t.Errorf("%s prints %q, want it to be like %q", commands[1], activate, commands[2])
	}
	out := paste(t, "sh", path+commands[0]+"\n"+activate+"\n"+commands[3])
	if !strings.Contains(out, "activated") || strings.Count(out, "LICENSE KEY") != 2 {
		t.Errorf("%s, then %s: %s", activate, commands[3], out)
	}
}

// printedCommands returns the commands of licet that licet dev prints.
func printedCommands(t *testing.T, printed string) []string {
	t.Helper()
	_, block, found := strings.Cut(printed, "\nBuy a license in another terminal")
	_, block, begun := strings.Cut(block, ":\n  ")
	block, _, ended := strings.Cut(block, "\n\n")
	if !found || !begun || !ended {
		t.Fatalf("licet dev printed\n%s", printed)
	}
	return strings.Split(block, "\n  ")
}

// TestCommandsWithCurl pastes the commands with curl on the page at / into a shell.
func TestCommandsWithCurl(t *testing.T) {
	for _, tool := range []string{"curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands need %s, which this machine does not have", tool)
		}
	}
	r, err := shared(t).send(t.Context(), "GET", "/", "")
	if err != nil {
		t.Fatal(err)
	}
	var pasted strings.Builder
	for _, part := range strings.Split(r.body, ` aria-label="Command: `)[1:] {
		_, command, _ := strings.Cut(part, `">`)
		command, _, ended := strings.Cut(command, "</pre>")
		if !ended {
			t.Fatalf("a command has no end: %s", part)
		}
		pasted.WriteString(html.UnescapeString(command) + "\n\n")
	}
	for _, shell := range []string{"bash", "sh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("this machine does not have %s", shell)
			}
			wantMainJob(t, paste(t, shell, pasted.String()))
		})
	}
}

// TestPageOfTheService: the page at / has the address, the file with the API key, and the commands with curl, each
// ready to copy.
func TestPageOfTheService(t *testing.T) {
	p := shared(t)
	r, err := p.send(t.Context(), "GET", "/", "")
	if err != nil || r.status != 200 {
		t.Fatalf("%v %d %s", err, r.status, r.body)
	}
	page := html.UnescapeString(r.body)
	shown := []string{p.url, readEnv(filepath.Join(p.dir, envFile))}
	if len(steps()) != 6 {
		t.Errorf("%d steps", len(steps()))
	}
	for _, step := range steps() {
		shown = append(shown, ">"+step.Command+"</pre>")
	}
	for _, part := range shown {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if strings.Contains(page, p.key) {
		t.Error("the page has the API key")
	}
	for _, path := range []string{"/docs", "/docs/errors", "/docs/viewer.js", "/favicon.ico", "/robots.txt"} {
		if r, err := p.send(t.Context(), "GET", path, ""); err != nil || r.status != 200 {
			t.Errorf("%s: %v %d", path, err, r.status)
		}
	}
}

// TestCommandsOfThePage runs the commands of licet on the page at /.
func TestCommandsOfThePage(t *testing.T) {
	needTools(t, "sh")
	p := shared(t)
	r, err := p.send(t.Context(), "GET", "/", "")
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(html.UnescapeString(r.body), `aria-label="Commands of licet">`)
	commands, _, _ = strings.Cut(commands, "</pre>")
	setup := "set -e; PATH=" + selfAsLicet(t) + ":$PATH\n" + readEnv(filepath.Join(p.dir, envFile)) + "\n"
	out := paste(t, "sh", setup+commands)
	for _, want := range []string{"laptop-1", "activated", "lk_test_", "my-shop"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nprint no %s:\n%s", commands, want, out)
		}
	}
}

// paste writes commands to the standard input of a shell, as a user at a terminal would, and returns the output.
func paste(t *testing.T, shell, commands string) string {
	t.Helper()
	return pasteIn(t, t.TempDir(), shell, commands)
}

// pasteIn is like paste, in a directory.
func pasteIn(t *testing.T, dir, shell, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell)
	cmd.Env = plainEnvironment()
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// wantMainJob checks the answers of the six commands, one line each.
func wantMainJob(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	want := []string{
		`"status":"unpaid"`, `"status":"paid"`, `"status":"paid"`, `"status":"activated"`, `"device_id":"laptop-1"`,
		`"removed":true`,
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines came out, want %d:\n%s", len(lines), len(want), out)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) || !strings.Contains(line, `"code":0`) {
			t.Errorf("command %d answered %s, want %s in it", i+1, line, want[i])
		}
	}
	t.Logf("\n%s", out)
}

// TestCurlPageHasTheSameCommands compares the commands with curl on the page at / with those of a tutorial.
func TestCurlPageHasTheSameCommands(t *testing.T) {
	page := readText(t, filepath.Join("..", "..", "docs", "tutorials", "curl.md"))
	if block := "\n```sh\n. ./licet-data/" + envFile + "\n\n" + commands + "```\n"; !strings.Contains(page, block) {
		t.Errorf("docs/tutorials/curl.md lacks this block:%s", block)
	}
	for _, step := range steps() {
		if first, _, _ := strings.Cut(step.Command, "\n"); len(first) > 82 {
			t.Errorf("on the page, the button to copy covers the end of this line: %s", first)
		}
	}
}

// TestReadme runs the commands of README.md that buy and activate a license, after licet dev. It checks the length of
// the page, and the two commands that a clone needs.
func TestReadme(t *testing.T) {
	t.Parallel()
	page := readText(t, filepath.Join("..", "..", "README.md"))
	if words := len(strings.Fields(page)); words > 900 {
		t.Errorf("README.md has %d words, want at most 900", words)
	}
	var client string
	for _, block := range blocksOf(page, "sh") {
		switch {
		case strings.Contains(block, "licet sandbox buy"):
			_, client, _ = strings.Cut(block, "\n") // without the installation
		case block != "go run ./cmd/licet dev\n" && block != "go test ./...\n":
			t.Errorf("no test runs this block of README.md:\n%s", block)
		}
	}
	_, out, blocks := runDocumented(t, "\n```sh\n"+client+"```\n")
	if blocks != 1 || !strings.Contains(out, "laptop-1") || !strings.Contains(out, "activated") {
		t.Errorf("the commands of README.md print\n%s", out)
	}
}

// TestQuickStart: in the default data directory, commands find the service by themselves. On Windows, no command needs
// a POSIX shell.
func TestQuickStart(t *testing.T) {
	byDefault, err := filepath.Abs(filepath.Join(defaultDataDir, envFile))
	if err != nil {
		t.Fatal(err)
	}
	const elsewhere = `C:\my data\dev.env`
	commands := []string{"licet sandbox buy editor", "licet licenses activate KEY laptop-1", "licet licenses list"}
	for _, c := range []struct {
		path, system string
		profile      bool
		where        string
		before, flag string
	}{
		{byDefault, "linux", false, ", in this directory", "", ""},
		{byDefault, "windows", false, ", in this directory", "", ""},
		{byDefault, "linux", true, "", readEnv(byDefault), ""},
		{"/data/dev.env", "linux", false, "", ". /data/dev.env", ""},
		{elsewhere, "windows", false, "", `licet profile set dev --from-env "` + elsewhere + `"`, " --profile dev"},
	} {
		text := quickStart("http://127.0.0.1:8080", c.path, c.system, c.profile, true)
		var want []string
		if c.before != "" {
			want = []string{c.before}
		}
		for _, command := range commands {
			want = append(want, command+c.flag)
		}
		if got := printedCommands(t, text); !slices.Equal(got, want) ||
			!strings.Contains(text, "\nBuy a license in another terminal"+c.where+", and ") {
			t.Errorf("%s on %s prints\n%s", c.path, c.system, text)
		}
		withStripe := quickStart("http://127.0.0.1:8080", c.path, c.system, c.profile, false)
		if strings.Contains(withStripe, "sandbox") || !strings.Contains(withStripe, "licet licenses grant") {
			t.Errorf("without the sandbox:\n%s", withStripe)
		}
		if !strings.Contains(text, "\n  "+c.path+"\n") || !strings.HasSuffix(text, "\n"+lastLineOfStart+"\n") {
			t.Errorf("the file or the last line is missing:\n%s", text)
		}
	}
}

func TestShellWord(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := shellWord(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
	f("/tmp/licet-data/dev.env", "/tmp/licet-data/dev.env")
	f("/tmp/my data/dev.env", "'/tmp/my data/dev.env'")
	f("/tmp/$HOME/dev.env", "'/tmp/$HOME/dev.env'")
	f("/tmp/it's/dev.env", `'/tmp/it'\''s/dev.env'`)
}
