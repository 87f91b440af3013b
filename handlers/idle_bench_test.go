package handlers_test

import (
	"bufio"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

// BenchmarkIdleConnection measures the memory of a kept connection after one request: heap and stack,
// the client's side included.
func BenchmarkIdleConnection(b *testing.B) {
	const connections = 500
	inUse := func() float64 {
		runtime.GC()
		runtime.GC() // sync.Pool drops its contents after two collections
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	for b.Loop() {
		// A new server each time, because a server keeps its goroutines for a while.
		server, request := benchServer(b, nil)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		before := inUse()
		var open []net.Conn
		for range connections {
			c, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			open = append(open, c)
			if _, err := c.Write([]byte(request)); err != nil {
				b.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				b.Fatal(response, err)
			}
			response.Body.Close()
		}
		time.Sleep(10 * time.Millisecond)
		b.ReportMetric((inUse()-before)/connections, "B/connection")
		for _, c := range open {
			c.Close()
		}
		if err := server.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := <-served; err != nil {
			b.Fatal(err)
		}
	}
}
