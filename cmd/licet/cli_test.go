package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"licet/licensing"
)

// outcome is how a short run of licet ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func runLicet(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func TestVersion(t *testing.T) {
	got := runLicet(t, "version")
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "licet dev\nrevision ") ||
		!strings.Contains(got.stdout, runtime.Version()) {
		t.Errorf("got %+v", got)
	}
	if got := (build{"1.2.3", "0123abc", "go1.26.8"}).String(); !strings.HasPrefix(got,
		"licet 1.2.3\nrevision 0123abc\ngo1.26.8 ") {
		t.Errorf("got %q", got)
	}
}

func TestHelpHasExamples(t *testing.T) {
	for command, words := range map[string][]string{
		"": {"Examples:", "licet dev --listen", "licet completion bash", "version"},
		"dev": {"Examples:", "--metrics-listen", "LICET_LOG_FORMAT=json licet dev", "$LICET_DATA_DIR",
			`"./licet-data"`},
		"orders create": {"Examples:", "licet orders create --product-id", "the scope orders.", "$LICET_URL"},
		"profile set":   {"Examples:", "licet profile set dev --from-env"},
		"store verify": {"Examples:", "licet store verify --data-dir", "--master-key-file",
			"$LICET_ETCD_ENDPOINTS"},
		"store backup":     {"Examples:", "licet store backup store.db", "--keep 48", "$LICET_ETCD_ENDPOINTS"},
		"store defragment": {"Examples:", "licet store defragment --etcd-endpoints", "$LICET_ETCD_ENDPOINTS"},
		"store users":      {"Examples:", "licet store users --etcd-endpoints", "$LICET_ETCD_CERT"},
		"store restore":    {"Examples:", "licet store restore store.db", "$LICET_DATA_DIR"},
		"store keys create": {"Examples:", "licet store keys create --account",
			"orders, licenses, products, webhooks, events, keys", "$LICET_MASTER_KEY_FILE"},
		"store keys list":   {"Examples:", "licet store keys list --account"},
		"store keys revoke": {"Examples:", "licet store keys revoke key_", "--yes"},
		"store keys rotate": {"Examples:", "licet store keys rotate key_", "--overlap"},
		"keys":              {"Examples:", "licet store keys create --help"},
		"keys create": {"Examples:", "licet keys create --name",
			"orders, licenses, products, webhooks, events, keys", "$LICET_URL"},
		"keys list":            {"Examples:", "licet keys list --all"},
		"keys revoke":          {"Examples:", "licet keys revoke key_", "--yes"},
		"keys rotate":          {"Examples:", "licet keys rotate key_", "--overlap"},
		"store master-key new": {"Examples:", "licet store master-key new"},
		"store master-key add": {"Examples:", "licet store master-key add --last"},
		"serve":                {"Examples:", "--etcd-endpoints 10.0.0.1:2379,", "$LICET_MASTER_KEY_FILE", `":8080"`},
	} {
		got := runLicet(t, append(strings.Fields(command), "--help")...)
		for _, word := range words {
			if got.code != exitOK || !strings.Contains(got.stdout, word) {
				t.Errorf("licet %s --help lacks %q: %+v", command, word, got)
			}
		}
	}
}

// TestFormerCommands asks for commands by their names before licet store: the message names licet store.
func TestFormerCommands(t *testing.T) {
	for _, command := range []string{"verify", "backup", "restore", "defragment", "master-key"} {
		got := runLicet(t, command)
		if got.code != exitUsage || !strings.Contains(got.stderr, "; did you mean store?\n") {
			t.Errorf("licet %s: %+v", command, got)
		}
	}
}

func TestSuggestions(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if got := runLicet(t, strings.Fields(line)...); got.code != exitUsage || got.stderr != "licet: "+want {
			t.Errorf("licet %s: want exit code 2 and\n%s, got %+v", line, want, got)
		}
	}
	const store = "\nExample: licet store master-key add --master-key-file master.keys\nHelp: licet store --help\n"
	f("store nothing", `unknown command "nothing" for "licet store"`+store)
	const root = "\nExample: licet dev\nHelp: licet --help\n"
	f("ls", `unknown command "ls" for "licet"; did you mean licet events list, licet keys list or licet licenses list?`+
		root)
	f("nosuch --help", `unknown command "nosuch" for "licet"`+root)
	// The example and the help are those of a single suggestion.
	f("store veryfi", `unknown command "veryfi" for "licet store"; did you mean verify?
Example: licet store verify --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --master-key-file master.keys
Help: licet store verify --help
`)
	const orders = "\nExample: licet orders create --product-id editor --price 49.00 --currency USD\n" +
		"Help: licet orders --help\n"
	f("order", `unknown command "order" for "licet"; did you mean orders?`+orders)
	f("subscriptions list", `unknown command "subscriptions" for "licet"; did you mean orders?`+orders)
	f("lic", `unknown command "lic" for "licet"; did you mean licenses?
Example: licet licenses grant --product-id editor --quantity 10
Help: licet licenses --help
`)
	f("activate LIC-1 a", `unknown command "activate" for "licet"; did you mean licet licenses activate?
Example: licet licenses activate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 laptop-1 --device-name "My laptop"
Help: licet licenses activate --help
`)
	const licenses = "\nExample: licet licenses list --status activated --limit 50\nHelp: licet licenses list --help\n"
	for _, line := range []string{"licenses ls", "licenses lst", "licenses lst --help", "help licenses lst"} {
		typed := strings.Fields(strings.TrimPrefix(line, "help "))[1]
		f(line, `unknown command "`+typed+`" for "licet licenses"; did you mean list?`+licenses)
	}
	f("orders creat --foo", `unknown command "creat" for "licet orders"; did you mean create?
Example: licet orders create --product-id editor --price 49.00 --currency USD
Help: licet orders create --help
`)
	const list = "\nExample: licet orders list --status paid --limit 50\nHelp: licet orders list --help\n"
	f("orders list --statsu paid", "unknown flag: --statsu; did you mean --status?"+list)
	f("orders list --product editor", "unknown flag: --product; did you mean --product-id?"+list)
	f("orders list --colour", "unknown flag: --colour"+list)
	f("orders list --status", "--status needs a value"+list)
	f("orders list --limit ten", `--limit is "ten": write a whole number such as 10`+list)
	f("orders list --all=perhaps", `--all is "perhaps": write true or false`+list)
	const create = "\nExample: licet orders create --product-id editor --price 49.00 --currency USD\n" +
		"Help: licet orders create --help\n"
	f("orders create --currency USD", "licet orders create needs --product-id"+create)
	f("orders create --product-id a --currency USD", "licet orders create needs --price or --amount"+create)
	f("orders create --product-id a --currency USD --price 1 --amount 100",
		"--amount and --price exclude each other: set only one of them"+create)
	f("profile use", "licet profile use needs NAME\nExample: licet profile use shop\nHelp: licet profile use --help\n")
}

// TestSuggestedValues: the service refuses a value, and the command suggests the value that was meant.
func TestSuggestedValues(t *testing.T) {
	p := shared(t)
	t.Setenv("LICET_URL", p.url)
	t.Setenv("LICET_API_KEY", p.key)
	for line, want := range map[string]string{
		"licenses list --status activted":                                          "; did you mean activated? (42200 ",
		"webhooks create https://a.example --event-types order.paid,license.isued": "; did you mean license.issued? (42200 ",
		"keys create --name a --scopes oders":                                      "; did you mean orders? (42200 ",
		"licenses list --status nothing":                                           "revoked, suspended (42200 ",
	} {
		got := runLicet(t, strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("licet %s: want %q, got %+v", line, want, got)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := runLicet(t, "completion", shell); got.code != exitOK || !strings.Contains(got.stdout, "licet") {
			t.Errorf("%s: %+v", shell, got)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	f := func(problem string, args ...string) {
		t.Helper()
		args = append(args, "--data-dir", filepath.Join(t.TempDir(), "unused"))
		got := runLicet(t, args...)
		if got.code != exitUsage || !strings.Contains(got.stderr, problem) || got.stdout != "" {
			t.Errorf("licet %v: want exit code 2 and %q, got %+v", args, problem, got)
		}
		if strings.Count(got.stderr, "\n") != 3 {
			t.Errorf("licet %v: not the problem, an example and a pointer to the help: %s", args, got.stderr)
		}
	}
	f("unknown flag: --colour", "dev", "--colour")
	f("--order-lifetime", "dev", "--order-lifetime", "soon")
	f("--remember-licenses is 0", "dev", "--remember-licenses", "0")
	f("--order-lifetime is 25h0m0s", "dev", "--order-lifetime", "25h")
	f("--order-lifetime is 29m59s", "dev", "--order-lifetime", "29m59s")
	f("--test-order-lifetime is 25h0m0s", "dev", "--test-order-lifetime", "25h")
	f("--test-order-lifetime is 999ms", "dev", "--test-order-lifetime", "999ms")
	f("--test-order-lifetime is -1s", "dev", "--test-order-lifetime", "-1s")
	f("--shutdown-timeout is 0s", "dev", "--shutdown-timeout", "0s")
	f("--log-level", "dev", "--log-level", "loud")
	f("--log-format", "dev", "--log-format", "xml")
	f("--public-url", "dev", "--public-url", "licenses.example.com")
	f("--public-url", "dev", "--public-url", "https://licenses.example.com/?a=b")
	f("--listen", "dev", "--listen", "8080")
	f("write 127.0.0.1 before the port", "dev", "--listen", ":0")
	f("--rate-limit-address", "dev", "--rate-limit-address", "often")
	f("write a rate such as 60/m", "dev", "--rate-limit-account", "500")
	f("--rate-limit-license", "dev", "--rate-limit-license", "1/100ms")
	f("--event-retention-age is 59s: write at least 1m", "dev", "--event-retention-age", "59s")
	f("--event-retention-bytes is 1: write at least 1048576", "dev", "--event-retention-bytes", "1")
	f(`--webhook-allow-networks: "10" is not a network`, "dev", "--webhook-allow-networks", "10")
	f("--webhook-ports: 70000 is not a port: write a number from 1 to 65535", "dev", "--webhook-ports", "443,70000")
	f(`--trusted-proxies: "proxy" is not a network`, "dev", "--trusted-proxies", "10.0.0.0/8,proxy")
	f("licet dev takes no argument", "dev", "now")
	f("unknown command", "development")

	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "[2001:db8::1]:0",
		"[::ffff:192.0.2.1]:0"} {
		f("--allow-remote", "dev", "--listen", address)
		f("--allow-remote", "dev", "--listen", "127.0.0.1:0", "--metrics-listen", address)
	}
}

func TestListenOnLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.9.8.7:0", "localhost:0", "[::1]:0", "[::ffff:127.0.0.1]:0"} {
		listener, err := listen(t.Context(), "listen", address, false)
		if err != nil {
			if strings.Contains(address, "::1") && strings.Contains(err.Error(), "cannot assign") {
				continue // a machine without IPv6
			}
			t.Errorf("%s: %v", address, err)
			continue
		}
		if ip := listener.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
			t.Errorf("%s became %v", address, ip)
		}
		_ = listener.Close()
	}
}

func TestListenOnHostOfOtherMachines(t *testing.T) {
	listener, err := listen(t.Context(), "listen", "0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if got := localURL(listener.Addr()); got != "http://127.0.0.1:"+port {
		t.Errorf("its local URL is %s", got)
	}
}

func TestEnvironment(t *testing.T) {
	f := func(want int, problem string, args ...string) {
		t.Helper()
		args = append([]string{"dev", "--data-dir", t.TempDir()}, args...)
		if got := runLicet(t, args...); got.code != want || !strings.Contains(got.stderr, problem) {
			t.Errorf("%v: want exit code %d and %q, got %+v", args, want, problem, got)
		}
	}
	// Each problem shows which of the settings was taken.
	t.Setenv("LICET_LISTEN", "0.0.0.0:1111")
	f(exitUsage, `--listen: "0.0.0.0"`)
	f(exitUsage, `--listen is "flag"`, "--listen", "flag")
	f(exitUsage, `"99999" is not a port`, "--listen", "127.0.0.1:99999")
	t.Setenv("LICET_LISTEN", "")
	f(exitUsage, `--log-level is "loud"`, "--log-level", "loud")
	t.Setenv("LICET_ALLOW_REMOTE", "perhaps")
	f(exitUsage, "environment variable LICET_ALLOW_REMOTE")
	t.Setenv("LICET_ALLOW_REMOTE", "")
	t.Setenv("LICET_SHUTDOWN_TIMEOUT", "-1s")
	f(exitUsage, "--shutdown-timeout is -1s")
}

// wantOneLine demands one line on standard error, and that it says something.
func wantOneLine(t *testing.T, cmd *exec.Cmd, words ...string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("it ended with %v, want exit code 1", err)
	}
	for _, word := range words {
		if !strings.Contains(string(out), word) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("it said %q, want one line with %q", out, word)
		}
	}
}

func TestSecondProcessOnDataDirectory(t *testing.T) {
	p := shared(t)
	before, err := os.ReadFile(filepath.Join(p.dir, envFile))
	if err != nil {
		t.Fatal(err)
	}
	wantOneLine(t, licetCommand("dev", "--data-dir", p.dir, "--listen", "127.0.0.1:0"),
		p.dir+" is in use by another licet process")
	// A bad address is named before the directory.
	if r := runLicet(t, "dev", "--data-dir", p.dir, "--listen", "31000"); r.code != exitUsage ||
		!strings.Contains(r.stderr, `--listen is "31000": write an address such as 127.0.0.1:8080`) {
		t.Errorf("--listen 31000: %+v", r)
	}
	if after, err := os.ReadFile(filepath.Join(p.dir, envFile)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the second process has touched %s (%v)", envFile, err)
	}
	p.want(t, 200, "GET", "/readyz", "")
}

func TestPortInUse(t *testing.T) {
	p := shared(t)
	address := strings.TrimPrefix(p.url, "http://")
	wantOneLine(t, licetCommand("dev", "--data-dir", t.TempDir(), "--listen", address),
		"--listen "+address, "another process listens there already")
}

func TestDataDirectory(t *testing.T) {
	p := shared(t)
	for name, want := range map[string]fs.FileMode{
		".": 0o700, "lock": 0o600, envFile: 0o600, keyFile: 0o600, masterFile: 0o600, "etcd": 0o700, "run": 0o700,
	} {
		info, err := os.Stat(filepath.Join(p.dir, name))
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(p.dir, envFile))
	if err != nil {
		t.Fatal(err)
	}
	want := "LICET_URL=" + p.url + "\nLICET_API_KEY=" + p.key + "\nLICET_API_KEY_ID=" + p.keyID +
		"\nLICET_API_SECRET=" + p.secret + "\n" + exportLine + "\n"
	if string(text) != want || !strings.HasPrefix(p.key, "lk_test_") || !strings.HasPrefix(p.secret, "lks_test_") {
		t.Errorf("%s is %q", envFile, text)
	}
}

// TestRestartKeepsTheKeyPair also sees that dev.env is there only while the
// service is ready.
func TestRestartKeepsTheKeyPair(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startProcess(t, dir)
	order := first.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":0,"currency":"USD"}`).Data
	if code := first.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, envFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stopped service leaves %s behind (%v)", envFile, err)
	}
	second := startProcess(t, dir)
	if second.key != first.key || second.secret != first.secret {
		t.Error("the key pair has changed")
	}
	second.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "")
	second.kill()
	if _, err := os.Stat(filepath.Join(dir, envFile)); err != nil {
		t.Fatalf("a killed service can't remove %s, and yet: %v", envFile, err)
	}
	// A start that fails after it has the directory must not leave the dead
	// address there.
	address := strings.TrimPrefix(shared(t).url, "http://")
	wantOneLine(t, licetCommand("dev", "--data-dir", dir, "--listen", address), "another process listens there")
	if _, err := os.Stat(filepath.Join(dir, envFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s still names a dead address (%v)", envFile, err)
	}
}

func TestMetricsListener(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--metrics-listen", "127.0.0.1:0")
	_, rest, _ := strings.Cut(p.log.String(), `"url":"`)
	address, _, found := strings.Cut(rest, `"`)
	if !found || !strings.HasSuffix(address, "/metrics") {
		t.Fatalf("the log does not tell where the metrics are: %s", p.log)
	}
	scrape := p.get(t, address)
	for _, word := range []string{"licet_build_info{", "licet_store_request_duration_seconds_count{", "go_goroutines"} {
		if scrape.status != 200 || !strings.Contains(scrape.body, word) {
			t.Errorf("%s lacks %s: status %d", address, word, scrape.status)
		}
	}
	if public := p.get(t, p.url+"/metrics"); public.status != 404 {
		t.Errorf("the public listener answers /metrics with %d", public.status)
	}
}

// TestContextStopsRun stops a run by its context, as a signal does.
func TestContextStopsRun(t *testing.T) {
	t.Parallel()
	var stdout, stderr logBuffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0"}, &stdout, &stderr)
	}()
	waitFor(t, func() bool { return strings.Contains(stdout.String(), lastLineOfStart) })
	cancel()
	if code := <-ended; code != exitOK || !strings.Contains(stderr.String(), "INF stopping") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// TestStopLeavesNothingRunning starts and stops a service inside the test.
func TestStopLeavesNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := startService(t)
	a := s.addKey(t, licensing.Owner{AccountID: "acct_a", Mode: licensing.Test})
	a.grant(t, 1)
	a.client.CloseIdleConnections()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before,
		// It runs once in a process, and for good.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// It looks only every 10 s whether its server has ended.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
