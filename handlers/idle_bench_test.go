package handlers_test

import (
	"bufio"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

// BenchmarkIdleConnection is the memory that a connection takes which has made
// one request and is kept: heap and stack, of which the client's end is a part.
func BenchmarkIdleConnection(b *testing.B) {
	const connections = 500
	held := func() float64 {
		runtime.GC()
		runtime.GC() // a pool forgets in two
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	for b.Loop() {
		// A new one each time, since a server keeps goroutines for a while.
		server, request := benchServer(b, nil)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		before := held()
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
		b.ReportMetric((held()-before)/connections, "B/connection")
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
