package webhooks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// evidence contains everything that the audit compares.
type evidence struct {
	changes   map[Change]bool // true: acknowledged; false: the outcome is unknown
	feed      []event         // in its order
	followed  []string        // ids of the events of the client that followed the feed
	endpoints []books
}

// findings are the problems that the audit has found.
type findings []string

func (f *findings) add(kind, format string, args ...any) {
	*f = append(*f, kind+": "+fmt.Sprintf(format, args...))
}

// audit compares the acknowledged changes, the feed and what the endpoints got with each
// other.
func audit(e *evidence) []string {
	var f findings
	known := map[string]*event{}
	for i := range e.feed {
		if known[e.feed[i].id] != nil {
			f.add("an event is in the feed twice", "%s", e.feed[i].id)
		}
		known[e.feed[i].id] = &e.feed[i]
	}
	f.changes(e)
	f.follower(e)
	for i := range e.endpoints {
		f.endpoint(e, &e.endpoints[i], known)
	}
	return f
}

// changes compares the feed with what was acknowledged, in both directions.
func (f *findings) changes(e *evidence) {
	eventOf := map[Change]string{} // by which event
	for i := range e.feed {
		one := &e.feed[i]
		_, explained := e.changes[one.Change]
		switch before := eventOf[one.Change]; {
		case !explained:
			f.add("an event without a change", "%s: %v", one.id, one.Change)
		case before != "":
			f.add("one change has two events", "%v: %s and %s", one.Change, before, one.id)
		}
		eventOf[one.Change] = one.id
	}
	for c, acknowledged := range e.changes {
		if acknowledged && eventOf[c] == "" {
			f.add("a change has no event", "%v", c)
		}
	}
}

// follower compares the events of the client that followed the feed with the feed.
func (f *findings) follower(e *evidence) {
	for i := range max(len(e.feed), len(e.followed)) {
		want, got := "nothing", "nothing"
		if i < len(e.feed) {
			want = e.feed[i].id
		}
		if i < len(e.followed) {
			got = e.followed[i]
		}
		if got != want {
			f.add("the client that follows the feed got another event", "%s in place of %s", got, want)
		}
	}
}

// endpoint compares the calls to an endpoint with the feed, in both directions.
func (f *findings) endpoint(e *evidence, b *books, known map[string]*event) {
	for i := range e.feed {
		if b.live && b.taken[e.feed[i].id] == 0 {
			f.add("an event was not delivered to the endpoint "+b.name, "%s: %v", e.feed[i].id, e.feed[i].Change)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.seen)) {
		switch one := known[id]; {
		case one == nil:
			f.add("the endpoint "+b.name+" got an event that is not in the feed", "%.300s", b.seen[id])
		case !bytes.Equal(one.text, b.seen[id]):
			f.add("the endpoint "+b.name+" got another event than the feed has", "%s\nand %s",
				firstDifference(b.seen[id], one.text), one.text)
		}
	}
}

// firstDifference returns one text around the place where it differs from another.
func firstDifference(one, other []byte) string {
	at := 0
	for at < min(len(one), len(other)) && one[at] == other[at] {
		at++
	}
	return fmt.Sprintf("…%s", strings.ToValidUTF8(string(one[max(0, at-40):min(len(one), at+80)]), "?"))
}
