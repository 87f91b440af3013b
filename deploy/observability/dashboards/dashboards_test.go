package dashboards

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const folder = "../../grafana"

// manifest makes ConfigMaps of the dashboards, for Kubernetes.
const manifest = "kustomization.yaml"

// write makes TestCommitted write the files: make dashboards.
var write = flag.Bool("write", false, "write the dashboards into deploy/grafana")

// TestCommitted checks that what is committed is what the builders make, and that
// Kubernetes gets it.
func TestCommitted(t *testing.T) {
	files, err := All()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{LintFile: LintExceptions()}
	for _, f := range files {
		if want[f.Name], err = f.JSON(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	configs, err := os.ReadFile(filepath.Join(folder, manifest))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.Contains(string(configs), "files: ["+f.Name+"]\n") {
			t.Errorf("%s is in no ConfigMap of %s", f.Name, manifest)
		}
	}
	for _, entry := range entries {
		if _, ok := want[entry.Name()]; !ok && entry.Name() != manifest {
			t.Errorf("%s is built by nothing: remove it", entry.Name())
		}
	}
	for name, content := range want {
		if *write {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		} else if string(got) != string(content) {
			t.Errorf("%s is not what the builders make: run make dashboards", name)
		}
	}
}

// TestPanelsAreDocumented: every panel says what it shows and in which unit, and has a unique title.
func TestPanelsAreDocumented(t *testing.T) {
	uids := map[string]bool{}
	for _, p := range pages() {
		if uids[p.UID] || p.UID == "" || p.About == "" || p.File != p.UID+".json" {
			t.Errorf("%s: uid %q, file %q, about %q", p.Title, p.UID, p.File, p.About)
		}
		uids[p.UID] = true
		titles := map[string]bool{}
		for _, panel := range p.all() {
			if panel.Title == "" || titles[panel.Title] {
				t.Errorf("%s: no title, or a second %q", p.Title, panel.Title)
			}
			titles[panel.Title] = true
			if !strings.HasSuffix(panel.About, ".") || panel.Unit == "" || len(panel.Queries) == 0 {
				t.Errorf("%s, %s: about %q, unit %q, %d queries", p.Title, panel.Title, panel.About, panel.Unit,
					len(panel.Queries))
			}
			for i, q := range panel.Queries {
				if len(panel.Queries) > 1 && q.Legend == "" {
					t.Errorf("%s, %s: query %d has no legend", p.Title, panel.Title, i)
				}
			}
			if steps := slices.Concat(panel.Warning, panel.Critical); !slices.IsSorted(steps) {
				t.Errorf("%s, %s: warning and critical are %v", p.Title, panel.Title, steps)
			}
		}
	}
}

// TestSelectors: every series is selected by the dashboard's variables, by those of
// whom it is of.
func TestSelectors(t *testing.T) {
	series := regexp.MustCompile(`[a-z_:0-9]+\{([^}]*)\}`)
	aside := regexp.MustCompile(`\{[^}]*\}|\b(?:by|on) \([^)]*\)|"[^"]*"`) // labels
	naked := regexp.MustCompile(`\b(?:licet|etcd|process|go|grpc|job_slo|job)_[a-z_:]+\b`)
	wanted := map[scope]string{nodes: ofLicet, members: ofEtcd, recording: ofRecorded}
	for _, p := range pages() {
		for _, panel := range p.all() {
			for _, q := range panel.Queries {
				found := series.FindAllStringSubmatch(q.Expr, -1)
				// Without labels, each name is a found name.
				if names := naked.FindAllString(aside.ReplaceAllString(q.Expr, ""), -1); len(found) < max(1,
					len(names)) {
					t.Errorf("%s, %s: a series without a selector in %s", p.Title, panel.Title, q.Expr)
				}
				for _, s := range found {
					if !strings.HasPrefix(s[1], wanted[panel.Of]) {
						t.Errorf("%s, %s: %s is not selected by %s", p.Title, panel.Title, s[0], wanted[panel.Of])
					}
				}
			}
		}
	}
}

// TestGrid: panels lie beside and below each other, and none over another.
func TestGrid(t *testing.T) {
	files, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := f.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
			}
		}
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatal(err)
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: %s has id %d", f.Name, p.Title, p.ID)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= gridWidth {
						t.Fatalf("%s: %s lies over %q at %d,%d", f.Name, p.Title, other, x, y)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
		// No holes at the right, but in a row's last line.
		if len(taken) == 0 {
			t.Errorf("%s has no panels", f.Name)
		}
	}
}

// TestQueries: no variable is left in what is asked of Prometheus, and those of all
// dashboards are there.
func TestQueries(t *testing.T) {
	asked := map[string]int{}
	for _, q := range Queries("1m") {
		asked[q.Dashboard]++
		if strings.Contains(q.Expr, "$") {
			t.Errorf("%s, %s: %s", q.Dashboard, q.Panel, q.Expr)
		}
	}
	if len(asked) != len(pages()) {
		t.Errorf("queries of %v", slices.Collect(maps.Keys(asked)))
	}
	// As in the JSON: one more than variables that list values.
	for _, p := range pages() {
		want := len(p.variables)
		for _, panel := range p.all() {
			want += len(panel.Queries)
		}
		if asked[p.Title] != want {
			t.Errorf("%s: %d queries, want %d", p.Title, asked[p.Title], want)
		}
	}
}
