package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"testing"
)

// guardPackage is the only package of the service that starts goroutines and recovers panics.
const guardPackage = "metrics/guard"

// unguarded lists the exceptions: the files that may do either without package guard, and why.
var unguarded = map[string]string{
	"cmd/licet/main.go": "the goroutines wait for a second signal and for the end of the parent to end the " +
		"process, and begin before there is a log",
	"kv/embedded/server.go": "etcd panics on a damaged database, and the start returns that as its error",
	"kv/backup/backup.go":   "a timer of the command cancels its context, which can't panic",
	"kv/backup/restore.go":  "etcd panics if it can't open a database, and the command returns that as its error",
}

// checkGoroutines reports code that starts a goroutine without package guard: a panic in it would end
// the node. It also reports recover: package guard counts and logs a panic, without its value.
func checkGoroutines(r *report, f *folder) {
	if f.row == nil || f.row.path == guardPackage || f.row.testOnly || f.row.mayPanic {
		return
	}
	for _, s := range f.code() {
		if _, allowed := unguarded[s.path]; allowed {
			continue
		}
		eachUnguarded(s, func(pos token.Pos, what string) {
			r.at(pos, "%s: use package guard, which counts a panic and keeps the process alive", what)
		})
	}
}

// eachUnguarded finds the places in a file where a goroutine may start, and the calls of recover. It
// reports every selector named Go, such as group.Go, without resolving it: no method of the service
// has that name.
func eachUnguarded(s *source, found func(pos token.Pos, what string)) {
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found(n.Pos(), "a go statement")
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			switch {
			case n.Sel.Name == "Go" || n.Sel.Name == "TryGo":
				found(n.Sel.Pos(), n.Sel.Name+" of a group")
			case n.Sel.Name == "AfterFunc" && of != nil &&
				(s.imports[of.Name] == "time" || s.imports[of.Name] == "context"):
				found(n.Pos(), of.Name+".AfterFunc")
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.Ident); ok && called.Name == "recover" {
				found(n.Pos(), "recover")
			}
		}
		return true
	})
}

// TestEveryExceptionIsNeeded fails for an exception whose file no longer needs it.
func TestEveryExceptionIsNeeded(t *testing.T) {
	folders, err := load(os.DirFS("../.."), &report{fset: token.NewFileSet()})
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, f := range folders {
		for _, s := range f.code() {
			eachUnguarded(s, func(token.Pos, string) { needed[s.path] = true })
		}
	}
	for path, why := range unguarded {
		if !needed[path] {
			t.Errorf("%s needs no exception any more: remove it from unguarded (%s)", path, why)
		}
	}
}

func TestUnguardedGoroutinesAreReported(t *testing.T) {
	const text = `package node

import (
	"context"
	clock "time"
	"sync"
)

func start(ctx context.Context, group *sync.WaitGroup) {
	go start(ctx, group)
	group.Go(func() {})
	f := group.Go
	f(func() { _ = recover() })
	clock.AfterFunc(1, func() {})
	context.AfterFunc(ctx, func() {})
}
`
	var want []string
	for _, c := range []struct {
		line int
		what string
	}{
		{10, "a go statement"}, {11, "Go of a group"}, {12, "Go of a group"}, {13, "recover"}, {14,
			"clock.AfterFunc"}, {15, "context.AfterFunc"},
	} {
		want = append(want, fmt.Sprintf("node/x.go:%d: %s: use package guard, which counts a panic and keeps the "+
			"process alive", c.line, c.what))
	}
	expectViolations(t, map[string]string{"node/x.go": text}, want)
	expectViolations(t, map[string]string{
		"node/x_test.go":              text,
		"kv/backup/restore.go":        "// Package backup restores.\npackage backup\n\nfunc f() { _ = recover() }\n",
		"cmd/licet/internal/cli/x.go": "// Package cli is for people.\npackage cli\n\nfunc f() { go f() }\n",
		"metrics/guard/x.go":          "// Package guard starts goroutines.\npackage guard\n\nfunc f() { go f() }\n",
		"handlers/x.go": "package handlers\n\nfunc f(timer interface{ AfterFunc() }) { " +
			"timer.AfterFunc() }\n",
	}, nil)
}
