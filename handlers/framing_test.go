package handlers_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAmbiguousFramingIsRefused: the server refuses a request that two servers may read in two ways,
// closes the connection, and serves nothing after the request.
func TestAmbiguousFramingIsRefused(t *testing.T) {
	t.Parallel()
	length := fmt.Sprintf("Content-Length: %d\r\n", len(goodBody))
	for name, sent := range map[string]string{
		"length and chunked": post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") +
			"0\r\n\r\n" + smuggled,
		"chunked and length": post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") +
			"0\r\n\r\n" + smuggled,
		"chunked and length zero": post("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n") +
			"0\r\n\r\n" + smuggled,
		"length twice, equal":     post(length+length) + goodBody + smuggled,
		"length twice, different": post("Content-Length: 0\r\n"+length) + goodBody + smuggled,
		"length as a list":        post("Content-Length: 5, 5\r\n") + "hello" + smuggled,
		"length with a plus":      post("Content-Length: +5\r\n") + "hello" + smuggled,
		"length in hex":           post("Content-Length: 0x5\r\n") + "hello" + smuggled,
		"negative length":         post("Content-Length: -5\r\n") + "hello" + smuggled,
		"empty length":            post("Content-Length:\r\n") + smuggled,
		"huge length":             post("Content-Length: 99999999999999999999\r\n") + smuggled,
		"chunked twice": post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") +
			"0\r\n\r\n" + smuggled,
		"chunked, chunked": post("Transfer-Encoding: chunked, chunked\r\n") + "0\r\n\r\n" +
			smuggled,
		"gzip, chunked":             post("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n" + smuggled,
		"identity":                  post("Transfer-Encoding: identity\r\n") + smuggled,
		"identity and length":       post("Transfer-Encoding: identity\r\n"+length) + goodBody + smuggled,
		"unknown encoding":          post("Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n" + smuggled,
		"quoted chunked":            post("Transfer-Encoding: \"chunked\"\r\n") + "0\r\n\r\n" + smuggled,
		"chunked with vertical tab": post("Transfer-Encoding: \x0bchunked\r\n") + "0\r\n\r\n" + smuggled,
		"chunked on HTTP/1.0": strings.Replace(post("Transfer-Encoding: chunked\r\n"), "HTTP/1.1",
			"HTTP/1.0", 1) + "0\r\n\r\n" + smuggled,
		"both on HTTP/1.0": strings.Replace(post("Transfer-Encoding: chunked\r\nContent-Length: "+
			"5\r\n"), "HTTP/1.1", "HTTP/1.0", 1) + "0\r\n\r\n" + smuggled,
		"space before the colon":        post("Transfer-Encoding : chunked\r\n") + "0\r\n\r\n" + smuggled,
		"space before the length colon": post("Content-Length : 5\r\n") + "hello" + smuggled,
		"tab before the colon":          post("Transfer-Encoding\t: chunked\r\n") + "0\r\n\r\n" + smuggled,
		"space in a name":               post("X Y: z\r\n") + smuggled,
		"folded header":                 post("X-Folded: a\r\n Transfer-Encoding: chunked\r\n") + smuggled,
		"folded value":                  post("Transfer-Encoding:\r\n chunked\r\n") + "0\r\n\r\n" + smuggled,
		"line without a colon":          post("Transfer-Encoding chunked\r\n") + smuggled,
		"empty name":                    post(": chunked\r\n") + smuggled,
		"bare line feed between headers": post("X-A: b\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" +
			smuggled,
		"bare carriage return": post("X-A: b\rTransfer-Encoding: chunked\r\n") + smuggled,
		"null byte":            post("X-A: b\x00c\r\n") + smuggled,
		"head ends with bare line feeds": "POST /v1/licenses/activate HTTP/1.1\nHost: x\nContent-Length: " +
			"5\n\nhello\r\n\r\n" + smuggled,
		"request line ends with bare line feed": "GET /livez HTTP/1.1\nHost: x\r\n\r\n" + smuggled,
		"only bare line feeds, HTTP/1.0":        "GET /livez HTTP/1.0\n\n" + smuggled,
		"bare line feed at the end of the head": "GET /livez HTTP/1.0\r\n\n" + smuggled,
		"bare line feed before everything":      "\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"two content types":                     post("Content-Type: text/plain\r\n"+length) + goodBody + smuggled,
		"two hosts":                             post("Host: y\r\n"+length) + goodBody + smuggled,
		"no host":                               "GET /livez HTTP/1.1\r\nX-A: b\r\n\r\n" + smuggled,
		"no headers":                            "GET /livez HTTP/1.1\r\n\r\n" + smuggled,
		"unknown version":                       "GET /livez HTTP/2.0\r\nHost: x\r\n\r\n" + smuggled,
		"no version":                            "GET /livez\r\nHost: x\r\n\r\n" + smuggled,
		"two spaces in the request line":        "GET  /livez HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"space in the target":                   "GET /livez /x HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"relative target":                       "GET livez HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"control character in target":           "GET /livez\x01 HTTP/1.1\r\nHost: x\r\n\r\n" + smuggled,
		"lower-case garbage":                    "\x16\x03\x01\x02\x00\x01\r\n\r\n",
		"chunk size is no number": post("Transfer-Encoding: chunked\r\n") + "z\r\nhello\r\n0\r\n\r\n" +
			smuggled,
		"chunk size overflows": post("Transfer-Encoding: chunked\r\n") +
			"fffffffffffffffff\r\nhello\r\n0\r\n\r\n" + smuggled,
		"chunk longer than its size": post("Transfer-Encoding: chunked\r\n") + "2\r\nhello\r\n0\r\n\r\n" +
			smuggled,
		"chunk ends with bare line feed": post("Transfer-Encoding: chunked\r\n") + "5\nhello\n0\n\n" + smuggled,
		"line feed in chunk extension": post("Transfer-Encoding: chunked\r\n") +
			"5;a\nb\r\nhello\r\n0\r\n\r\n" + smuggled,
		"length in the trailer": post("Transfer-Encoding: chunked\r\n") +
			"0\r\nContent-Length: 5\r\n\r\n" + smuggled,
		"both, with expectation": post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\nExpect: "+
			"100-continue\r\n") + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			answers, closed := s.exchangeRaw(sent)
			if len(answers) != 1 || !closed {
				t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
			}
			answers[0].must(t, 40000)
			checkCommonHeaders(t, answers[0])
			if log := s.log.String(); strings.Contains(log, "smuggled") || len(s.log.requests(t)) != 1 {
				t.Errorf("not exactly one request was served:\n%s", log)
			}
		})
	}
}

// TestUnusualFramingIsServed: the server serves unusual requests that have only one reading.
func TestUnusualFramingIsServed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(goodBody))
	for name, c := range map[string]struct {
		sent  string
		codes []int
	}{
		"chunked": {post("Transfer-Encoding: chunked\r\n") + chunk(goodBody[:7]) +
			chunk(goodBody[7:]) + "0\r\n\r\n", []int{40001}},
		"chunked in capitals": {post("TRANSFER-ENCODING: CHUNKED\r\n") + chunk(goodBody) + "0\r\n\r\n",
			[]int{40001}},
		"pipelined": {post(length) + goodBody + smuggled + post(length) + goodBody,
			[]int{40001, 0, 40001}},
		"pipelined after chunks": {post("Transfer-Encoding: chunked\r\n") + chunk(goodBody) + "0\r\n\r\n" + smuggled,
			[]int{40001, 0}},
		"GET with a body": {"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + smuggled,
			[]int{0, 0}},
		"expectation":               {post("Expect: 100-continue\r\n"+length) + goodBody, []int{40001}},
		"absolute form":             {"GET http://y/livez HTTP/1.1\r\nHost: x\r\n\r\n", []int{0}},
		"absolute form, no path":    {"GET http://y HTTP/1.1\r\nHost: x\r\n\r\n", []int{40400}},
		"asterisk":                  {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", []int{40400}},
		"authority form":            {"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", []int{40400}},
		"foreign scheme":            {"GET ftp://y/livez HTTP/1.1\r\nHost: x\r\n\r\n", []int{40400}},
		"network path":              {"GET //y/livez?a=:// HTTP/1.1\r\nHost: x\r\n\r\n", []int{40400}},
		"fragment":                  {"GET /livez#x HTTP/1.1\r\nHost: x\r\n\r\n", []int{40400}},
		"unknown method":            {"BREW /livez HTTP/1.1\r\nHost: x\r\n\r\n", []int{40500}},
		"lower-case method":         {"get /livez HTTP/1.1\r\nHost: x\r\n\r\n", []int{40500}},
		"header name in lower case": {"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n", []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers, closed := s.exchangeKept(c.sent)
			if closed {
				t.Error("the connection was closed")
			}
			if len(answers) != len(c.codes) {
				t.Fatalf("%d answers, want %d: %v", len(answers), len(c.codes), answers)
			}
			for i, code := range c.codes {
				answers[i].must(t, code)
				checkCommonHeaders(t, answers[i])
			}
		})
	}
	for _, options := range []string{"close", "Close", "foo, close"} {
		t.Run("connection "+options, func(t *testing.T) {
			answers, closed := s.exchangeRaw("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: " + options + "\r\n\r\n" +
				smuggled)
			if len(answers) != 1 || !closed {
				t.Fatalf("%d answers, closed: %v", len(answers), closed)
			}
		})
	}
	t.Run("HTTP/1.0", func(t *testing.T) {
		answers, closed := s.exchangeRaw("GET /livez HTTP/1.0\r\n\r\n")
		if len(answers) != 1 || !closed {
			t.Fatalf("%d answers, closed: %v", len(answers), closed)
		}
		answers[0].must(t, 0)
	})
}
