package handlers_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAmbiguousChunksAreRefused: chunks have one form that all servers read alike. The server refuses
// any other form and closes the connection. It serves neither a request that the body hides nor a
// request after the body.
func TestAmbiguousChunksAreRefused(t *testing.T) {
	t.Parallel()
	size := fmt.Sprintf("%x", len(goodBody))
	const end = "0\r\n\r\n"
	for name, body := range map[string]string{
		"extension":                       size + ";a=b\r\n" + goodBody + "\r\n" + end,
		"extension after a blank":         size + " ;x\r\n" + goodBody + "\r\n" + end,
		"extension before a blank":        size + "; x\r\n" + goodBody + "\r\n" + end,
		"empty extension":                 size + ";\r\n" + goodBody + "\r\n" + end,
		"extension, quoted":               size + ";a=\"b\"\r\n" + goodBody + "\r\n" + end,
		"extension, quoted CR LF":         size + ";a=\"\r\n\"\r\n" + goodBody + "\r\n" + end,
		"extension, quoted request":       size + ";a=\"\r\n\r\n" + smuggled + "\"\r\n" + goodBody + "\r\n" + end,
		"extension, bare line feed":       size + ";a\nb\r\n" + goodBody + "\r\n" + end,
		"extension, bare carriage return": size + ";a\rb\r\n" + goodBody + "\r\n" + end,
		"extension of the last chunk":     chunk(goodBody) + "0;a=b\r\n\r\n",
		"extension of the second chunk": chunk(goodBody[:7]) + fmt.Sprintf("%x;a\r\n",
			len(goodBody)-7) + goodBody[7:] + "\r\n" + end,
		"extension far beyond the buffer": size + ";" + strings.Repeat("a",
			100<<10) + "\r\n" + goodBody + "\r\n" + end,
		"space after the size":             size + " \r\n" + goodBody + "\r\n" + end,
		"tab after the size":               size + "\t\r\n" + goodBody + "\r\n" + end,
		"space after the last size":        chunk(goodBody) + "0 \r\n\r\n",
		"space before the size":            " " + size + "\r\n" + goodBody + "\r\n" + end,
		"plus":                             "+" + size + "\r\n" + goodBody + "\r\n" + end,
		"minus":                            "-" + size + "\r\n" + goodBody + "\r\n" + end,
		"0x":                               "0x" + size + "\r\n" + goodBody + "\r\n" + end,
		"underscore":                       "0_" + size + "\r\n" + goodBody + "\r\n" + end,
		"no size":                          "\r\n" + goodBody + "\r\n" + end,
		"sixteen digits":                   fmt.Sprintf("%016x\r\n", len(goodBody)) + goodBody + "\r\n" + end,
		"size overflows":                   "fffffffffffffffff\r\n" + goodBody + "\r\n" + end,
		"size wraps around":                "1" + fmt.Sprintf("%016x\r\n", len(goodBody)) + goodBody + "\r\n" + end,
		"bare line feed after the size":    size + "\n" + goodBody + "\r\n" + end,
		"bare carriage return after size":  size + "\r" + goodBody + "\r\n" + end,
		"two carriage returns after size":  size + "\r\r\n" + goodBody + "\r\n" + end,
		"bare line feed after the chunk":   size + "\r\n" + goodBody + "\n" + end,
		"nothing after the chunk":          size + "\r\n" + goodBody + end,
		"bare line feed after last size":   chunk(goodBody) + "0\n\r\n",
		"bare line feed at the end":        chunk(goodBody) + "0\r\n\n",
		"bare carriage return at the end":  chunk(goodBody) + "0\r\n\r",
		"only bare line feeds":             size + "\n" + goodBody + "\n0\n\n",
		"chunk longer than its size":       "2\r\n" + goodBody + "\r\n" + end,
		"chunk shorter than its size":      fmt.Sprintf("%x\r\n", len(goodBody)+2) + goodBody + "\r\n" + end,
		"request in place of last chunk":   chunk(goodBody),
		"request in place of the end":      chunk(goodBody) + "0\r\n",
		"trailer":                          chunk(goodBody) + "0\r\nX-Sum: 1\r\n\r\n",
		"trailer that frames":              chunk(goodBody) + "0\r\nContent-Length: 5\r\n\r\n",
		"trailer with a bare line feed":    chunk(goodBody) + "0\r\nX-Sum: 1\n\r\n",
		"trailer, folded":                  chunk(goodBody) + "0\r\n X-Sum: 1\r\n\r\n",
		"trailer without a colon":          chunk(goodBody) + "0\r\nX\r\n\r\n",
		"null byte after the size":         size + "\x00\r\n" + goodBody + "\r\n" + end,
		"hidden request, size has a blank": fmt.Sprintf("%x \r\n", len(smuggled)) + smuggled + "\r\n" + end,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			for _, headers := range []string{"", "Expect: 100-continue\r\n"} {
				answers, closed := s.exchangeRaw(post("Transfer-Encoding: chunked\r\n"+headers) + body + smuggled)
				if len(answers) != 1 || !closed {
					t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
				}
				answers[0].must(t, 40000)
				checkCommonHeaders(t, answers[0])
			}
			if log := s.log.String(); strings.Contains(log, "smuggled") || len(s.log.requests(t)) != 2 {
				t.Errorf("not exactly two requests were served:\n%s", log)
			}
		})
	}
}

// TestAmbiguousChunksComeLate: the server serves, in order, the requests before an ambiguous chunk on
// the same connection.
func TestAmbiguousChunksComeLate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	chunked := post("Transfer-Encoding: chunked\r\n")
	strict := chunked + chunk(goodBody) + "0\r\n\r\n"
	declared := post(fmt.Sprintf("Content-Length: %d\r\n", len(goodBody))) + goodBody
	ambiguous := chunked + "2;a\r\n{}\r\n0\r\n\r\n"
	answers, closed := s.exchangeRaw(strict + declared + strict + "\r\n" + strict + ambiguous + smuggled)
	if len(answers) != 5 || !closed {
		t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
	}
	for _, a := range answers[:4] {
		a.must(t, 40001)
	}
	if last := answers[4].must(t, 40000); !strings.Contains(last.body, "without extensions") {
		t.Errorf("the message does not say what is wrong: %s", last.body)
	}
}

// TestChunksWithoutEnd: the server does not serve a request whose chunked body does not end.
func TestChunksWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"in a size":         "2",
		"after a size":      "2\r\n",
		"in a chunk":        "2\r\n{",
		"after a chunk":     "2\r\n{}\r\n",
		"in the last size":  "2\r\n{}\r\n0",
		"before the end":    "2\r\n{}\r\n0\r\n",
		"in the end":        "2\r\n{}\r\n0\r\n\r",
		"before everything": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			answers, closed := s.exchangeEnded(post("Transfer-Encoding: chunked\r\n") + body)
			if len(answers) > 1 || !closed {
				t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
			}
			for _, a := range answers {
				a.must(t, 40000)
			}
		})
	}
}

// TestStrictChunksAreServed: the strict form allows any sizes of chunks, capitals and leading zeros.
func TestStrictChunksAreServed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var single strings.Builder
	for i := range len(goodBody) {
		single.WriteString(chunk(goodBody[i : i+1]))
	}
	// The body contains a request, and what looks like the end of the body.
	hidden := `{"license_key":"x","device_id":"d","z":"` + "0 GET /livez HTTP/1.1 Host: x" + `"}`
	for name, body := range map[string]string{
		"one chunk":       chunk(goodBody),
		"single bytes":    single.String(),
		"capitals":        strings.ToUpper(fmt.Sprintf("%x", len(goodBody))) + "\r\n" + goodBody + "\r\n",
		"leading zeros":   fmt.Sprintf("%015x\r\n", len(goodBody)) + goodBody + "\r\n",
		"request in JSON": chunk(hidden),
	} {
		for end, last := range map[string]string{"": "0\r\n\r\n", ", 000": "000\r\n\r\n"} {
			t.Run(name+end, func(t *testing.T) {
				t.Parallel()
				request := post("Transfer-Encoding: chunked\r\n") + body + last
				answers, closed := s.exchangeKept(request + request)
				if len(answers) != 2 || closed {
					t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
				}
				answers[0].must(t, 40001)
				answers[1].must(t, 40001)
			})
		}
	}
	t.Run("body that looks like chunks and a request", func(t *testing.T) {
		body := "{}\r\n0\r\n\r\n" + smuggled
		answers, closed := s.exchangeKept(post("Transfer-Encoding: chunked\r\n") + chunk(body) + "0\r\n\r\n")
		if len(answers) != 1 || closed {
			t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
		}
		answers[0].must(t, 40000)
	})
}
