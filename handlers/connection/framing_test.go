package connection

import "testing"

// TestAtRequestStart: a connection may answer requests by itself, so framing must know to the byte
// where a request starts. The start of a line is not enough.
func TestAtRequestStart(t *testing.T) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\r\n\r",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n",
	} {
		var f framing
		for again := range 2 {
			for i := range len(text) {
				if atStart := f.atRequestStart(); atStart != (i == 0) {
					t.Errorf("%q, time %d: before byte %d: %v", text, again, i, atStart)
				}
				if f.scan([]byte(text[i:i+1])) != 1 {
					t.Fatalf("%q: byte %d is refused", text, i)
				}
			}
		}
		if !f.atRequestStart() {
			t.Errorf("%q: not at the start of a request after its end", text)
		}
	}
}
