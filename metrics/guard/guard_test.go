package guard

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"licet/metrics"
)

// secret stands for what a client sent.
type secret struct{ key string }

func newGuard(t *testing.T) (g *Guard, log *bytes.Buffer, count func() float64) {
	t.Helper()
	m := metrics.New(prometheus.NewRegistry(), "test", "", "")
	log = &bytes.Buffer{}
	return New(m, zerolog.New(log)), log, func() float64 { return testutil.ToFloat64(m.Panics) }
}

// TestStart: a panic in a goroutine is counted, the log says where it came from and nothing of
// its value, and everything that waits for the goroutine is released.
func TestStart(t *testing.T) {
	t.Parallel()
	g, log, count := newGuard(t)
	var group sync.WaitGroup
	released := make(chan string, 3)
	g.StartIn(&group, "in a group", func() {
		defer func() { released <- "deferred" }()
		panic(secret{"lk_live_canary"})
	}, func() {
		released <- "first"
		panic("lk_live_canary")
	}, func() { released <- "second" })
	group.Wait()
	for _, want := range []string{"deferred", "first", "second"} {
		if got := <-released; got != want {
			t.Errorf("%s was released where %s should be", got, want)
		}
	}
	if got := count(); got != 2 {
		t.Errorf("%v panics were counted, not 2", got)
	}
	text := log.String()
	for _, want := range []string{`"where":"in a group"`, `"type":"guard.secret"`, "guard_test.go"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s: %s", want, text)
		}
	}
	if strings.Contains(text, "canary") {
		t.Errorf("the log has the value of a panic: %s", text)
	}
	done := make(chan struct{})
	g.Start("alone", func() { var missing *secret; _ = missing.key }, func() { close(done) })
	<-done
	if !strings.Contains(log.String(), "nil pointer dereference") {
		t.Errorf("the log lacks the runtime's error: %s", log)
	}
	g.Start("alone", func() { released <- "returned" }, func() { released <- "panicked" })
	if got := <-released; got != "returned" {
		t.Errorf("work that returns has %s", got)
	}
	New(nil, zerolog.Nop()).Do("without metrics", func() { panic("a bug") })
}

// TestKeep: work that panics begins again, later each time, until it returns or its context ends.
func TestKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _, count := newGuard(t)
		began, tries := time.Now(), 0
		g.Keep(t.Context(), "a loop", func() {
			if tries++; tries < 4 {
				panic("a bug")
			}
		})
		if took := time.Since(began); tries != 4 || took != 7*firstPause || count() != 3 {
			t.Errorf("%d tries in %v, %v panics", tries, took, count())
		}
		ctx, cancel := context.WithCancel(t.Context())
		began = time.Now()
		g.Keep(ctx, "a loop", func() { cancel(); panic("a bug") })
		if took := time.Since(began); took != 0 {
			t.Errorf("a loop whose context has ended went on for %v", took)
		}
	})
}
