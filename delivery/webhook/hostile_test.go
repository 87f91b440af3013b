package webhook_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http2"

	"licet/delivery/webhook"
)

// soon is the timeout of attempts that are meant to time out. The tests check that the attempts end at all.
const soon = time.Second

// raw is a receiver without an HTTP server: it gets each connection after the request's header has arrived.
func raw(t testing.TB, serve func(net.Conn)) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			lines := bufio.NewReader(conn)
			for line := "-"; err == nil && strings.TrimSpace(line) != ""; {
				line, err = lines.ReadString('\n')
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return "http://" + listener.Addr().String() + "/"
}

// drip writes a byte now and then until the sender closes the connection.
func drip(conn net.Conn, text string) (written int) {
	for i := 0; ; i++ {
		n, err := conn.Write([]byte{text[i%len(text)]})
		if written += n; err != nil {
			return written
		}
		time.Sleep(soon / 50) // the pace of the bytes
	}
}

func TestAttemptsEndInTime(t *testing.T) {
	f := func(what string, serve func(net.Conn), want webhook.Attempt) {
		t.Helper()
		s := newSender(t, nil, within(soon))
		got := send(t, s, raw(t, serve))
		if got.Outcome != want.Outcome || got.Failure != want.Failure || got.Status != want.Status ||
			got.Duration < soon {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	timeout := webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureTimeout}
	f("silence", func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, timeout)
	f("a header that drips", func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX: ")
		drip(conn, "a")
	}, timeout)
	f("a status line that drips", func(conn net.Conn) { drip(conn, "HTTP/1.1 200 OK, and a lot to say about it ") },
		timeout)
	f("interim answers that drip", func(conn net.Conn) { drip(conn, "HTTP/1.1 103 Early Hints\r\n\r\n") }, timeout)
	// A 2xx counts, whatever follows the header.
	f("a body that drips", func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
		drip(conn, "a")
	}, webhook.Attempt{Outcome: webhook.Delivered, Status: 200})
	f("a body that drips in chunks", func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n")
		drip(conn, "1\r\na\r\n")
	}, webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureStatus, Status: 503})
}

// TestStreamsEndInTime is TestAttemptsEndInTime over HTTP/2.
func TestStreamsEndInTime(t *testing.T) {
	f := func(what string, handler http.HandlerFunc, want webhook.Attempt) {
		t.Helper()
		server := receiver(t, handler)
		got := send(t, newSender(t, server, within(soon)), server.URL)
		if got.Outcome != want.Outcome || got.Failure != want.Failure || got.Status != want.Status ||
			got.Duration < soon {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	f("silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureTimeout})
	f("a body that does not end", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, webhook.Attempt{Outcome: webhook.Delivered, Status: 200})
}

// TestASlowEndpointDelaysNoOther: while many attempts wait for one endpoint, attempts to another endpoint of the same
// host succeed.
func TestASlowEndpointDelaysNoOther(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		const many = 50
		waiting, release := make(chan struct{}, many), make(chan struct{})
		server := start(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				waiting <- struct{}{}
				<-release
			}
		}, http2)
		s := newSender(t, server)
		send(t, s, server.URL+"/first") // so that all attempts share one HTTP/2 connection
		var group sync.WaitGroup
		early := make(chan webhook.Attempt, many) // attempts that end before the endpoint responds
		for range many {
			group.Go(func() {
				got, err := s.Send(t.Context(), message(t, server.URL+"/slow"))
				if err != nil || got.Outcome != webhook.Delivered {
					early <- got
				}
			})
		}
		for range many {
			select {
			case <-waiting:
			case got := <-early:
				close(release)
				t.Fatalf("slow: got %+v", got)
			}
		}
		if got := send(t, s, server.URL+"/quick"); got.Outcome != webhook.Delivered {
			t.Errorf("quick: got %+v", got)
		}
		close(release)
		group.Wait()
		if len(early) > 0 {
			t.Errorf("slow: got %+v", <-early)
		}
	}
}

// TestHandshakesEndInTime: the listener never takes part in the TLS handshake.
func TestHandshakesEndInTime(t *testing.T) {
	listener := newTrap(t, "127.0.0.1:0")
	got := send(t, newSender(t, nil, within(soon)), "https://"+listener.Addr().String()+"/")
	if got.Failure != webhook.FailureTimeout || got.Duration < soon {
		t.Errorf("got %+v", got)
	}
}

// TestSwitchingProtocols: an attempt ends after 101, although no timeout applies to the connection from then on.
func TestSwitchingProtocols(t *testing.T) {
	url := raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: drip\r\n\r\n")
		drip(conn, "a")
	})
	if got := send(t, newSender(t, nil, within(soon)), url); got.Outcome != webhook.Retry || got.Status != 101 ||
		got.Failure != webhook.FailureStatus {
		t.Errorf("got %+v", got)
	}
}

// TestHugeAnswersCostLittle: the receiver announces a terabyte and sends as fast as it can. The sender reads little:
// the receiver could write only that and some buffers of the kernel.
func TestHugeAnswersCostLittle(t *testing.T) {
	const systemBuffers = 32 << 20
	written := make(chan int, 1)
	f := func(what, header, block string, want webhook.Attempt) {
		t.Helper()
		url := raw(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, header)
			all := 0
			for {
				n, err := io.WriteString(conn, block)
				if all += n; err != nil {
					written <- all
					return
				}
			}
		})
		s := newSender(t, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := send(t, s, url)
		runtime.ReadMemStats(&after)
		if got.Outcome != want.Outcome || got.Failure != want.Failure || got.Status != want.Status ||
			len(got.Answer) > 1024 {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
		if all := <-written; all > systemBuffers {
			t.Errorf("%s: %d bytes were taken", what, all)
		}
		// This counts every allocation, the receiver's too.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
			t.Errorf("%s: %d bytes were allocated", what, grown)
		}
	}
	block := strings.Repeat("a", 64<<10)
	f("a length", "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n", block,
		webhook.Attempt{Outcome: webhook.Delivered, Status: 200})
	f("no length", "HTTP/1.1 500 No\r\n\r\n", block,
		webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureStatus, Status: 500})
	f("chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(block), block),
		webhook.Attempt{Outcome: webhook.Delivered, Status: 200})
	f("a header line", "HTTP/1.1 200 OK\r\nX: ", block,
		webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureProtocol})
	f("header lines", "HTTP/1.1 200 OK\r\n", "X: "+block[:1000]+"\r\n",
		webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureProtocol})
	f("interim answers", "", "HTTP/1.1 103 Early Hints\r\nX: "+block[:1000]+"\r\n\r\n",
		webhook.Attempt{Outcome: webhook.Retry, Failure: webhook.FailureProtocol})
	f("trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", "X: "+block+"\r\n",
		webhook.Attempt{Outcome: webhook.Delivered, Status: 200})
}

// TestHugeAnswersOverHTTP2: the stream ends and the connection stays.
func TestHugeAnswersOverHTTP2(t *testing.T) {
	written := make(chan int, 2)
	block := []byte(strings.Repeat("a", 64<<10))
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		all := 0
		for {
			n, err := w.Write(block)
			if all += n; err != nil {
				written <- all
				return
			}
		}
	})
	s := newSender(t, server)
	for range 2 {
		if got := send(t, s, server.URL); got.Outcome != webhook.Delivered || got.Answer != string(block[:1024]) {
			t.Errorf("got %+v", got)
		}
		if all := <-written; all > 1<<20 {
			t.Errorf("%d bytes were taken", all)
		}
	}
}

// TestUnreadBytesAreBounded checks how many unread bytes a sender accepts on one HTTP/2 stream.
func TestUnreadBytesAreBounded(t *testing.T) {
	server := receiver(t, nil) // for its certificate
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: server.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	window := make(chan uint32, 1)
	go func() {
		defer close(window)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		frame, err := http2.NewFramer(io.Discard, conn).ReadFrame()
		if settings, is := frame.(*http2.SettingsFrame); err == nil && is {
			if value, set := settings.Value(http2.SettingInitialWindowSize); set {
				window <- value
			}
		}
	}()
	s := newSender(t, server)
	if got := send(t, s, "https://"+listener.Addr().String()+"/"); got.Failure != webhook.FailureConnectionLost {
		t.Errorf("got %+v", got)
	}
	_ = listener.Close()
	if got := <-window; got != 64<<10 {
		t.Errorf("%d bytes may be sent ahead, want 64 KiB", got)
	}
}

func TestInvalidAnswers(t *testing.T) {
	f := func(what, answer string, want webhook.Failure) {
		t.Helper()
		url := raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		if got := send(t, newSender(t, nil), url); got.Outcome != webhook.Retry || got.Failure != want ||
			got.Status != 0 || got.Err == nil {
			t.Errorf("%s: got %+v, want %s", what, got, want)
		}
	}
	f("nothing", "", webhook.FailureConnectionLost)
	f("half a header", "HTTP/1.1 200 OK\r\nX:", webhook.FailureConnectionLost)
	f("no HTTP", "SSH-2.0-OpenSSH_9.6\r\n\r\n", webhook.FailureProtocol)
	f("no status", "HTTP/1.1 OK\r\n\r\n", webhook.FailureProtocol)
	f("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", webhook.FailureProtocol)
	f("a line without a name", "HTTP/1.1 200 OK\r\n: a\r\n\r\n", webhook.FailureProtocol)
}

// TestAnswersAreKeptAsText: a body is cut to 1 KiB of valid UTF-8.
func TestAnswersAreKeptAsText(t *testing.T) {
	f := func(what, answer, want string) {
		t.Helper()
		server := startPlain(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, answer)
		})
		if got := send(t, newSender(t, nil), server.URL).Answer; got != want || len(got) > 1024 ||
			!utf8.ValidString(got) {
			t.Errorf("%s: %d bytes %.20q…, want %d bytes %.20q…", what, len(got), got, len(want), want)
		}
	}
	long := strings.Repeat("a", 1023)
	f("nothing", "", "")
	f("a word", "no such hook", "no such hook")
	f("1 KiB", long+"b", long+"b")
	f("more", long+"bc", long+"b")
	f("a letter of two bytes at the end", long+"ä", long)
	f("a letter of four bytes at the end", long[1:]+"𝄞", long[1:])
	f("bad UTF-8", "a\xff\xfeb", "a\uFFFDb")
	f("nothing but bad UTF-8", strings.Repeat("\xffa", 512), strings.Repeat("\uFFFDa", 256))
	f("far more than is read", strings.Repeat("a", 1<<20), long+"a")
}
