package handlers_test

import (
	"fmt"
	"testing"
	"time"

	"licet/handlers/limits"
)

// TestDocumentLimit: an address gets so many bytes of lists of revocations and sets of receipt keys. The limit counts
// no list that the client has already and no HEAD, and neither other addresses nor clients with an API key. Short
// documents count apart.
func TestDocumentLimit(t *testing.T) {
	t.Parallel()
	const list = 85_000 // about: 2,000 entries
	s := newService(t, append(limited(limits.Config{
		DocumentBytes: limits.Rate{Count: 2 * list, Per: time.Minute},
	}), behindProxy)...)
	s.receiptKeys()
	s.listOf(2000)
	fetch := func(path string, headers ...string) wire {
		return wire{method: "GET", path: path, headers: headers}.from("203.0.113.1")
	}
	first := s.sendWire(fetch(revocationsPath)).must(t, 0)
	first.wantCounts(t, "", "")
	epoch := s.peekList(first.body).Epoch
	if len(first.body) < list || len(first.body) > list+1000 {
		t.Fatalf("the list has %d bytes", len(first.body))
	}
	head := wire{method: "HEAD", path: revocationsPath}.from("203.0.113.1")
	for range 5 {
		if got := s.sendWire(head); got.status != 200 {
			t.Errorf("HEAD of a list: %d", got.status)
		}
	}
	s.sendWire(fetch(revocationsPath)).must(t, 0) // begins with a token, and owes some then
	for _, path := range []string{revocationsPath, revocationsPath + "?after=7"} {
		s.sendWire(fetch(path)).wantLimited(t, "1")
	}
	for _, path := range []string{keySetPath, fmt.Sprintf("%s?after=%d", revocationsPath, epoch-1000)} {
		s.sendWire(fetch(path)).must(t, 0)
	}
	unchanged := s.sendWire(fetch(revocationsPath, "If-None-Match", first.header.Get("ETag")))
	if unchanged.status != 304 {
		t.Errorf("a list that the client has: %d", unchanged.status)
	}
	s.sendWire(fetch(revocationsPath).from("203.0.113.2")).must(t, 0)
	s.sendWire(fetch(revocationsPath).with(keyAll)).must(t, 0)

	s.clock.advance(2 * time.Second)
	s.sendWire(fetch(revocationsPath)).must(t, 0)
	s.sendWire(fetch(revocationsPath)).wantLimited(t, "29")
	s.sendWire(fetch(keySetPath)).must(t, 0)
}

// TestDocumentLimitOff: a node without this limit answers as often as it is asked.
func TestDocumentLimitOff(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{})...)
	s.receiptKeys()
	for range 3 {
		s.send("GET", revocationsPath, "", "").must(t, 0)
	}
}
