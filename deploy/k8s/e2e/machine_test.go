package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain stands in for main where the test's own program is a machine's first process.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == firstProcess {
		fmt.Fprintln(os.Stderr, beFirst(os.Args[2], os.Args[3]))
		os.Exit(exitFailed)
	}
	os.Exit(m.Run())
}

// TestMachine looks at a machine from inside, and checks that its end leaves nothing behind.
func TestMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--net", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v: %s", err, out)
	}
	setting := "/proc/sys/vm/overcommit_memory"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m, err := newMachine("somewhere", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.end()
	sleeper, err := output(m.inside(t.Context(), "bash", "-euc", "sleep 98765 >/dev/null 2>&1 & echo $!"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(m.inside(t.Context(), "bash", "-euc", `
		hostname
		echo 7 > /proc/sys/vm/overcommit_memory
		cat /proc/sys/vm/overcommit_memory
		ip -brief link | wc -l
		mkdir /run/netns
		touch /run/netns/x /var/lib/x
		ls /var/lib
		mount --bind /var/lib /run/netns
		ps --no-headers -o args `+strings.TrimSpace(sleeper)))
	if err != nil {
		t.Fatal(err)
	}
	if want := "somewhere\n7\n1\nx\nsleep 98765\n"; out != want {
		t.Errorf("inside: %q, want %q", out, want)
	}
	after, err := os.ReadFile(setting)
	if err != nil || string(after) != string(before) {
		t.Errorf("outside %s is %q (%v), and was %q", setting, after, err, before)
	}
	if _, err := os.Stat(filepath.Join(dir, "lib", "x")); err != nil {
		t.Error("what is written to /var/lib there is not in the machine's folder:", err)
	}
	m.end()
	running, err := exec.Command("pgrep", "--full", "--exact", "sleep 98765").Output()
	if err == nil {
		t.Errorf("it is gone, and a process of it runs still: %s", running)
	}
}

// TestCompare finds what a run would have left.
func TestCompare(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("reading packet filters needs root")
	}
	s := state{}
	if err := s.lookAtCgroups(); err != nil || len(s) == 0 {
		t.Skipf("no cgroups here: %d, %v", len(s), err)
	}
	if err := makeCgroup(cgroups + "test"); err != nil {
		t.Skipf("cgroups can't be made here: %v", err)
	}
	left := state{}
	if err := left.lookAtCgroups(); err != nil || len(left) <= len(s) {
		t.Errorf("a cgroup more is not seen: %d, and %d before, %v", len(left), len(s), err)
	}
	for _, hierarchy := range hierarchies() {
		if err := removeCgroup(filepath.Join(hierarchy, cgroups+"test")); err != nil {
			t.Error(err)
		}
	}
	clean := state{}
	if err := clean.lookAtCgroups(); err != nil || len(clean) != len(s) {
		t.Errorf("a cgroup is left: %d, and %d before, %v", len(clean), len(s), err)
	}
}
