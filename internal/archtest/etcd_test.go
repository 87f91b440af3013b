package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// storeRoom is the room that asks etcd, with the rooms below it.
const storeRoom = "kv"

// doors are the ways to etcd that could lead around the check whether its members may be asked, or
// around the count of requests, and the files that may take them. All other requests go through
// etcd.Client; see kv/internal/etcd/barred.go.
var doors = map[string][]string{
	"clientv3.New":  {"kv/internal/etcd/connect.go", "kv/embedded/embeddedtest/embeddedtest.go"}, // only Connect knows how
	"grpc dialing":  nil,                                                                         // nor does anybody connect without etcd's client
	"Connect":       {"kv/internal/etcd/client.go", "kv/backup/defragment.go"},                   // with the check; and without: a command asks each member how it is
	"Dial":          {"kv/internal/etcd/members.go", "kv/backup/defragment.go"},
	"RetryKVClient": {"kv/internal/etcd/client.go"},
	"probing":       {"kv/internal/etcd/members.go", "kv/internal/etcd/barred.go"}, // probes ask members that are barred, too
	"Native":        {"kv/internal/etcd/client.go", "kv/internal/etcd/lease.go", "kv/internal/etcd/watch.go", "kv/backup/backup.go"},
}

func checkDoors(r *report, f *folder) {
	if f.room == nil || f.room.path != storeRoom && !strings.HasPrefix(f.room.path, storeRoom+"/") {
		return
	}
	for _, s := range f.code() {
		eachDoor(s, func(pos token.Pos, door string) {
			if !slices.Contains(doors[door], s.path) {
				r.at(pos, "%s may lead to etcd without the check whether it may be asked: use the store's client", door)
			}
		})
	}
}

func eachDoor(s *source, found func(pos token.Pos, door string)) {
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
			case from == "go.etcd.io/etcd/client/v3" && (name == "New" || name == "NewFromURL" || name == "NewFromURLs" || name == "NewCtxClient"):
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

func TestDoorsToEtcdComplain(t *testing.T) {
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
	const why = " may lead to etcd without the check whether it may be asked: use the store's client"
	complain(t, map[string]string{"kv/x.go": text}, []string{
		"kv/x.go:13: clientv3.New" + why,
		"kv/x.go:14: grpc dialing" + why,
		"kv/x.go:15: Dial" + why,
		"kv/x.go:15: Connect" + why,
		"kv/x.go:16: RetryKVClient" + why,
		"kv/x.go:17: probing" + why,
	})
	complain(t, map[string]string{"kv/x_test.go": text, "cmd/licet/internal/cli/x.go": "// Package cli dials.\npackage cli\n\nfunc f(d interface{ Dial() }) { d.Dial() }\n"}, nil)
}
