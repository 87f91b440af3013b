//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeNode answers request number i, which is in its path, by what answer says.
func fakeNode(t *testing.T, answer func(i int) (status int, body string)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			t.Error(err)
		}
		status, body := answer(i)
		if i%7 == 3 {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func numbered(i int) []byte { return fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i) }

func openFleet(t *testing.T, address string, connections int) *fleet {
	t.Helper()
	f := newFleet([]string{address}, connections, numbered)
	t.Cleanup(f.close)
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFleetMakesEachOperationOnce(t *testing.T) {
	const count = 500
	var made [count]atomic.Int32
	f := openFleet(t, fakeNode(t, func(i int) (int, string) {
		made[i].Add(1)
		if i%10 == 0 {
			return 503, `{"code":50301,"message":"overloaded"}`
		}
		return 200, `{"code":0,"data":"` + strings.Repeat("x", 20*i) + `"}`
	}), 8)
	o := f.closedLoop(t.Context(), count, 0)
	if o.made != count || o.ok != 450 || o.failed[codeOverloaded] != 50 || o.failures() != 50 {
		t.Errorf("got %+v", o)
	}
	for i := range made {
		if n := made[i].Load(); n != 1 {
			t.Errorf("request %d came %d times", i, n)
		}
	}
	if o := f.closedLoop(t.Context(), 1, 0); o.ok+o.failures() != 1 {
		t.Errorf("used again: %+v", o)
	}
}

func TestFleetEndsInTime(t *testing.T) {
	f := openFleet(t, fakeNode(t, func(int) (int, string) { return 200, `{"code":0,"data":1}` }), 4)
	o := f.closedLoop(t.Context(), 0, 50*time.Millisecond)
	if o.ok == 0 || o.failures() > 0 || o.elapsed < 50*time.Millisecond {
		t.Errorf("got %+v", o)
	}
}

// As with workers: waiting operations must look slow, and operations that were never sent must be reported.
func TestFleetOmitsNothing(t *testing.T) {
	f := openFleet(t, fakeNode(t, func(int) (int, string) {
		time.Sleep(20 * time.Millisecond)
		return 200, `{"code":0,"data":1}`
	}), 1)
	o := f.openLoop(t.Context(), arrivals{rate: 500, span: 300 * time.Millisecond, keep: true})
	came := o.made + o.failed[codeUnsent]
	if came < 75 || came > 250 || o.made > 16 || o.failed[codeUnsent] < came/2 {
		t.Errorf("%d came: %+v", came, o)
	}
	if len(o.waits()) != came {
		t.Errorf("%d of %d that came are in the waits", len(o.waits()), came)
	}
	if p := percentile(o.latencies, 0.9); p < 150*time.Millisecond {
		t.Errorf("the 90th percentile is %v: waiting was left out", p)
	}
}

func TestFleetMakesAllArrivals(t *testing.T) {
	f := openFleet(t, fakeNode(t, func(int) (int, string) { return 200, `{"code":0,"data":1}` }), 50)
	o := f.openLoop(t.Context(), arrivals{rate: 1000, span: 200 * time.Millisecond, keep: true})
	if o.made == 0 || o.made > 350 || len(o.latencies) != o.made || o.failures() != o.failed[codeUnsent] {
		t.Errorf("got %+v", o)
	}
}

// A node that goes away, and a node that closes idle connections.
func TestFleetCountsBrokenConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			tcp, err := listener.Accept()
			if err != nil {
				return
			}
			_ = tcp.Close()
		}
	}()
	f := openFleet(t, listener.Addr().String(), 3)
	if o := f.closedLoop(t.Context(), 20, 0); o.made != 20 || o.failed[codeBroken] != 20 {
		t.Errorf("got %+v", o)
	}
	_ = listener.Close()
	if o := f.closedLoop(t.Context(), 20, 0); o.made != 20 || o.failed[codeBroken] != 20 {
		t.Errorf("without a server: %+v", o)
	}
}

// The end of its context ends a load whose length is not known before.
func TestFleetEndsItsSpanWithTheContext(t *testing.T) {
	f := openFleet(t, fakeNode(t, func(int) (int, string) { return 200, `{"code":0,"data":1}` }), 50)
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	o := f.openLoop(ctx, arrivals{rate: 500, span: time.Hour, keep: true})
	if o.elapsed < 150*time.Millisecond || o.elapsed > 10*time.Second {
		t.Errorf("it counts as %v", o.elapsed)
	}
	if o.ok == 0 || o.ok > o.made || len(o.latencies) != o.made || len(o.waits()) != o.made+o.failed[codeUnsent] {
		t.Errorf("got %+v", o)
	}
}
