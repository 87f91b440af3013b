package connection

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
)

// The limits of a request, in bytes.
const (
	uriLimit  = 4 << 10
	headLimit = 12 << 10 // request line and headers

	// ReadBufferSize is fasthttp's read buffer. It has space for a head that exceeds headLimit, so that
	// CheckHead refuses that head with the right code.
	ReadBufferSize = 16 << 10
)

// CheckHead checks the size of a request's head, its framing, and the declared length of its body.
// It returns an error that a client may see, and whether the body comes in chunks.
//
// fasthttp accepts requests that other servers on the way may read in another way, for example with
// both Content-Length and Transfer-Encoding. If two servers see different ends of a request, then one
// of them sees a second request, which an attacker wrote (request smuggling). So CheckHead refuses
// every head with more than one reading. It checks the raw bytes, because the parsed header shows
// only how fasthttp has read them.
//
// CheckHead can't see how chunks are framed. [Conn.Read] checks that.
func CheckHead(h *fasthttp.RequestHeader, bodyLimit int) (chunked bool, err error) {
	uri, raw := h.RequestURI(), h.RawHeaders()
	if len(uri) > uriLimit {
		return false, errURITooLong
	}
	requestLine := len(h.Method()) + len(" ") + len(uri) + len(" ") + len(h.Protocol()) + len("\r\n")
	if requestLine+len(raw) > headLimit {
		return false, errHeadersTooLarge
	}
	// fasthttp treats any other version as HTTP/1.0.
	if version := string(h.Protocol()); version != "HTTP/1.1" && version != "HTTP/1.0" {
		return false, malformed("the HTTP version must be 1.1 or 1.0")
	}
	declared, chunked, err := checkFraming(raw, h.IsHTTP11())
	if err != nil {
		return false, err
	}
	if declared > bodyLimit {
		return false, errBodyTooLarge
	}
	return chunked, nil
}

// checkFraming reads the header lines as the client sent them. It returns the declared length of the
// body, or that the body comes in chunks.
func checkFraming(raw []byte, http11 bool) (length int, chunked bool, err error) {
	var lengths, encodings, types, hosts int
	for len(raw) > 0 {
		line, rest, found := bytes.Cut(raw, []byte("\r\n"))
		if !found || bytes.IndexByte(line, '\n') >= 0 || bytes.IndexByte(line, '\r') >= 0 ||
			bytes.IndexByte(line, 0) >= 0 {
			return 0, false, malformed("each header line must end with CR LF and contain no other CR, LF or NUL")
		}
		raw = rest
		if len(line) == 0 {
			if len(rest) > 0 {
				return 0, false, malformed("the header block has an empty line in it")
			}
			break
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !isToken(name) {
			return 0, false, malformed("a header line must be a name, a colon and a value, on one line")
		}
		value = bytes.Trim(value, " \t")
		framed := lengths + encodings
		switch {
		case bytes.EqualFold(name, []byte(fasthttp.HeaderContentLength)):
			lengths++
			var ok bool
			if length, ok = parseLength(value); !ok {
				return 0, false, malformed("header Content-Length must be a decimal number")
			}
		case bytes.EqualFold(name, []byte(fasthttp.HeaderTransferEncoding)):
			encodings++
			if !http11 || !isChunked(value) {
				return 0, false, malformed("header Transfer-Encoding must be exactly chunked, on HTTP/1.1")
			}
		case bytes.EqualFold(name, []byte(fasthttp.HeaderContentType)):
			types++
		case bytes.EqualFold(name, []byte(fasthttp.HeaderHost)):
			hosts++
		}
		if lengths+encodings > framed && len(line) > maxFramingLine {
			return 0, false, malformed("the lines of Content-Length and Transfer-Encoding must have at most 64 bytes")
		}
	}
	switch {
	case lengths > 1 || encodings > 1 || types > 1 || hosts > 1:
		return 0, false, malformed("headers Content-Length, Transfer-Encoding, Content-Type and Host " +
			"must not be repeated")
	case lengths > 0 && encodings > 0:
		return 0, false, malformed("headers Content-Length and Transfer-Encoding exclude each other: send one")
	case http11 && hosts == 0:
		return 0, false, malformed("header Host is required")
	}
	return length, encodings > 0, nil
}

// parseLength reads the value of Content-Length.
func parseLength(value []byte) (length int, ok bool) {
	length, err := strconv.Atoi(string(value))
	return length, err == nil && value[0] >= '0' && value[0] <= '9'
}

// isChunked reports whether the value of Transfer-Encoding is chunked.
func isChunked(value []byte) bool { return bytes.EqualFold(value, []byte("chunked")) }

// isToken reports whether a header name is a token of RFC 9110, section 5.6.2. In particular, a token
// has no space before the colon.
func isToken(name []byte) bool {
	for _, c := range name {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(name) > 0
}

var tokenBytes = func() (allowed [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		allowed[c] = true
	}
	return allowed
}()

// WantsClose reports whether the client asks to close the connection after the response. fasthttp
// knows only the spelling "close", alone in its header.
func WantsClose(h *fasthttp.RequestHeader) bool {
	for _, value := range h.PeekAll(fasthttp.HeaderConnection) {
		for option := range bytes.SplitSeq(value, []byte(",")) {
			if bytes.EqualFold(bytes.TrimSpace(option), []byte("close")) {
				return true
			}
		}
	}
	return false
}
