package connection

import "testing"

// A connection may answer what comes between two requests by itself, so where
// that is must be known to the byte: the beginning of a line is not enough.
func TestBetweenRequests(t *testing.T) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\r\n\r",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n",
	} {
		var f framing
		for again := range 2 {
			for i := range len(text) {
				if between := f.between(); between != (i == 0) {
					t.Errorf("%q, time %d: before byte %d: %v", text, again, i, between)
				}
				if f.follow([]byte(text[i:i+1])) != 1 {
					t.Fatalf("%q: byte %d is not good", text, i)
				}
			}
		}
		if !f.between() {
			t.Errorf("%q: not between requests after its end", text)
		}
	}
}
