package connection

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
)

const bodyLimit = 64 << 10

// acceptedRequest is a request that fasthttp has read and CheckHead has accepted.
type acceptedRequest struct {
	Head, Body string
	ambiguous  bool // the request is not in the strict form
	followed   bool // the body is chunked, and the connection has followed the body to its end
}

// readRequests reads requests as the server does, until CheckHead refuses a request or fasthttp can't read a request.
// sent returns the bytes read from the source so far: the bytes that fasthttp has read for one body show how the body
// was framed.
func readRequests(from io.Reader, sent func() []byte, followed func() bool) (all []acceptedRequest) {
	reader := bufio.NewReaderSize(from, ReadBufferSize)
	position := func() int { return len(sent()) - reader.Buffered() }
	for {
		var request fasthttp.Request
		begin := position()
		if request.Header.Read(reader) != nil {
			return all
		}
		chunked, err := CheckHead(&request.Header, bodyLimit)
		if err != nil {
			return all
		}
		start := position()
		if request.ContinueReadBody(reader, bodyLimit, false) != nil {
			return all
		}
		one := acceptedRequest{
			Head: fmt.Sprintf("%s %s %s", request.Header.Method(), request.Header.RequestURI(),
				request.Header.RawHeaders()),
			Body: string(request.Body()),
		}
		head := sent()[begin:start]
		one.ambiguous = bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n"))
		if chunked {
			one.ambiguous = one.ambiguous || !strict(sent()[start:position()], one.Body)
			one.followed = followed()
		}
		all = append(all, one)
	}
}

// strict reports whether chunks are in the strict form and contain body. It looks at the text as a
// whole, so it has nothing in common with framing.
func strict(chunks []byte, body string) bool {
	for text := string(chunks); ; {
		size, rest, found := strings.Cut(text, "\r\n")
		if !found || size == "" || strings.Trim(size, "0123456789abcdefABCDEF") != "" {
			return false
		}
		var n int
		if _, err := fmt.Sscanf(size, "%x", &n); err != nil || n > len(rest)-2 {
			return false
		}
		if n == 0 {
			return rest == "\r\n" && body == ""
		}
		var whole bool
		if body, whole = strings.CutPrefix(body, rest[:n]); !whole || rest[n:n+2] != "\r\n" {
			return false
		}
		text = rest[n+2:]
	}
}

// pieces is a connection that returns at most size bytes a read.
type pieces struct {
	net.Conn
	rest []byte
	size int
	read []byte
}

func (p *pieces) Read(into []byte) (int, error) {
	n := copy(into[:min(len(into), p.size)], p.rest)
	if n == 0 {
		return 0, io.EOF
	}
	p.read = append(p.read, p.rest[:n]...)
	p.rest = p.rest[n:]
	return n, nil
}

// recorder keeps the bytes read through it.
type recorder struct {
	from io.Reader
	read []byte
}

func (r *recorder) Read(into []byte) (int, error) {
	n, err := r.from.Read(into)
	r.read = append(r.read, into[:n]...)
	return n, err
}

// FuzzFraming reads the same bytes with fasthttp alone and with fasthttp behind a Conn. Behind the
// Conn, fasthttp accepts exactly the same requests up to the first with ambiguous framing, and the
// Conn has followed each chunked body to its end.
func FuzzFraming(f *testing.F) {
	const host = "Host: x\r\n"
	post := func(headers, body string) string { return "POST / HTTP/1.1\r\n" + host + headers + "\r\n" + body }
	chunked := func(body string) string { return post("Transfer-Encoding: chunked\r\n", body) }
	// The body looks like a head to a parser that misses that the body has begun.
	declared := post("Content-Length: 56\r\n", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	bodies := []string{
		"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n000\r\n\r\n", "1\r\n{\r\n0000000000001\r\n}\r\n0\r\n\r\n",
		"a\r\n0123456789\r\n0\r\n\r\n",
		"A\r\n0123456789\r\n0\r\n\r\n", "2;a=b\r\n{}\r\n0\r\n\r\n", "2 ;a\r\n{}\r\n0\r\n\r\n",
		"2;\r\n{}\r\n0\r\n\r\n",
		"2;a=\"\r\n\"\r\n{}\r\n0\r\n\r\n", "2 \r\n{}\r\n0\r\n\r\n", "2\t\r\n{}\r\n0\r\n\r\n",
		"+2\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n",
		"2\n{}\r\n0\r\n\r\n", "2\r\n{}\n0\r\n\r\n", "2\r\n{}\r\n0\n\r\n", "2\r\n{}\r\n0\r\n\n",
		"fffffffffffffff\r\n{}", "ffffffffffffffff\r\n{}", "10001\r\n{}",
		"2\r\n{}\r\n", "2\r\n{}\r\n0\r\n", "2\r\n{}\r\n0\r\nX-A: b\r\n\r\n",
		"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n", "2\r\n{}\r\n0;a\r\n\r\n", "2\r\n{}\r\n0 \r\n\r\n",
	}
	heads := []string{
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "transfer-encoding:CHUNKED\r\n",
		"Transfer-Encoding:\t chunked \t\r\n",
		"Transfer-Encoding:" + strings.Repeat(" ", 99) + "chunked\r\n",
		"X: " + strings.Repeat("y", 99) + "\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding : chunked\r\n", " Transfer-Encoding: chunked\r\n",
		"X: y\r\n Transfer-Encoding: chunked\r\n", "X: y\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Content-Length: 5, 5\r\n",
		"Content-Length: 05\r\n", "Content-Length: +5\r\n",
		"Content-Length: 0\r\n", "Content-Length: 99999\r\n", "Content-Length:" + strings.Repeat(" ", 99) + "5\r\n",
		"Cookie: a\r\nTE: trailers\r\nTrailer: X-A\r\n",
		"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n",
		"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n",
	}
	for i, body := range bodies {
		f.Add([]byte(chunked(body)+declared+chunked(bodies[1])+chunked(body)), uint8(i*5))
		f.Add([]byte(declared+"\r\n"+chunked(bodies[1])+"\n"+chunked(body)+declared), uint8(200-i))
	}
	for i, head := range heads {
		for _, method := range []string{"POST", "GET", "HEAD", "CONNECT"} {
			one := strings.Replace(post(head, bodies[1]), "POST", method, 1)
			f.Add([]byte(one+chunked(bodies[1])+one), uint8(i*3))
			f.Add([]byte(strings.Replace(one, "HTTP/1.1", "HTTP/1.0", 1)+chunked(bodies[1])), uint8(255-i))
		}
	}
	f.Add([]byte("POST / HTTP/1.1\n"+host+"Content-Length: 2\r\n\r\n{}"+chunked(bodies[1])), uint8(1))
	f.Add([]byte("POST / HTTP/1.1\r\n\r\n"+chunked(bodies[1])), uint8(1))
	f.Add([]byte("GET * HTTP/1.0\n\nTransfer-Encoding: chunked\n\r\n\r\n"), uint8(255))
	f.Add([]byte("GET * HTTP/1.0\r\n\n"+chunked(bodies[1])), uint8(0))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), uint8(0))
	f.Fuzz(func(t *testing.T, sent []byte, size uint8) {
		alone := &pieces{rest: sent, size: int(size) + 1}
		want := readRequests(alone, func() []byte { return alone.read }, func() bool { return true })
		for i, one := range want {
			if one.ambiguous {
				want = want[:i]
				break
			}
		}
		never := NewListener(nil, Config{
			MaxBodies: bodyLimit, MaxBody: bodyLimit, MaxChunked: bodyLimit, Refuse: func([]byte) []byte { return nil },
		})
		c := &Conn{Conn: &pieces{rest: sent, size: int(size) + 1}, listener: never}
		through := &recorder{from: c}
		got := readRequests(through, func() []byte { return through.read }, c.TakeChunkedBody)
		if !slices.Equal(want, got) {
			t.Fatalf("fasthttp alone (-) and behind the connection (+):\n%s\nof %q",
				cmp.Diff(want, got, cmp.AllowUnexported(acceptedRequest{})), sent)
		}
		if !bytes.HasPrefix(sent, through.read) {
			t.Fatalf("read %q\nof %q", through.read, sent)
		}
		if n, err := c.Read(make([]byte, 1)); c.ambiguous && (n != 0 || !errors.Is(err, ErrAmbiguousFraming)) {
			t.Fatalf("read on after ambiguous framing: %d, %v", n, err)
		}
	})
}
