package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/loadtest/rig"
)

// TestCapacityIsFilled runs all of it in small: real etcd, a real node.
func TestCapacityIsFilled(t *testing.T) {
	depth.NeedFull(t)
	t.Parallel()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"--quick", "--only", "capacity", "--no-fail", "--dir", dir}
	if depth.Raced() {
		args = append(args, "--build-flags", "-race")
	}
	if code := command(t.Context(), args, &stdout, &stderr); code != rig.ExitOK {
		t.Fatalf("exit code %d; stderr:\n%s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	var d document
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil {
		t.Fatalf("the last line is no JSON: %v", err)
	}
	checkFigures(t, d.Figures)
	if len(d.Rows) != 7 {
		t.Fatalf("%d rows", len(d.Rows))
	}
	for _, line := range d.Rows {
		if line.Verdict == unknown || len(line.Samples) != 1 {
			t.Errorf("not filled: %+v", line)
		}
	}
	if violations := d.Rows[2]; violations.Verdict != aimed || violations.Median != 0 {
		t.Errorf("licet store verify: %+v", violations)
	}
	if len(d.Growth) != 10 || d.Growth[9].Licenses != 1000 || d.Growth[9].Devices <= 3000 {
		t.Errorf("growth: %+v", d.Growth)
	}
	for _, p := range d.Growth {
		if p.Rate <= 0 || p.Seconds <= 0 || p.EtcdRSS <= 0 || p.EtcdAnonymous <= 0 || p.NodeRSS <= 0 ||
			p.Database <= 0 || p.InUse <= 0 {
			t.Errorf("not filled: %+v", p)
		}
		if !strings.Contains(stderr.String(), p.String()) {
			t.Errorf("not reported meanwhile: %s", &p)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// checkFigures demands that each is there once and is a number above zero.
func checkFigures(t *testing.T, figures []*figure) {
	t.Helper()
	got := map[string]bool{}
	for _, f := range figures {
		got[f.Name] = true
		if len(f.Samples) != 1 || !(f.Samples[0] > 0) {
			t.Errorf("not filled: %+v", f)
		}
	}
	want := []string{
		"filling", "activations a second for the latencies", "compaction of all history", "compacted: peak RSS of etcd",
		"defragmentation, in which etcd serves nothing",
		"node: start before the small store until it is ready", "node: start before the full store until it is ready",
		"node: start after it was compacted until it is ready",
		"etcd, SIGTERM: until it has ended", "restarted: RSS of etcd",
		"restarted: RSS of etcd but for the mapped database",
		"licet store verify", "licet store verify: peak RSS", "licet store verify: keys",
		"licet store backup", "licet store backup: peak RSS", "licet store backup: the file",
	}
	for _, how := range []string{"etcd with history, SIGKILL", "etcd, SIGTERM", "etcd, SIGKILL"} {
		want = append(want, how+": from its start to a linearizable read",
			how+": from then until the running node is ready again")
	}
	for _, where := range []string{"small store", "full store"} {
		want = append(want, where+": new devices, licenses cold", where+": new devices, licenses warm")
	}
	for _, where := range []string{"small store", "full store", "while compacting"} {
		want = append(want, where+": p50 of an activation", where+": p99 of an activation")
	}
	for _, when := range []string{"filled, with its history", "compacted", "defragmented"} {
		for _, what := range []string{"devices bound", "database", "database in use", "database, by bound device",
			"RSS of etcd",
			"RSS of etcd but for the mapped database", "RSS of the node"} {
			want = append(want, when+": "+what)
		}
	}
	for _, name := range want {
		if !got[name] {
			t.Errorf("there is no figure %q", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d figures, want %d", len(got), len(want))
	}
}

func TestCapacityConfig(t *testing.T) {
	f := parser(t)
	f("above 0", "--per-license", "0")
	f("99 licenses", "--devices", "297")
	f("licenses", "--devices", "30000000")
	cfg := f("", "--only", "capacity")
	if cfg.fillLicenses() != 1_666_667 || (&full{lab: &lab{cfg: cfg}}).small() != 50_000 ||
		cfg.Quiet/5*30 < time.Minute || !cfg.wants("bytes") {
		t.Errorf("got %+v", cfg)
	}
	cfg = f("", "--only", "capacity", "--devices", "1000", "--per-license", "1")
	if cfg.fillLicenses() != 1000 || (&full{lab: &lab{cfg: cfg}}).small() != 100 || cfg.wants("bytes") {
		t.Errorf("got %+v", cfg)
	}
	if cfg := f(""); cfg.wants("capacity", "bytes") {
		t.Error("capacity is measured without being named")
	}
}

func TestShareOfTheQuota(t *testing.T) {
	f := func(bound int, database int64, want float64) {
		t.Helper()
		c := &full{filler: &filler{each: 1, list: &rig.Keys{Text: make([]byte, bound), Length: 1}}}
		if got := c.share(database); got != want {
			t.Errorf("%d B with %d devices: got %v, want %v", database, bound, got, want)
		}
	}
	const quota = rig.EtcdQuota
	f(targetDevices, quota/2, 50)
	f(targetDevices/10, quota/20, 100*10*float64(quota/20)/quota)
	f(2*targetDevices, quota/2, 50) // more than the target counts neither against it nor for it
}

func TestDiskVerdict(t *testing.T) {
	if err := checkFree("/stores", 3*gibibyte, 3*gibibyte); err != nil {
		t.Error(err)
	}
	if err := checkFree("/stores", 3*gibibyte, 2*gibibyte); err == nil ||
		!strings.Contains(err.Error(), "3.0 GiB are needed in /stores") {
		t.Errorf("got %v", err)
	}
}

// Each license comes once before one comes again, and no device comes twice.
func TestScatter(t *testing.T) {
	const n, count = 50, 120
	bound := map[device]bool{}
	times := map[int]int{}
	for _, from := range []int{0, count / 2} { // in two pieces
		pick, again := scatter(n, from, saltsOfProbe), scatter(n, from, saltsOfProbe+saltsOfProbe/2)
		for i := range count / 2 {
			license, d := pick(i)
			same, other := again(i)
			if same != license || d.number != uint64(license) || bound[d] || bound[other] || d == other {
				t.Fatalf("license %d gets %+v, and then %d gets %+v", license, d, same, other)
			}
			bound[d], bound[other] = true, true
			if times[license]++; times[license] > (from+i)/n+1 {
				t.Fatalf("license %d comes early", license)
			}
			if d.salt < saltsOfProbe || other.salt >= 2*saltsOfProbe {
				t.Fatalf("salts %d and %d belong to another measurement", d.salt, other.salt)
			}
		}
	}
}

func TestFillerPicks(t *testing.T) {
	f := &filler{each: 3}
	pick := f.pick(100, 10)
	for i, want := range map[int]device{0: {0, 100}, 9: {0, 109}, 10: {1, 100}, 29: {2, 109}} {
		if license, d := pick(i); license != i%10 || d != want {
			t.Errorf("operation %d: license %d, %+v", i, license, d)
		}
	}
}
