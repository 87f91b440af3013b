package main

import (
	"bytes"
	"errors"
	"strconv"
	"time"
)

// The result of an operation is the code in the answer's envelope, 0 for a success, or
// one of these.
const (
	codeBroken = -1 // no answer, or an unreadable one
	codeUnsent = -2 // it was never sent
)

// codeOverloaded is the answer of a node that has too much to do.
const codeOverloaded = 50301

// answerTimeout is how long a client waits for an answer. A node gives up after 4 s.
const answerTimeout = 10 * time.Second

// answer is what the head of an HTTP answer says about the rest.
type answer struct {
	status int
	head   int // where the body begins
	length int // of the body
	closes bool
}

var (
	errNoHTTP   = errors.New("the answer is not HTTP/1.1")
	errNoLength = errors.New("the answer does not tell its length")
	errTooMuch  = errors.New("the answer is longer than it says")
	headEnd     = []byte("\r\n\r\n")
	lineEnd     = []byte("\r\n")
	httpVersion = []byte("HTTP/1.1 ")
)

const maxAnswer = 64 << 20

// parseAnswer parses what has come so far; complete means that nothing is missing. It is no
// HTTP client: it refuses chunked answers, which Licet never sends.
func parseAnswer(b []byte) (a answer, complete bool, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		if len(b) > 16<<10 {
			return a, false, errNoHTTP
		}
		return a, false, nil
	}
	a.head = end + len(headEnd)
	line, rest, _ := bytes.Cut(b[:end+len(lineEnd)], lineEnd)
	if !bytes.HasPrefix(line, httpVersion) || len(line) < len(httpVersion)+3 {
		return a, false, errNoHTTP
	}
	if a.status = digits(line[len(httpVersion) : len(httpVersion)+3]); a.status < 100 {
		return a, false, errNoHTTP
	}
	a.length = -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, lineEnd)
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			a.length = digits(bytes.TrimSpace(value))
		case len(name) == len("Connection") && bytes.EqualFold(name, []byte("Connection")):
			a.closes = bytes.EqualFold(bytes.TrimSpace(value), []byte("close"))
		}
	}
	switch {
	case a.length < 0 || a.length > maxAnswer:
		return a, false, errNoLength
	case len(b) > a.head+a.length:
		return a, false, errTooMuch
	}
	return a, len(b) == a.head+a.length, nil
}

// digits parses a number without sign, and returns -1 for anything else.
func digits(b []byte) int {
	if len(b) == 0 || len(b) > 9 {
		return -1
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

var codePrefix = []byte(`{"code":`)

// envelopeCode returns the code of an answer. A success must say so twice, by its status
// and by its code.
func envelopeCode(status int, body []byte) int {
	rest, found := bytes.CutPrefix(body, codePrefix)
	end := bytes.IndexByte(rest, ',')
	if !found || end < 0 {
		return codeBroken
	}
	code := digits(rest[:end])
	if good := status == 200 || status == 201; code < 0 || good != (code == 0) {
		return codeBroken
	}
	return code
}

// codeName returns what a note calls a code.
func codeName(code int) string {
	switch code {
	case codeBroken:
		return "no good answer"
	case codeUnsent:
		return "never sent"
	}
	return strconv.Itoa(code)
}
