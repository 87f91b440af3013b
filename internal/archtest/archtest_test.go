package archtest

import (
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestModule checks the module against its rules.
func TestModule(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("../.. is not the root of module %s: %v", module, err)
	}
	wantNoViolations(t, check)
}

// wantNoViolations reports the violations that a check finds in the repository.
func wantNoViolations(t *testing.T, check func(root fs.FS) (violations []string, err error)) {
	t.Helper()
	violations, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range violations {
		t.Error(c)
	}
}

// validModule is a small module without violations, close to the limit of each rule.
var validModule = map[string]string{
	"licensing/licensing.go": `// Package licensing is the vocabulary.
package licensing

import (
	"errors"
	"net/mail"
	"regexp"
	"time"

	"golang.org/x/text/unicode/norm"
)

// ErrGone and its like are compared, never changed.
var ErrGone = errors.New("gone")

var (
	pattern = regexp.MustCompile("^a$")
	table   = map[string]int{"a": 1}
	form    = norm.NFC
)

// The statuses.
const (
	Active = "active"
	Gone   = "gone"
)

const (
	// Low and High are the bounds.
	Low  = 1
	High = 2
)

// Parse shadows a package-level variable.
func Parse(s string, now time.Time) (int, error) {
	table := map[string]int{}
	table[s] = now.Year()
	_, err := mail.ParseAddress(s)
	return table[s], err
}

type hidden struct{}

func (hidden) Uncommented() {}

// Status is one.
type Status string

func (s Status) String() string { return string(s) }
`,
	"licensing/licensing_test.go": `package licensing

import (
	"math/rand"
	"testing"
	"time"

	"licet/internal/build"
)

var started = time.Now()

func TestParse(t *testing.T) { started = time.Now(); build.One(rand.Int()) }
`,
	"internal/build/build.go": `// Package build makes things for tests.
package build

import "licet/kv"

// One makes one.
func One(int) *kv.Store { return nil }
`,
	"metrics/metrics.go": `// Package metrics counts.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Counter counts.
type Counter struct{ c prometheus.Counter }
`,
	"node/node.go": `// Package node works.
package node

import (
	"sync"

	"licet/licensing"
	"licet/metrics"
)

// Node is one.
type Node struct {
	mu sync.Mutex
	c  metrics.Counter
}

var routes = map[string]func(*Node) error{}

// Do does.
func (n *Node) Do() error { n.mu.Lock(); n.c = metrics.Counter{}; return licensing.ErrGone }
`,
	"node/node_test.go": `package node_test

import (
	"licet/kv"
	"licet/node/store/storetest"
	"github.com/rs/zerolog"
)

func init() { zerolog.TimeFieldFormat = ""; storetest.Run(kv.Store{}) }
`,
	"node/store/storetest/storetest.go": `// Package storetest tests stores.
package storetest

import "licet/node/store"

// Run runs.
func Run(any) store.Store { return nil }
`,
	"node/store/store.go": `// Package store says what is asked of a store.
package store

// Store is one.
type Store interface{ Do(limit int) error }
`,
	"kv/kv.go": `// Package kv stores.
package kv

import (
	"licet/kv/internal/wire"
	"licet/node/store"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var _ store.Store = (*Store)(nil)

// Store stores.
type Store struct{ client *clientv3.Client }

type hooked struct{ clientv3.KV }

// Do shows noPackages, and what an unexported type shows stays inside.
func (s *Store) Do(limit int) error { _ = wire.Get(s.client); return nil }

func (h hooked) Txn() clientv3.Txn { return h.KV.Txn(nil) }
`,
	"kv/internal/wire/wire.go": `// Package wire belongs to kv.
package wire

import clientv3 "go.etcd.io/etcd/client/v3"

// Get may show etcd to kv.
func Get(c *clientv3.Client) *clientv3.Client { return c }
`,
	"payment/payment.go": `// Package payment charges.
package payment

import _ "licet/node"
`,
	"handlers/handlers.go": `// Package handlers answers.
package handlers

import (
	_ "licet/handlers/paypage"
	_ "licet/payment"

	_ "github.com/fasthttp/router"
	_ "github.com/valyala/fasthttp"
)
`,
	"handlers/paypage/paypage.go": `// Package paypage shows.
package paypage

import _ "licet/licensing/money"
`,
	"cmd/licet/main.go": `// Licet serves.
package main

import (
	_ "licet/handlers"
	_ "licet/kv"

	_ "github.com/valyala/fasthttp/pprofhandler"
)

var version = "dev"

func init() { version = "" }

func main() {}
`,
	"tools/go.mod":                     "module licet/tools\n",
	"tools/tools.go":                   "package utils\n",
	"node/testdata/broken.go":          "package",
	"licet-data/wal/x.go":              "package",
	".hidden/x.go":                     "package",
	"cmd/licet/_ignored.go":            "package",
	"docs/explanation/architecture.md": "# Architecture\n",
	"kv/testdata/golden/a.txt":         "a\n",
}

func TestValidModulePasses(t *testing.T) {
	expectViolations(t, nil, nil)
}

// expectViolations adds files to validModule and expects exactly these violations.
func expectViolations(t *testing.T, files map[string]string, want []string) {
	t.Helper()
	all := maps.Clone(validModule)
	maps.Copy(all, files)
	tree := fstest.MapFS{}
	for name, text := range all {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := check(tree)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// TestEveryRuleReportsViolations adds one file that violates one rule.
func TestEveryRuleReportsViolations(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             []string
	}{
		{
			"a file that does not parse", "node/x.go", "package node\n\nfunc {\n",
			[]string{"node/x.go:3: does not parse: expected 'IDENT', found '{'"},
		},
		{
			"a package without a row", "annex/x.go", "// Package annex is new.\npackage annex\n",
			[]string{"annex/x.go:1: package annex has no row in the table: add one in " +
				"internal/archtest/packages_test.go"},
		},
		{
			"an import without a row", "node/x.go", "package node\n\nimport _ \"licet/annex\"\n",
			[]string{"node/x.go:3: imports annex, which has no row in the table"},
		},
		{
			"licensing imports a package of the module", "licensing/x.go",
			"package licet\n\nimport _ \"licet/metrics\"\n",
			[]string{"licensing/x.go:3: licensing must not import metrics"},
		},
		{
			"licensing imports a third-party package", "licensing/x.go",
			"package licet\n\nimport _ \"github.com/oklog/ulid/v2\"\n",
			[]string{"licensing/x.go:3: licensing must not import github.com/oklog/ulid/v2: the only third-party " +
				"packages in its row are golang.org/x/text/unicode/norm"},
		},
		{
			"licensing does I/O", "licensing/x.go",
			`package licensing

import (
	_ "net"
	_ "net/http"
	_ "net/url"
	_ "os"
	_ "os/signal"
	_ "io/fs"
	_ "database/sql"
)
`,
			[]string{
				"licensing/x.go:4: licensing must not import net: its row forbids I/O and randomness",
				"licensing/x.go:5: licensing must not import net/http: its row forbids I/O and randomness",
				"licensing/x.go:7: licensing must not import os: its row forbids I/O and randomness",
				"licensing/x.go:8: licensing must not import os/signal: its row forbids I/O and randomness",
				"licensing/x.go:9: licensing must not import io/fs: its row forbids I/O and randomness",
				"licensing/x.go:10: licensing must not import database/sql: its row forbids I/O and randomness",
			},
		},
		{
			"licensing uses randomness", "licensing/x.go", `package licensing

import (
	_ "crypto/rand"
	_ "math/rand"
	_ "math/rand/v2"
)
`,
			[]string{
				"licensing/x.go:4: licensing must not import crypto/rand: its row forbids I/O and randomness",
				"licensing/x.go:5: licensing must not import math/rand: its row forbids I/O and randomness",
				"licensing/x.go:6: licensing must not import math/rand/v2: its row forbids I/O and randomness",
			},
		},
		{
			"licensing reads the time", "licensing/x.go",
			`package licensing

import clock "time"

var now = clock.Now

func age(t clock.Time) clock.Duration {
	return clock.Since(t) + clock.Until(t)
}
`,
			[]string{
				"licensing/x.go:5: licensing must not use time.Now: the time is an argument",
				"licensing/x.go:8: licensing must not use time.Since: the time is an argument",
				"licensing/x.go:8: licensing must not use time.Until: the time is an argument",
			},
		},
		{
			"metrics imports a package of the module", "metrics/x.go",
			"package metrics\n\nimport _ \"licet/licensing\"\n",
			[]string{"metrics/x.go:3: metrics must not import licensing"},
		},
		{
			"metrics imports a third-party package", "metrics/x.go",
			"package metrics\n\nimport _ \"github.com/rs/zerolog\"\n",
			[]string{"metrics/x.go:3: metrics must not import github.com/rs/zerolog: the only third-party packages " +
				"in its row are github.com/prometheus/..."},
		},
		{
			"node imports kv", "node/x.go", "package node\n\nimport _ \"licet/kv\"\n",
			[]string{"node/x.go:3: node must not import kv"},
		},
		{
			"node imports etcd and fasthttp", "node/x.go",
			`package node

import (
	_ "github.com/fasthttp/router"
	_ "github.com/valyala/fasthttp"
	_ "go.etcd.io/etcd/client/v3"
)
`,
			[]string{
				"node/x.go:4: node must not import github.com/fasthttp/router: only handlers, cmd/... may",
				"node/x.go:5: node must not import github.com/valyala/fasthttp: only handlers, node/peer, cmd/... may",
				"node/x.go:6: node must not import go.etcd.io/etcd/client/v3: only kv/..., internal/..., " +
					"loadtest/... may",
			},
		},
		{
			"cmd imports etcd", "cmd/licet/x.go", "package main\n\nimport _ \"go.etcd.io/etcd/server/v3/embed\"\n",
			[]string{"cmd/licet/x.go:3: cmd/licet must not import go.etcd.io/etcd/server/v3/embed: only kv/..., " +
				"internal/..., loadtest/... may"},
		},
		{
			"kv imports packages above it", "kv/x.go", `package kv

import (
	_ "licet/handlers"
	_ "licet/payment"
)
`,
			[]string{"kv/x.go:4: kv must not import handlers", "kv/x.go:5: kv must not import payment"},
		},
		{
			"payment imports kv", "payment/x.go", `package payment

import (
	_ "licet/kv"
	_ "licet/handlers"
)
`,
			[]string{"payment/x.go:4: payment must not import kv", "payment/x.go:5: payment must not import handlers"},
		},
		{
			"handlers imports kv", "handlers/x.go", "package handlers\n\nimport _ \"licet/kv\"\n",
			[]string{"handlers/x.go:3: handlers must not import kv"},
		},
		{
			"the pay page imports node and fasthttp", "handlers/paypage/x.go",
			`package paypage

import (
	_ "licet/node"
	_ "github.com/valyala/fasthttp"
)
`,
			[]string{
				"handlers/paypage/x.go:4: handlers/paypage must not import node",
				"handlers/paypage/x.go:5: handlers/paypage must not import github.com/valyala/fasthttp: only " +
					"handlers, node/peer, cmd/... may",
			},
		},
		{
			"storetest imports kv", "node/store/storetest/x.go", "package storetest\n\nimport _ \"licet/kv\"\n",
			[]string{"node/store/storetest/x.go:3: node/store/storetest must not import kv"},
		},
		{
			"a package imports cmd", "internal/build/x.go", "package build\n\nimport _ \"licet/cmd/licet\"\n",
			[]string{"internal/build/x.go:3: internal/build must not import cmd/licet: cmd is not importable"},
		},
		{
			"a test imports cmd", "node/x_test.go", "package node\n\nimport _ \"licet/cmd/licet\"\n",
			[]string{"node/x_test.go:3: node must not import cmd/licet: cmd is not importable"},
		},
		{
			"errors.Is with an outcome", "node/x.go", `package node

import (
	"errors"

	"licet/licensing"
)

func lost(err error) bool {
	return errors.Is(err, licensing.ErrUnavailable) || isAny(err, licensing.ErrGone, licensing.ErrOutcomeUnknown)
}
`,
			[]string{
				"node/x.go:10: ErrUnavailable may be only the cause of another outcome: use licensing.NotExecuted or " +
					"licensing.ReasonOf",
				"node/x.go:10: ErrOutcomeUnknown may be only the cause of another outcome: use licensing.NotExecuted " +
					"or licensing.ReasonOf",
			},
		},
		{
			"code imports a package for tests", "cmd/licet/x.go", `package main

import (
	_ "licet/internal/build"
	_ "licet/node/store/storetest"
)
`,
			[]string{"cmd/licet/x.go:4: only tests may import internal/build",
				"cmd/licet/x.go:5: only tests may import node/store/storetest"},
		},
		{
			"a dot import", "payment/x.go", "package payment\n\nimport . \"strings\"\n",
			[]string{"payment/x.go:3: dot import of strings: a dot import hides where names come from"},
		},
		{
			"a vague folder name", "internal/utils/x.go", "// Package utils is a bag.\npackage utils\n",
			[]string{"internal/utils/x.go:2: the name \"utils\" does not say what the package contains"},
		},
		{
			"a vague package name", "internal/text/x.go", "// Package common is a bag.\npackage common\n",
			[]string{"internal/text/x.go:2: the name \"common\" does not say what the package contains"},
		},
		{
			"a long file", "payment/x.go", "package payment\n" + strings.Repeat("\n", 400),
			[]string{"payment/x.go:401: has 401 lines; the limit is 400"},
		},
		{
			"a long test", "payment/x_test.go", "package payment\n" + strings.Repeat("\n", 400), nil,
		},
		{
			"wide lines", "payment/x.go", "package payment\n\n" +
				"//" + strings.Repeat("x", 118) + "\n" +
				"//" + strings.Repeat("x", 119) + "\n" +
				"//\t" + strings.Repeat("x", 114) + "\n" +
				"//\t" + strings.Repeat("x", 115) + "\n" +
				"// https://" + strings.Repeat("x", 120) + "\n" +
				"const raw = `a\n" + strings.Repeat("x", 130) + "\n`\n",
			[]string{"payment/x.go:4: has more than 120 columns", "payment/x.go:6: has more than 120 columns"},
		},
		{
			"a wide line with a path", "payment/x.go", "package payment\n\n" +
				"// [" + module + "/" + strings.Repeat("x", 114) + "]\n" +
				"// cmd/" + module + "/" + strings.Repeat("x", 114) + "\n",
			[]string{"payment/x.go:4: has more than 120 columns"},
		},
		{
			"a wide line of a test", "payment/x_test.go", "package payment\n\n//" + strings.Repeat("x", 119) + "\n",
			[]string{"payment/x_test.go:3: has more than 120 columns"},
		},
		{
			"no package comment", "internal/quiet/x.go", "package quiet\n",
			[]string{"internal/quiet/x.go:1: no file of internal/quiet has a package comment"},
		},
		{
			"no package comment among tests", "internal/quiet/x_test.go", "package quiet\n",
			[]string{"internal/quiet/x_test.go:1: no file of internal/quiet has a package comment"},
		},
		{
			"a second package comment", "node/x.go", "// Package node works twice.\npackage node\n",
			[]string{"node/x.go:2: a second package comment: there is one in node/node.go"},
		},
		{
			"a package comment about something else", "internal/quiet/x.go", "// This is quiet.\npackage quiet\n",
			[]string{"internal/quiet/x.go:2: the package comment must begin with \"Package quiet\""},
		},
		{
			"exported without a comment", "payment/x.go",
			`package payment

func F() {}

type T[K any] struct{}

func (t *T[K]) M() {}

func (t *T[K]) Error() string { return "" }

const C = 1

const (
	// E is said, and so is its like.
	E = 2
	D = 1
	G = 2 // G is said.
)

// These are two.
type (
	U int
	// V is said.
	V int
)

// P is said.
type P[A, B any] struct{}

func (P[A, B]) N() {}
`,
			[]string{
				"payment/x.go:3: F is exported and has no comment",
				"payment/x.go:5: T is exported and has no comment",
				"payment/x.go:7: M is exported and has no comment",
				"payment/x.go:11: C is exported and has no comment",
				"payment/x.go:16: D is exported and has no comment",
				"payment/x.go:22: U is exported and has no comment",
				"payment/x.go:30: N is exported and has no comment",
			},
		},
		{
			"func init", "payment/x.go", "package payment\n\nfunc init() {}\n",
			[]string{"payment/x.go:3: func init runs at every import: use a constructor"},
		},
		{
			"variables of mutable types", "payment/x.go", `package payment

import (
	"sync"
	"sync/atomic"
)

type registry struct{ mu *sync.Mutex }

var (
	mu    sync.Mutex
	count atomic.Int64
	once  = sync.OnceFunc(func() {})
	all   = &registry{}
	named = map[string]registry{}
	ticks = make(chan int)
	anon  struct{ sync.RWMutex }
)
`,
			[]string{
				"payment/x.go:11: mu is a package-level variable of a mutable type: keep it in a struct",
				"payment/x.go:12: count is a package-level variable of a mutable type: keep it in a struct",
				"payment/x.go:13: once is a package-level variable of a mutable type: keep it in a struct",
				"payment/x.go:14: all is a package-level variable of a mutable type: keep it in a struct",
				"payment/x.go:15: named is a package-level variable of a mutable type: keep it in a struct",
				"payment/x.go:16: ticks is a package-level variable of a mutable type: keep it in a struct",
				"payment/x.go:17: anon is a package-level variable of a mutable type: keep it in a struct",
			},
		},
		{
			"exported tables", "payment/x.go", `package payment

// Tables.
var (
	ByName = map[string]int{}
	List   []int
	Fixed  = [2]int{}
	Raw    = []byte("a")
)
`,
			[]string{
				"payment/x.go:5: ByName is an exported table that any package could change: return it from a function",
				"payment/x.go:6: List is an exported table that any package could change: return it from a function",
				"payment/x.go:8: Raw is an exported table that any package could change: return it from a function",
			},
		},
		{
			"variables that change", "payment/x.go", `package payment

var (
	count  int
	byName = map[string]int{}
	list   = []int{1}
	whole  = &struct{ n int }{}
)

func change() *int {
	count++
	byName["a"] = 1
	delete(byName, "a")
	list = append(list, 2)
	list[0] += 1
	copy(list[1:], list)
	whole.n, (*whole).n = 1, 2
	for count = range 3 {
	}
	byName := map[string]int{}
	byName["b"] = 2
	return &count
}
`,
			[]string{
				"payment/x.go:11: count is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:12: byName is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:13: byName is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:14: list is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:15: list is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:16: list is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:17: whole is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:17: whole is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:18: count is a package-level variable that changes here: keep it in a struct",
				"payment/x.go:22: the address of the package-level variable count lets other code change it",
			},
		},
		{
			"a test changes a variable", "licensing/x_test.go", "package licensing\n\nfunc swap() { form = nil }\n",
			[]string{"licensing/x_test.go:3: form is a package-level variable that changes here: keep it in a " +
				"struct"},
		},
		{
			"another package's variable", "handlers/x.go",
			`package handlers

import (
	"licet/licensing"

	"github.com/rs/zerolog"
)

func set() { licensing.ErrGone = nil; zerolog.TimeFieldFormat = "" }
`,
			[]string{
				"handlers/x.go:9: licensing.ErrGone is another package's variable that changes here",
				"handlers/x.go:9: zerolog.TimeFieldFormat is another package's variable that changes here",
			},
		},
		{
			"a variable of a package whose name is not in its path", "kv/x.go",
			"package kv\n\nimport \"go.etcd.io/etcd/client/v3\"\n\nfunc set() { clientv3.Limit = 1 }\n",
			[]string{"kv/x.go:5: clientv3.Limit is another package's variable that changes here"},
		},
		{
			"a test changes our variable from outside", "handlers/x_test.go",
			"package handlers_test\n\nimport \"licet/licensing\"\n\nfunc set() { licensing.ErrGone = nil }\n",
			[]string{"handlers/x_test.go:5: licensing.ErrGone is another package's variable that changes here"},
		},
		{
			"exported identifiers mention hidden types", "kv/x.go", `package kv

import (
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

type conn = *clientv3.Client

// Everything shows.
var (
	Err   = clientv3.ErrNoAvailableEndpoints
	After time.Duration = embed.DefaultWait
	Make  = func(embed.Config) {}
	x, Y  = clientv3.New()
)

// A shows it in its result.
func A() (map[string][]*embed.Etcd, error) { return nil, nil }

// B shows it by an alias.
func (s *Store) B(c conn) {}

// C shows it in a field, and hides another.
type C struct {
	hidden embed.Config
	Shown  func(...embed.Config)
}

// D embeds it.
type D struct{ *embed.Etcd }

// E has a method.
type E interface{ M(embed.Config) }

// F is it.
type F clientv3.OpOption

// G is bound by it.
type G[T embed.Config] struct{ t T }

// H hides it.
func (c conn2) H(e embed.Config) {}

type conn2 struct{}
`,
			[]string{
				"kv/x.go:14: Err is exported and mentions a type of go.etcd.io/etcd/client/v3: package kv hides " +
					"these types",
				"kv/x.go:16: Make is exported and mentions a type of go.etcd.io/etcd/server/v3/embed: package kv " +
					"hides these types",
				"kv/x.go:17: Y is exported and mentions a type of go.etcd.io/etcd/client/v3: package kv hides these " +
					"types",
				"kv/x.go:17: clientv3.New may bypass the check whether an etcd member may be asked: use etcd.Client",
				"kv/x.go:21: A is exported and mentions a type of go.etcd.io/etcd/server/v3/embed: package kv hides " +
					"these types",
				"kv/x.go:24: B is exported and mentions a type of go.etcd.io/etcd/client/v3: package kv hides these " +
					"types",
				"kv/x.go:27: C is exported and mentions a type of go.etcd.io/etcd/server/v3/embed: package kv hides " +
					"these types",
				"kv/x.go:33: D is exported and mentions a type of go.etcd.io/etcd/server/v3/embed: package kv hides " +
					"these types",
				"kv/x.go:36: E is exported and mentions a type of go.etcd.io/etcd/server/v3/embed: package kv hides " +
					"these types",
				"kv/x.go:39: F is exported and mentions a type of go.etcd.io/etcd/client/v3: package kv hides these " +
					"types",
				"kv/x.go:42: G is exported and mentions a type of go.etcd.io/etcd/server/v3/embed: package kv hides " +
					"these types",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectViolations(t, map[string]string{c.file: c.text}, c.want)
		})
	}
}
