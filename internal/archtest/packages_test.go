package archtest

import (
	"slices"
	"strings"
	"testing"
)

// module is the path of the module that the tests check.
const module = "licet"

// row is the rule of one package, or of a package and all packages below it if path ends in "/...". A package in the
// "internal" folder of another package belongs to the row of that package, unless it has a row of its own.
type row struct {
	path       string
	purpose    string   // what the package is for
	imports    []string // the packages of this module that it may import; {everything} for all
	thirdParty []string // the only third-party packages that it may import; nil: all that restricted allows
	forbidden  []string // the packages of the standard library that it must not import
	noClock    bool     // it must not read the time
	testOnly   bool     // only tests and other testOnly packages may import it
	globals    bool     // it may keep state in package-level variables
	mayPanic   bool     // it is not part of the service: a panic may end its process
}

const everything = "*"

// packages lists every package, from the top down: a package imports only packages below it.
var packages = []row{
	{
		path:    "cmd/...",
		purpose: "the commands: flags, wiring, signals",
		imports: []string{everything},
		globals: true,
	},
	{
		path:     "internal/...",
		purpose:  "helpers and checks that only tests use",
		imports:  []string{everything},
		testOnly: true,
	},
	{
		path:     "loadtest/trial/trialtest",
		purpose:  "helpers for the tests of load tests",
		imports:  []string{"loadtest/...", "internal/depth"},
		testOnly: true,
	},
	{
		path:     "loadtest/...",
		purpose:  "load tests: measure the service from outside, as clients see it",
		imports:  []string{"client", "client/webhook", "internal/process", "internal/fakestripe"},
		mayPanic: true,
	},
	{
		path:       "internal/process",
		purpose:    "child processes of tests and load tests",
		thirdParty: []string{"go.etcd.io/etcd/client/pkg/v3/transport", "go.etcd.io/etcd/server/v3/embed"},
		mayPanic:   true,
	},
	{
		path:       "internal/fakestripe",
		purpose:    "a stand-in for Stripe, for tests and load tests",
		thirdParty: []string{"github.com/stripe/stripe-go/v86/..."},
		mayPanic:   true,
	},
	{
		path:     "examples/...",
		purpose:  "example programs, as users would write them",
		imports:  []string{"client", "client/offline", "client/webhook", "receipt"},
		mayPanic: true,
	},
	{
		path:    "cmd/licet/internal/cli",
		purpose: "the client commands of licet",
		imports: []string{
			"internal/backoff",
			"cmd/licet/internal/bulk", "cmd/licet/internal/migrate", "client", "cmd/licet/internal/terminal",
			"licensing/keyring", "licensing", "licensing/money", "receipt",
		},
		mayPanic: true,
	},
	{
		path:     "cmd/licet/internal/terminal",
		purpose:  "progress, confirmation and secrets on a terminal",
		mayPanic: true,
	},
	{
		path:       "cmd/licet/internal/migrate",
		purpose:    "reads licenses from other services",
		imports:    []string{"cmd/licet/internal/bulk", "internal/backoff"},
		thirdParty: []string{"golang.org/x/time/rate"},
		mayPanic:   true,
	},
	{
		path:    "cmd/licet/internal/migrate/migratetest",
		purpose: "in tests: the APIs of other services",
	},
	{
		path:    "cmd/licet/internal/bulk",
		purpose: "moves licenses between a service and CSV files",
		imports: []string{"client", "licensing", "licensing/money"},
		thirdParty: []string{
			"github.com/go-json-experiment/json/jsontext", "go.etcd.io/etcd/client/pkg/v3/fileutil",
		},
		mayPanic: true,
	},
	{
		path:       "client/webhook",
		purpose:    "for receivers of webhooks: verify a message and return its event",
		imports:    []string{"client"},
		thirdParty: []string{"github.com/standard-webhooks/standard-webhooks/libraries/go"},
	},
	{
		path:       "client/offline",
		purpose:    "the Go client of installed programs; imports no third-party code",
		imports:    []string{"client", "receipt"},
		thirdParty: []string{},
	},
	{
		path:       "client",
		purpose:    "for users of the service: the Go client; imports no third-party code",
		thirdParty: []string{},
	},
	{
		path:    "handlers",
		purpose: "HTTP: routes, request types, errors, limits",
		imports: []string{
			"handlers/connection", "handlers/docs", "handlers/paypage", "handlers/signature", "payment",
			"delivery/webhook", "handlers/limits", "node/service", "node", "node/store", "metrics/guard",
			"metrics/tracing", "metrics",
			"internal/fair", "licensing/keyring", "licensing", "licensing/money", "docs/reference", "receipt",
		},
	},
	{
		path:       "docs/reference",
		purpose:    "the API document, embedded",
		thirdParty: []string{"github.com/go-json-experiment/json/...", "go.yaml.in/yaml/v2"},
	},
	{
		path:       "handlers/connection",
		purpose:    "HTTP connections: listener, framing, early refusal, deadlines",
		imports:    []string{"internal/fair", "metrics/guard", "licensing"},
		thirdParty: []string{"github.com/prometheus/client_golang/prometheus", "github.com/valyala/fasthttp"},
	},
	{
		path:       "handlers/docs",
		purpose:    "the API reference in the browser, and the pages beside it",
		imports:    []string{"handlers/paypage"},
		thirdParty: []string{},
	},
	{
		path:    "handlers/paypage",
		purpose: "the HTML pages where buyers pay",
		imports: []string{"licensing/money"},
	},
	{
		path:       "handlers/signature",
		purpose:    "verification of signed requests (RFC 9421)",
		thirdParty: []string{"github.com/dunglas/httpsfv"},
		forbidden:  []string{"crypto/rand", "io/fs", "log/...", "net", "net/http/...", "os/...", "syscall"},
		noClock:    true,
	},
	{
		path:    "delivery",
		purpose: "sends events to webhook endpoints",
		imports: []string{
			"internal/backoff",
			"delivery/webhook", "node/service", "node", "node/store", "metrics/guard", "metrics/tracing",
			"metrics", "licensing",
		},
	},
	{
		path:    "node/peer",
		purpose: "carries commands between nodes",
		imports: []string{"internal/fair", "node", "node/store", "metrics/guard", "metrics/tracing",
			"metrics", "licensing/keyring", "licensing"},
	},
	{
		path:       "payment/stripe",
		purpose:    "the payment provider Stripe",
		imports:    []string{"payment", "licensing", "licensing/money"},
		thirdParty: []string{"github.com/stripe/stripe-go/v86/..."},
	},
	{
		path:    "payment",
		purpose: "connects the pay page, the payment provider and the order",
		imports: []string{
			"node/service", "node", "node/store", "metrics/tracing", "metrics", "licensing", "internal/fair",
		},
	},
	{
		path:       "delivery/webhook",
		purpose:    "delivery of one webhook message to one endpoint",
		imports:    []string{"metrics/tracing", "metrics", "licensing"},
		thirdParty: []string{"code.dny.dev/ssrf", "github.com/standard-webhooks/standard-webhooks/libraries/go"},
	},
	{
		path:    "kv",
		purpose: "implements node/store on etcd",
		imports: []string{
			"internal/backoff", "internal/fair",
			"kv/verify", "kv/internal/claimwrite", "kv/internal/etcd", "kv/internal/layout", "kv/internal/keyspace",
			"node/store",
			"metrics/guard", "metrics/tracing", "metrics",
			"licensing/keyring", "licensing",
		},
	},
	{
		path:    "kv/deliveries",
		purpose: "stores the deliveries of webhooks in etcd",
		imports: []string{
			"kv/internal/claimwrite", "kv/internal/etcd", "kv/internal/layout", "kv/internal/keyspace", "node/store",
			"licensing",
		},
	},
	{
		path:    "kv/deliveries/deliveriestest",
		purpose: "creates endpoints for tests of deliveries",
		imports: []string{
			"kv/internal/kvtest", "kv/internal/layout", "kv/internal/keyspace", "node/store/storetest", "licensing",
		},
		testOnly: true,
	},
	{
		path:    "kv/verify",
		purpose: "verifies the values in etcd",
		imports: []string{
			"internal/backoff", "kv/internal/etcd", "kv/internal/layout", "kv/internal/keyspace", "node/store",
			"licensing/keyring", "licensing",
		},
	},
	{
		path:    "kv/backup",
		purpose: "backup, restore and defragmentation of a store",
		imports: []string{"internal/backoff", "kv/embedded", "kv/internal/etcd", "kv/internal/keyspace", "metrics"},
	},
	{
		path:    "kv/survey",
		purpose: "the facts about etcd and the store for licet doctor",
		imports: []string{"kv/internal/etcd", "kv/internal/layout", "kv/internal/keyspace"},
	},
	{
		path:    "kv/users",
		purpose: "users of etcd and their roles",
		imports: []string{"kv/internal/etcd", "kv/internal/keyspace"},
	},
	{
		path:     "kv/embedded/embeddedtest",
		purpose:  "an embedded etcd for tests",
		imports:  []string{"internal/depth", "kv/embedded"},
		testOnly: true,
	},
	{
		path:    "kv/embedded",
		purpose: "runs etcd in this process, as a cluster of one",
		imports: []string{"metrics/guard"},
	},
	{
		path:    "kv/internal/claimwrite",
		purpose: "writes claims of Idempotency-Keys",
		imports: []string{"kv/internal/etcd", "kv/internal/layout", "kv/internal/keyspace", "node/store", "licensing"},
	},
	{
		path:    "kv/internal/etcd",
		purpose: "the only checked and counted requests to etcd",
		imports: []string{
			"internal/backoff",
			"kv/internal/keyspace", "node/store", "metrics/guard", "metrics/tracing", "metrics",
			"licensing",
		},
	},
	{
		path:    "kv/internal/layout",
		purpose: "the encoding of values",
		imports: []string{"kv/internal/keyspace", "node/store", "licensing/keyring", "licensing"},
		forbidden: []string{
			"crypto/rand", "go.etcd.io/...", "io/fs", "log/...", "math/rand/...", "net/...", "os/...", "syscall",
		},
		noClock: true,
	},
	{
		path:    "kv/internal/keyspace",
		purpose: "the keys of etcd",
		imports: []string{"node/store", "licensing/keyring", "licensing"},
		forbidden: []string{
			"crypto/rand", "go.etcd.io/...", "io/fs", "log/...", "math/rand/...", "net/...", "os/...", "syscall",
		},
		noClock: true,
	},
	{
		path:     "kv/internal/kvtest",
		purpose:  "helpers for the tests of kv",
		imports:  []string{"node/store", "metrics", "licensing/keyring", "licensing"},
		testOnly: true,
	},
	{
		path:     "node/store/storetest",
		purpose:  "the tests of every implementation of node/store",
		imports:  []string{"node/store", "licensing/keyring", "licensing"},
		testOnly: true,
	},
	{
		path:    "node/service",
		purpose: "the use cases",
		imports: []string{
			"internal/backoff", "internal/fair",
			"node", "node/clocks", "node/store", "metrics/guard", "metrics/tracing", "metrics",
			"licensing/keyring", "licensing", "receipt",
		},
	},
	{
		path:    "node",
		purpose: "the engine: runs commands on records, one record at a time",
		imports: []string{
			"internal/backoff",
			"node/clocks", "node/store", "metrics/guard", "metrics/tracing", "metrics",
			"licensing/keyring", "licensing",
		},
	},
	{
		path:    "node/clocks",
		purpose: "compares the clock of a node with the other nodes' clocks",
		imports: []string{"node/store", "metrics", "licensing"},
	},
	{
		path:    "node/store",
		purpose: "the interfaces and types of a store",
		imports: []string{"licensing/keyring", "licensing"},
	},
	{
		path:       "handlers/limits",
		purpose:    "rate limits",
		imports:    []string{"licensing"},
		thirdParty: []string{"github.com/maypok86/otter/...", "golang.org/x/time/rate"},
	},
	{
		path:    "metrics/tracing",
		purpose: "traces",
		imports: []string{"metrics"},
		thirdParty: []string{
			"github.com/prometheus/client_golang/prometheus", "github.com/rs/zerolog",
			"go.opentelemetry.io/otel/...",
		},
	},
	{
		path:       "metrics/guard",
		purpose:    "starts goroutines and recovers panics",
		imports:    []string{"internal/backoff", "metrics"},
		thirdParty: []string{"github.com/rs/zerolog"},
	},
	{
		path:       "metrics",
		purpose:    "the metrics",
		thirdParty: []string{"github.com/prometheus/..."},
	},
	{
		path:       "internal/fair",
		purpose:    "shares places among owners",
		thirdParty: []string{},
	},
	{
		path:       "internal/depth",
		purpose:    "how deep tests go, how many run at once, and how often garbage is collected",
		thirdParty: []string{},
		testOnly:   true,
	},
	{
		path:       "internal/backoff",
		purpose:    "waits for a random time, and between attempts",
		thirdParty: []string{},
	},
	{
		path:       "receipt",
		purpose:    "signed documents of installed programs: sign and verify; imports no third-party code",
		thirdParty: []string{},
		forbidden:  []string{"crypto/rand", "io/fs", "log/...", "net/...", "os/...", "syscall"},
		noClock:    true,
	},
	{
		path:       "licensing/keyring",
		purpose:    "the secrets of a store, and license keys and secrets that derive from them",
		imports:    []string{"licensing"},
		thirdParty: []string{},
		forbidden: []string{
			"crypto/rand", "database/...", "io/fs", "log/...", "math/rand/...", "net", "net/http/...", "os/...",
			"syscall",
		},
		noClock: true,
	},
	{
		path:       "licensing",
		purpose:    "the rules: what a license, an order and a product are, and which changes are legal",
		thirdParty: []string{"golang.org/x/text/unicode/norm"},
		forbidden: []string{
			"crypto/rand", "database/...", "io/fs", "log/...", "math/rand/...", "net", "net/http/...", "os/...",
			"syscall",
		},
		noClock: true,
	},
	{
		path:       "licensing/money",
		purpose:    "currencies and amounts",
		thirdParty: []string{"github.com/bojanz/currency"},
		forbidden: []string{
			"crypto/rand", "database/...", "io/fs", "log/...", "math/rand/...", "net", "net/http/...", "os/...",
			"syscall",
		},
		noClock: true,
	},
}

// restricted lists third-party packages that only some packages may import, unless the row of a
// package names the third-party package.
var restricted = []struct {
	path      string
	importers []string
}{
	{"go.etcd.io/...", []string{"kv/...", "internal/...", "loadtest/..."}},
	{"google.golang.org/grpc/...", []string{"kv/...", "cmd/..."}},
	{"github.com/valyala/fasthttp/...", []string{"handlers", "node/peer", "cmd/..."}},
	{"github.com/fasthttp/...", []string{"handlers", "cmd/..."}},
	{"github.com/dunglas/httpsfv/...", []string{"handlers/signature"}},
	{"github.com/santhosh-tekuri/...", []string{"internal/..."}}, // no program links the checks of the API document
	{"github.com/stripe/...", []string{"payment/stripe", "internal/..."}},
	{"go.opentelemetry.io/...", []string{"metrics/tracing", "examples/...", "internal/..."}},
}

// hiddenTypes names a package whose exported identifiers must not mention types of the packages below
// path.
var hiddenTypes = struct{ dir, path string }{"kv", "go.etcd.io/..."}

// maxLines is the greatest number of lines of a file, except tests.
const maxLines = 400

// vagueNames are package names that don't say what a package contains.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}

// clockFunctions are the functions of package time that a package with noClock must not use.
var clockFunctions = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation",
}

// rowOf returns the row of a package by its folder; nil if there is none. See row for "internal"
// folders.
func rowOf(dir string) *row {
	for i := range packages {
		if dir == packages[i].path {
			return &packages[i]
		}
	}
	if at := strings.Index(dir, "/internal/"); at > 0 {
		dir = dir[:at]
	}
	for i := range packages {
		if within(dir, packages[i].path) {
			return &packages[i]
		}
	}
	return nil
}

// within reports whether a path is the pattern, or below the pattern if it ends in "/...".
func within(path, pattern string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	return path == base || deep && strings.HasPrefix(path, base+"/")
}

func anyWithin(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(path, p) })
}

// mayImport reports whether code of r, except its tests, may import other.
func (r *row) mayImport(other *row) bool {
	switch {
	case r == other:
		return true
	case other.testOnly && !r.testOnly:
		return false
	}
	return slices.Contains(r.imports, everything) || slices.Contains(r.imports, other.path)
}

func TestTableIsInOrder(t *testing.T) {
	index := map[string]int{}
	for i, r := range packages {
		index[r.path] = i
		if r.purpose == "" {
			t.Errorf("row %q has no purpose", r.path)
		}
	}
	for i, r := range packages {
		for _, other := range r.imports {
			if other == everything {
				continue
			}
			if at, ok := index[other]; !ok || at <= i {
				t.Errorf("row %q imports %q, but no row below has that path", r.path, other)
			}
		}
	}
}
