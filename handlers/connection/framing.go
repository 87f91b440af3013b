package connection

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// framing follows the bytes of a connection on their way to fasthttp, and says
// where they leave the one form in which all servers read them alike. The lines
// of a head end with CR LF. A chunk is a hexadecimal size and CR LF, as many
// bytes, CR LF; the last one is a size of zero and an empty line. fasthttp would
// read over bare line feeds, some of which CheckHead does not get to see, chunk
// extensions, blanks after a size, and trailers.
//
// It is a second reading of what fasthttp reads for itself, so it must not be
// trusted to be the same. It does no more than hold bytes back, it never
// changes, adds or reorders them. And it counts the chunked bodies that it has
// followed to their end: one that fasthttp has seen and framing has not is not
// served. Where it is led astray, then, requests are refused.
type framing struct {
	part part
	left int64 // bytes of the body or the chunk that are still to come
	size int   // digits of the chunk size so far

	// line is the beginning of a header line of which the end has not come
	// yet: as much as can matter, and CR.
	line  [maxFramingLine + 1]byte
	lined int
	cr    bool // what has come of it ends with CR

	// Of the head so far.
	begun   bool // it has a line
	length  int
	chunked bool

	whole int // chunked bodies followed to their end, and not yet taken
}

// part is what the next byte belongs to.
type part int8

const (
	partHead part = iota
	partBody
	partSize // of a chunk
	partSizeLF
	partChunk
	partChunkCR
	partChunkLF
	partEndCR // of the empty line after the last chunk
	partEndLF
)

// maxFramingLine bounds a line of Content-Length or Transfer-Encoding, so that
// framing need not keep more. CheckHead refuses longer ones.
const maxFramingLine = 64

// maxSizeDigits is fasthttp's own bound, on 64 bits.
const maxSizeDigits = 15

// follow takes the next bytes and says how many of them are good. What comes
// after those must not be read.
func (f *framing) follow(p []byte) (good int) {
	for at := 0; at < len(p); {
		switch f.part {
		case partHead:
			n, good := f.head(p[at:])
			at += n
			if !good {
				return at
			}
		case partBody, partChunk:
			n := min(f.left, int64(len(p)-at))
			f.left -= n
			at += int(n)
			if f.left == 0 && f.part == partBody {
				f.part = partHead
			} else if f.left == 0 {
				f.part = partChunkCR
			}
		default:
			if !f.chunkByte(p[at]) {
				return at
			}
			at++
		}
	}
	return len(p)
}

// between tells whether the next byte is the first one of a request.
func (f *framing) between() bool { return f.part == partHead && f.lined == 0 && !f.begun }

// chunkByte takes a byte that frames chunks.
func (f *framing) chunkByte(b byte) (good bool) {
	switch f.part {
	case partSize:
		digit, ok := hexDigit(b)
		switch {
		case ok && f.size < maxSizeDigits:
			f.size++
			f.left = f.left<<4 | digit
			return true
		case ok || f.size == 0:
			return false
		}
		f.part = partSizeLF
		return b == '\r'
	case partSizeLF:
		f.size = 0
		f.part = partChunk
		if f.left == 0 {
			f.part = partEndCR
		}
		return b == '\n'
	case partChunkCR:
		f.part = partChunkLF
		return b == '\r'
	case partChunkLF:
		f.part = partSize
		return b == '\n'
	case partEndCR:
		f.part = partEndLF
		return b == '\r'
	default:
		if b != '\n' {
			return false
		}
		f.part = partHead
		f.whole++
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

// head takes the bytes of one line of a head, or those that there are.
func (f *framing) head(p []byte) (n int, good bool) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		f.lined += copy(f.line[f.lined:], p)
		f.cr = p[len(p)-1] == '\r'
		return len(p), true
	}
	line := p[:end]
	if end > 0 {
		f.cr = line[end-1] == '\r'
	}
	if !f.cr {
		return end, false
	}
	if f.lined > 0 {
		f.lined += copy(f.line[f.lined:], line)
		line = f.line[:f.lined]
	}
	f.headLine(bytes.TrimSuffix(line, []byte("\r")))
	f.lined, f.cr = 0, false
	return end + 1, true
}

// headLine takes a line of a head. The request line is like any header that
// says nothing about the body, and an empty line before it like a whole head
// that does not. What CheckHead refuses needs no care here, since nothing that
// comes after it is served.
func (f *framing) headLine(line []byte) {
	if len(line) == 0 {
		switch {
		case f.chunked:
			f.part = partSize
		case f.length > 0:
			f.part, f.left = partBody, int64(f.length)
		}
		f.begun, f.length, f.chunked = false, 0, false
		return
	}
	f.begun = true
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

// takeChunked tells whether the next chunked body was followed to its end.
func (f *framing) takeChunked() bool {
	if f.whole == 0 {
		return false
	}
	f.whole--
	return true
}
