package archtest

import (
	"slices"
	"strings"
	"testing"
)

// module is the path of the module whose tree is checked.
const module = "licet"

// room is one package of the house, or, where path ends in "/...", a package
// and all below it. A package under some room's own "internal" folder belongs
// to that room.
type room struct {
	path     string
	ours     []string // rooms it may import; {everything} for any
	third    []string // if set: the only third-party paths it may import
	banned   []string // standard packages it must not import
	pure     bool     // must not ask for the time
	testOnly bool     // helps tests: only tests and other such rooms import it
	state    bool     // may keep state in package-level variables
	mayCrash bool     // is of no service: a panic may end its process
}

const everything = "*"

// house lists the rooms from the roof down: a room imports only rooms below it.
var house = []room{
	{path: "cmd/...", ours: []string{everything}, state: true},
	{path: "internal/...", ours: []string{everything}, testOnly: true},
	{path: "loadtest/trial/trialtest", ours: []string{"loadtest/..."}, testOnly: true},
	// Measures the service from outside, as its clients see it.
	{path: "loadtest/...", ours: []string{"client", "client/webhook", "internal/process"}, mayCrash: true},
	// Child processes of load tests and tests.
	{
		path:     "internal/process",
		mayCrash: true,
		third:    []string{"go.etcd.io/etcd/client/pkg/v3/transport", "go.etcd.io/etcd/server/v3/embed"},
	},
	// Programs as users would write them.
	{path: "examples/...", ours: []string{"client/webhook"}, mayCrash: true},
	{path: "cmd/licet/internal/cli", ours: []string{"cmd/licet/internal/bulk", "client", "cmd/licet/internal/terminal", "licensing"}, mayCrash: true},
	{path: "cmd/licet/internal/terminal", mayCrash: true},
	{
		path:     "cmd/licet/internal/bulk",
		ours:     []string{"client"},
		mayCrash: true,
		third:    []string{"github.com/go-json-experiment/json/jsontext", "go.etcd.io/etcd/client/pkg/v3/fileutil"},
	},
	// What receivers of webhooks import: only the client comes along, for what an event is.
	{path: "client/webhook", ours: []string{"client"}, third: []string{"github.com/standard-webhooks/standard-webhooks/libraries/go"}},
	// What users of the service import: it brings nothing along.
	{path: "client", third: []string{}},
	{path: "handlers", ours: []string{"handlers/connection", "handlers/paypage", "handlers/signature", "payment", "delivery/webhook", "handlers/limits", "node/service", "node", "node/store", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{
		path:  "handlers/connection",
		ours:  []string{"metrics/guard", "licensing"},
		third: []string{"github.com/prometheus/client_golang/prometheus", "github.com/valyala/fasthttp"},
	},
	{path: "handlers/paypage", ours: []string{"licensing"}},
	{
		path:   "handlers/signature",
		third:  []string{"github.com/dunglas/httpsfv"},
		banned: []string{"crypto/rand", "io/fs", "log/...", "net", "net/http/...", "os/...", "syscall"},
		pure:   true,
	},
	{path: "delivery", ours: []string{"delivery/webhook", "node/service", "node", "node/store", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{path: "node/peer", ours: []string{"node", "node/store", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{path: "payment", ours: []string{"node/service", "node", "node/store", "metrics/tracing", "metrics", "licensing"}},
	{
		path:  "delivery/webhook",
		ours:  []string{"metrics/tracing", "metrics", "licensing"},
		third: []string{"code.dny.dev/ssrf", "github.com/standard-webhooks/standard-webhooks/libraries/go"},
	},
	{path: "kv", ours: []string{"kv/internal/claimwrite", "kv/internal/etcd", "kv/internal/layout", "node/store", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{path: "kv/deliveries", ours: []string{"kv/internal/claimwrite", "kv/internal/etcd", "kv/internal/layout", "node/store", "licensing"}},
	{path: "kv/deliveries/deliveriestest", ours: []string{"kv/internal/kvtest", "kv/internal/layout", "node/store/storetest", "licensing"}, testOnly: true},
	{path: "kv/verify", ours: []string{"kv/internal/etcd", "kv/internal/layout", "node/store", "licensing"}},
	{path: "kv/backup", ours: []string{"kv/embedded", "kv/internal/etcd", "kv/internal/layout", "metrics"}},
	{path: "kv/embedded/embeddedtest", ours: []string{"kv/embedded"}, testOnly: true},
	{path: "kv/embedded", ours: []string{"metrics/guard"}},
	{path: "kv/internal/claimwrite", ours: []string{"kv/internal/etcd", "kv/internal/layout", "node/store"}},
	{path: "kv/internal/etcd", ours: []string{"kv/internal/layout", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{
		path:   "kv/internal/layout",
		ours:   []string{"node/store", "licensing"},
		banned: []string{"crypto/rand", "go.etcd.io/...", "io/fs", "log/...", "math/rand/...", "net/...", "os/...", "syscall"},
		pure:   true,
	},
	{path: "kv/internal/kvtest", ours: []string{"node/store", "metrics", "licensing"}, testOnly: true},
	{path: "node/store/storetest", ours: []string{"node/store", "licensing"}, testOnly: true},
	{path: "node/service", ours: []string{"node", "node/store", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{path: "node", ours: []string{"node/store", "metrics/guard", "metrics/tracing", "metrics", "licensing"}},
	{path: "node/store", ours: []string{"licensing"}},
	{path: "handlers/limits", third: []string{"github.com/maypok86/otter/...", "golang.org/x/time/rate"}},
	{
		path:  "metrics/tracing",
		ours:  []string{"metrics"},
		third: []string{"github.com/prometheus/client_golang/prometheus", "github.com/rs/zerolog", "go.opentelemetry.io/otel/..."},
	},
	{path: "metrics/guard", ours: []string{"metrics"}, third: []string{"github.com/rs/zerolog"}},
	{path: "metrics", third: []string{"github.com/prometheus/..."}},
	{
		path:  "licensing",
		third: []string{"github.com/bojanz/currency"},
		banned: []string{
			"crypto/rand", "database/...", "io/fs", "log/...", "math/rand/...",
			"net", "net/http/...", "os/...", "syscall",
		},
		pure: true,
	},
}

// gates names third-party code that only some rooms may import. A room whose row
// names one package of it may import that one.
var gates = []struct {
	path  string
	rooms []string
}{
	{"go.etcd.io/...", []string{"kv/...", "internal/...", "loadtest/..."}},
	{"google.golang.org/grpc/...", []string{"kv/...", "cmd/..."}},
	{"github.com/valyala/fasthttp/...", []string{"handlers", "node/peer", "cmd/..."}},
	{"github.com/fasthttp/...", []string{"handlers", "cmd/..."}},
	{"github.com/dunglas/httpsfv/...", []string{"handlers/signature"}},
	{"go.opentelemetry.io/...", []string{"metrics/tracing", "examples/...", "internal/..."}},
}

// sealed names the room whose exported identifiers must not mention a type of
// the packages below the path.
var sealed = struct{ room, path string }{"kv", "go.etcd.io/..."}

// maxLines is how long a file may be that is not a test.
const maxLines = 400

// bags are names that say nothing about what is inside.
var bags = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}

// clock lists what of package time a pure room must not touch.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation",
}

// roomOf finds the row of a package's folder, or nil. A package in another's internal
// folder belongs to that one's room, unless it has a row of its own.
func roomOf(dir string) *room {
	for i := range house {
		if dir == house[i].path {
			return &house[i]
		}
	}
	if at := strings.Index(dir, "/internal/"); at > 0 {
		dir = dir[:at]
	}
	for i := range house {
		if within(dir, house[i].path) {
			return &house[i]
		}
	}
	return nil
}

// within tells whether a path is the pattern, or below it where the pattern
// ends in "/...".
func within(path, pattern string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	return path == base || deep && strings.HasPrefix(path, base+"/")
}

func anyWithin(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(path, p) })
}

// mayImport tells whether code of one room that is no test may import another.
func (r *room) mayImport(other *room) bool {
	switch {
	case r == other:
		return true
	case other.testOnly && !r.testOnly:
		return false
	}
	return slices.Contains(r.ours, everything) || slices.Contains(r.ours, other.path)
}

func TestRoomsImportDownwards(t *testing.T) {
	place := map[string]int{}
	for i, r := range house {
		place[r.path] = i
	}
	for i, r := range house {
		for _, other := range r.ours {
			if other == everything {
				continue
			}
			if at, ok := place[other]; !ok || at <= i {
				t.Errorf("row %q imports %q, which is no row below it", r.path, other)
			}
		}
	}
}
