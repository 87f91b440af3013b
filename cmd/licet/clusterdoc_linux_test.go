package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"licet/internal/depth"
)

// clone is a copy of the repository, for pages whose commands build programs there and use fixed ports.
type clone struct {
	t   *testing.T
	dir string
	// environment is added to the environment of the shell.
	environment []string
}

// newClone copies the tracked files of the repository. It skips the test unless the tests run at full depth.
func newClone(t *testing.T) *clone {
	t.Helper()
	depth.NeedFull(t)
	needTools(t, "bash", "git", "go", "ip", "curl", "openssl")
	c := &clone{t: t, dir: t.TempDir()}
	out, err := exec.CommandContext(t.Context(), "bash", "-c",
		`cd ../.. && git ls-files -z | while IFS= read -r -d "" f; do [ -e "$f" ] && printf '%s\0' "$f"; done | `+
			`xargs -0 cp --parents -t "$1"`, "bash", c.dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// run runs commands in one shell, in a network of their own, and returns what they print. Every process that they leave
// ends with the shell. go builds with the flags of the released programs: .ci/run has compiled their packages before.
func (c *clone) run(commands string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "sh", "-ec", "ip link set lo up\n"+commands)
	cmd.Dir = c.dir
	cmd.Env = append(append(plainEnvironment(), "GOPROXY=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath"),
		c.environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v, after\n%s", err, out)
	}
	return string(out)
}

// commandsOf returns the commands of a page, but not the blocks that have one of some texts.
func commandsOf(t *testing.T, page string, without ...string) string {
	t.Helper()
	blocks := blocksOf(page, "sh")
	for _, text := range without {
		skipped := blockWith(t, page, text)
		blocks = slices.DeleteFunc(blocks, func(block string) bool { return block == skipped })
	}
	return strings.Join(blocks, "")
}

// indentedWith returns the indented commands of a page that have a text.
func indentedWith(t *testing.T, page, text string) string {
	t.Helper()
	for _, block := range regexp.MustCompile(`(?m)(?:^ {4,}\S.*\n)+`).FindAllString(page, -1) {
		if strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("the page has no indented commands with %q", text)
	return ""
}

// ofRunbooks returns the commands of upgrade.md and of runbooks for single occasions. The shell has the members of etcd
// in $etcd.
func ofRunbooks(t *testing.T) string {
	t.Helper()
	placeholders := strings.NewReplacer("FORMER_LEADER", "$leader", "LEADER", "$leader", "FOLLOWER_ID", "$follower_id",
		"FOLLOWER", "$follower")
	byHand := indentedWith(t, docPage(t, "runbooks/LicetEtcdDatabaseFilling.md"), "move-leader")
	// etcd compacts no revision twice.
	const anotherRevision = "etcdctl --endpoints $ETCD put page x\netcdctl --endpoints $ETCD del page\n"
	return "ETCD=$etcd\n" + anotherRevision +
		indentedWith(t, docPage(t, "runbooks/LicetEtcdAlarm.md"), "compact") + anotherRevision +
		indentedWith(t, docPage(t, "runbooks/LicetStoreSpace.md"), "compact") +
		"etcdctl --endpoints $ETCD endpoint status -w simple > status\n" +
		"leader=$(awk -F', ' '/, true, /{print $1}' status)\n" +
		"set -- $(awk -F', ' '!/, true, /{print $1, $2}' status)\nfollower=$1 follower_id=$2\n" +
		placeholders.Replace(byHand) +
		indentedWith(t, docPage(t, "guides/upgrade.md"), "downgrade") +
		"etcdctl --endpoints $ETCD downgrade cancel\n"
}

// TestDocumentedClusterRuns runs the commands of operations.md, upgrade.md and sizing.md in one shell, as these pages
// ask, on three members of etcd and two nodes. It also runs the commands of other pages that need etcdctl, etcdutl or a
// clone, such as runbooks. Blocks that it leaves out:
//   - the users of etcd: storeusers_test.go has a cluster with certificates
//   - promtool, where it is not installed: make observability runs it
//   - the build of etcdctl, which would download modules: deploy/k8s/tools builds it of the same version
//
// The test runs alone: etcdctl waits for 5 s at most.
//
// A request with the API key of the load stands for make load, which takes a minute: make load-smoke runs such loads.
func TestDocumentedClusterRuns(t *testing.T) {
	c := newClone(t)
	// Nodes would wait five seconds at each of eight stops.
	c.environment = []string{"LICET_DRAIN_DELAY=100ms"}
	build := exec.CommandContext(t.Context(), "../../deploy/k8s/tools/build", "etcdctl", "etcdutl")
	build.Env = append(os.Environ(), "GOFLAGS=")
	built, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	tools := strings.TrimSpace(string(built))
	upgrade := docPage(t, "guides/upgrade.md")
	without := []string{"store users"}
	if exec.CommandContext(t.Context(), "../../deploy/observability/install-prometheus").Run() != nil {
		without = append(without, "$promtool")
	}
	const load = "make load SCENARIO=mixed DURATION=1m TARGET=http://127.0.0.1:8081,http://127.0.0.1:8082"
	if !strings.Contains(upgrade, load+" &\n") {
		t.Errorf("upgrade.md lacks %q", load)
	}
	install, _, _ := strings.Cut(blockWith(t, readText(t, filepath.Join("..", "..", "README.md")), "go install"), "\n")
	script := strings.NewReplacer(
		"wait $old\n", "wait $old || true\n", // etcd ends by the signal
		"seconds=10", "seconds=1", "[1-5000]", "[1-50]",
		"prometheus/tests/*.yml", "prometheus/tests/slo_texts.yml", // make observability runs them all, for 40 s
		// It ends before the first node does.
		load+" &", "curl -fsS -H \"Authorization: Bearer $LICET_API_KEY\" http://127.0.0.1:8081/v1/licenses\ntrue &",
		"sleep 15\n", "",
		"etcd="+members, "etcd=$etcd", "/var/lib/etcd", "restored-m1",
	).Replace("mkdir bin\ncp -L " + tools + "/etcdctl " + tools + "/etcdutl bin/\nPATH=$PWD/bin:$PATH\n" +
		"export GOBIN=$PWD/bin\n" + install + "\nlicet --version\netcdctl version\n" +
		commandsOf(t, docPage(t, "guides/operations.md"), without...) +
		blockWith(t, docPage(t, "guides/personal-data.md"), "etcdctl ") +
		commandsOf(t, upgrade, "go get ") +
		commandsOf(t, docPage(t, "guides/sizing.md")) +
		blockWith(t, docPage(t, "guides/backup.md"), "etcdutl ") +
		blockWith(t, docPage(t, "guides/dashboards.md"), "sed -i ") +
		"grep -l wiki.example.com deploy/grafana/*.json\n" + ofRunbooks(t))
	out := c.run(script)
	wantOutput(t, out, "store.db: OK", `version="new"`, "Finished defragmenting", `{"licenses":[]`)
	// sizing.md says that an order, its license and their events are 7 keys.
	keys := regexp.MustCompile(`keys_total (\d+)\n`).FindAllStringSubmatch(out, -1)
	if len(keys) != 2 {
		t.Fatalf("the commands printed %d numbers of keys:\n%s", len(keys), out)
	}
	before, _ := strconv.Atoi(keys[0][1])
	after, _ := strconv.Atoi(keys[1][1])
	if n := after - before; n < 7*50 || n > 7*50+20 {
		t.Errorf("50 orders are %d keys", n)
	}
	_, version, _ := strings.Cut(out, "etcdctl version: ")
	if version, _, _ = strings.Cut(version, "\n"); !strings.Contains(upgrade, "etcdctl/v3@v"+version+" ") {
		t.Errorf("upgrade.md does not build the etcdctl of this test, %s", version)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "restored-m1", "member", "snap", "db")); err != nil {
		t.Error(err)
	}
}

// TestDocumentedTracesRun runs the commands of docs/guides/tracing.md.
func TestDocumentedTracesRun(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	c.environment = []string{"OTEL_BSP_SCHEDULE_DELAY=100"}
	blocks := blocksOf(docPage(t, "guides/tracing.md"), "sh")
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	start := strings.NewReplacer("bin/trace-receiver &", "bin/trace-receiver > spans.log &",
		"--tracing-sample-ratio 0 &", "--tracing-sample-ratio 0 > dev.log &").Replace(blocks[0])
	spans := c.run(start + await("dev.log", lastLineOfStart) + blocks[1] +
		await("spans.log", "POST /v1/licenses/activate") + "cat spans.log\n")
	wantOutput(t, spans, "4bf92f3577b34da6a3ce929d0e0e4736", "below 00f067aa0ba902b7", "etcd swap", "fold")
	if strings.Contains(spans, "POST /v1/licenses\n") {
		t.Errorf("the grant was traced:\n%s", spans)
	}
}

// TestDocumentedReceiverRuns runs the commands of examples/webhook-receiver/README.md.
func TestDocumentedReceiverRuns(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	page := readText(t, filepath.Join("..", "..", "examples", "webhook-receiver", "README.md"))
	blocks := blocksOf(page, "sh")
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	out := c.run(strings.TrimSuffix(blocks[0], "\n") + " > received.log 2>&1 &\n" +
		await("received.log", "listening on http://127.0.0.1:9000/licet") + blocks[1] + blocks[1] + "cat received.log\n")
	if strings.Count(out, "204\n") != 2 || strings.Count(out, " evt_1 ") != 1 {
		t.Errorf("the commands print\n%s", out)
	}
	_, printed, _ := strings.Cut(page, "and the program prints\n\n    ")
	printed, _, _ = strings.Cut(printed, "\n")
	wantOutput(t, out, printed+"\n")
}

// await returns commands that wait until a file has a text, and that fail if the latest program in the background ends.
func await(file, text string) string {
	return "until grep -s '" + text + "' " + file + "; do kill -0 $!; sleep 0.1; done\n"
}
