package connection

import (
	"bytes"
	"math"

	"github.com/valyala/fasthttp"
)

// framing follows the bytes of a connection on their way to fasthttp, and finds where they leave the
// one form that all servers read alike:
//
//   - The lines of a head end with CR LF.
//   - A chunk is a hexadecimal size, CR LF, that many bytes, and CR LF.
//   - The last chunk is a size of zero, CR LF, and CR LF.
//
// fasthttp would accept bare line feeds (CheckHead does not get to see all of them), chunk
// extensions, blanks after a size, and trailers.
//
// framing parses the same bytes as fasthttp, and the two parsers may disagree. So framing only holds
// bytes back; it never changes, adds or reorders them. It also counts the chunked bodies that it has
// followed to their end: a chunked body that only fasthttp has seen is refused. An error in framing
// therefore refuses requests, and lets none through.
type framing struct {
	state  framingState
	left   int64 // bytes of the body or of the chunk that are still to come
	digits int   // of the chunk size so far

	// line is the start of an incomplete header line: as many bytes as can matter, and CR.
	line      [maxFramingLine + 1]byte
	lineBytes int
	endsCR    bool // the incomplete line ends with CR so far

	// The head so far.
	headBegun bool // the head has a line
	length    int
	chunked   bool

	chunkedBodies int // followed to their end, and not yet taken by takeChunkedBody

	bodyBegun bool // beginBody has reported the current body
}

// framingState says what the next byte belongs to.
type framingState int8

const (
	inHead framingState = iota
	inBody
	inChunkSize
	atChunkSizeLF
	inChunk
	atChunkCR
	atChunkLF
	atEndCR // of the empty line after the last chunk
	atEndLF
)

// maxFramingLine bounds a line of Content-Length or Transfer-Encoding, in bytes, so that framing
// need not keep more. CheckHead refuses longer lines.
const maxFramingLine = 64

// maxSizeDigits bounds the digits of a chunk size. fasthttp has the same bound on 64 bits.
const maxSizeDigits = 15

// scan reads the next bytes and returns how many of them are unambiguous. The caller must not read
// the bytes after those.
func (f *framing) scan(p []byte) (accepted int) {
	for at := 0; at < len(p); {
		switch f.state {
		case inHead:
			n, ok := f.scanHead(p[at:])
			at += n
			if !ok {
				return at
			}
		case inBody, inChunk:
			n := min(f.left, int64(len(p)-at))
			f.left -= n
			at += int(n)
			if f.left == 0 && f.state == inBody {
				f.state = inHead
			} else if f.left == 0 {
				f.state = atChunkCR
			}
		default:
			if !f.scanChunkByte(p[at]) {
				return at
			}
			at++
		}
	}
	return len(p)
}

// atRequestStart reports whether the next byte is the first one of a request.
func (f *framing) atRequestStart() bool { return f.state == inHead && f.lineBytes == 0 && !f.headBegun }

// beginBody reports whether the next byte belongs to a body that beginBody has not reported yet, and how
// many bytes of the body are still to come; of a chunked body that is unknown, and math.MaxInt64.
func (f *framing) beginBody() (left int64, begun bool) {
	if f.state == inHead || f.bodyBegun {
		return 0, false
	}
	f.bodyBegun = true
	if f.state == inBody {
		return f.left, true
	}
	return math.MaxInt64, true
}

// scanChunkByte reads a byte of the framing of chunks. It reports whether the byte is unambiguous.
func (f *framing) scanChunkByte(b byte) bool {
	switch f.state {
	case inChunkSize:
		digit, ok := hexDigit(b)
		switch {
		case ok && f.digits < maxSizeDigits:
			f.digits++
			f.left = f.left<<4 | digit
			return true
		case ok || f.digits == 0:
			return false
		}
		f.state = atChunkSizeLF
		return b == '\r'
	case atChunkSizeLF:
		f.digits = 0
		f.state = inChunk
		if f.left == 0 {
			f.state = atEndCR
		}
		return b == '\n'
	case atChunkCR:
		f.state = atChunkLF
		return b == '\r'
	case atChunkLF:
		f.state = inChunkSize
		return b == '\n'
	case atEndCR:
		f.state = atEndLF
		return b == '\r'
	default:
		if b != '\n' {
			return false
		}
		f.state = inHead
		f.chunkedBodies++
		return true
	}
}

func hexDigit(b byte) (int64, bool) {
	switch {
	case '0' <= b && b <= '9':
		return int64(b - '0'), true
	case 'a' <= b && b <= 'f':
		return int64(b-'a') + 10, true
	case 'A' <= b && b <= 'F':
		return int64(b-'A') + 10, true
	default:
		return 0, false
	}
}

// scanHead reads one line of a head, or as much of the line as has come. It returns the number of
// bytes read, and false for a line that does not end with CR LF.
func (f *framing) scanHead(p []byte) (n int, ok bool) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		f.lineBytes += copy(f.line[f.lineBytes:], p)
		f.endsCR = p[len(p)-1] == '\r'
		return len(p), true
	}
	line := p[:end]
	if end > 0 {
		f.endsCR = line[end-1] == '\r'
	}
	if !f.endsCR {
		return end, false
	}
	if f.lineBytes > 0 {
		f.lineBytes += copy(f.line[f.lineBytes:], line)
		line = f.line[:f.lineBytes]
	}
	f.headLine(bytes.TrimSuffix(line, []byte("\r")))
	f.lineBytes, f.endsCR = 0, false
	return end + 1, true
}

// headLine reads a whole line of a head. For framing, the request line is a header that says nothing
// about the body, and an empty line before the request line is a head without a body. headLine need
// not check what CheckHead refuses: no request after a refused one is served.
func (f *framing) headLine(line []byte) {
	if len(line) == 0 {
		switch {
		case f.chunked:
			f.state = inChunkSize
		case f.length > 0:
			f.state, f.left = inBody, int64(f.length)
		}
		f.headBegun, f.length, f.chunked, f.bodyBegun = false, 0, false, false
		return
	}
	f.headBegun = true
	if first := line[0] | 0x20; first != 'c' && first != 't' {
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte(fasthttp.HeaderContentLength)):
		f.length, _ = parseLength(value)
	case bytes.EqualFold(name, []byte(fasthttp.HeaderTransferEncoding)):
		f.chunked = isChunked(value)
	}
}

// takeChunkedBody reports whether framing has followed the next chunked body to its end. It counts
// each body once.
func (f *framing) takeChunkedBody() bool {
	if f.chunkedBodies == 0 {
		return false
	}
	f.chunkedBodies--
	return true
}
