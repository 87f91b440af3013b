package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// etcdPackage is the package that sends requests to etcd, along with the packages below it.
const etcdPackage = "kv"

// etcdAccess lists the functions and types that could bypass the check whether an etcd member may be
// asked, or the count of requests, and the files that may use them. All other requests use
// etcd.Client; see kv/internal/etcd/barred.go.
var etcdAccess = map[string][]string{
	"clientv3.New": {"kv/internal/etcd/connect.go", "kv/embedded/embeddedtest/embeddedtest.go"}, // Connect
	// all connections use etcd's client
	"grpc dialing": nil,
	// with the check; and without it: a command that asks each member
	"Connect": {"kv/internal/etcd/client.go", "kv/backup/defragment.go", "kv/survey/survey.go",
		"kv/users/users.go"},
	"Dial": {"kv/internal/etcd/members.go", "kv/backup/defragment.go", "kv/survey/member.go",
		"kv/users/enable.go"},
	"RetryKVClient": {"kv/internal/etcd/client.go"},
	"probing":       {"kv/internal/etcd/members.go", "kv/internal/etcd/barred.go"}, // probes also ask barred members
	"Native": {"kv/internal/etcd/client.go", "kv/internal/etcd/lease.go", "kv/internal/etcd/watch.go",
		"kv/backup/backup.go"},
}

func checkEtcdAccess(r *report, f *folder) {
	if f.row == nil || f.row.path != etcdPackage && !strings.HasPrefix(f.row.path, etcdPackage+"/") {
		return
	}
	for _, s := range f.code() {
		eachEtcdAccess(s, func(pos token.Pos, access string) {
			if !slices.Contains(etcdAccess[access], s.path) {
				r.at(pos, "%s may bypass the check whether an etcd member may be asked: use etcd.Client", access)
			}
		})
	}
}

func eachEtcdAccess(s *source, found func(pos token.Pos, access string)) {
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			from := ""
			if of != nil {
				from = s.imports[of.Name]
			}
			name := n.Sel.Name
			switch {
			case from == "go.etcd.io/etcd/client/v3" &&
				(name == "New" || name == "NewFromURL" || name == "NewFromURLs" || name == "NewCtxClient"):
				found(n.Pos(), "clientv3.New")
			case from == "google.golang.org/grpc" && (name == "NewClient" || name == "Dial" || name == "DialContext"):
				found(n.Pos(), "grpc dialing")
			case name == "Dial" || name == "RetryKVClient" || name == "Connect" || name == "Native":
				found(n.Pos(), name)
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.Ident); ok && called.Name == "Connect" {
				found(n.Pos(), "Connect")
			}
		case *ast.CompositeLit:
			if typ, ok := n.Type.(*ast.Ident); ok && typ.Name == "probing" {
				found(n.Pos(), "probing")
			}
		}
		return true
	})
}

func TestUncheckedEtcdAccessIsReported(t *testing.T) {
	const text = `package kv

import (
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

type probing struct{}

type etcd interface{ Connect() *clientv3.Client }

func around(e etcd) {
	_, _ = clientv3.New(clientv3.Config{})
	_, _ = grpc.NewClient("")
	_, _ = e.Connect().Dial("")
	_ = clientv3.RetryKVClient(nil)
	_ = probing{}
}
`
	const why = " may bypass the check whether an etcd member may be asked: use etcd.Client"
	expectViolations(t, map[string]string{"kv/x.go": text}, []string{
		"kv/x.go:13: clientv3.New" + why,
		"kv/x.go:14: grpc dialing" + why,
		"kv/x.go:15: Dial" + why,
		"kv/x.go:15: Connect" + why,
		"kv/x.go:16: RetryKVClient" + why,
		"kv/x.go:17: probing" + why,
	})
	expectViolations(t, map[string]string{"kv/x_test.go": text, "cmd/licet/internal/cli/x.go": "// Package cli " +
		"dials.\npackage cli\n\nfunc f(d interface{ Dial() }) { d.Dial() }\n"}, nil)
}
