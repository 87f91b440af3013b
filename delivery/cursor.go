package delivery

import (
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// maxAhead bounds how many events a cursor reads and sends ahead of its place. A crash sends that many events
// twice if the event at the place is slow.
const maxAhead = 500

// step is an event behind a cursor's place, or a position up to which there is nothing to send.
type step struct {
	position store.FeedPosition // the position behind the event
	view     *service.EventView // nil once the message has a result
	started  bool               // an attempt has started, or none is needed
	done     bool               // the result is in a checkpoint
}

// cursor reads through a feed.
type cursor struct {
	place        store.FeedPosition // behind all steps that are done
	read         store.FeedPosition // behind all events that were read
	lastID       string             // of a replay: the last event; empty: all events
	lastRevision int64              // of the last event; the cursor never meets the event if it was swept meanwhile
	bounded      bool               // the cursor is of a replay, and ends
	atEnd        bool               // the last event of a replay was read
	steps        []*step            // between place and read
	started      int                // the number of leading steps that were started
	more         bool               // there are events behind read
	mayHaveMore  bool               // there may be new events behind read
	// generation counts rewinds; pages of an older generation are discarded.
	generation int
}

// add appends a page that was read behind the earlier ones. Steps whose event wants rejects need no attempt; a
// nil wants accepts every event.
func (c *cursor) add(page service.EventFeed, wants func(licensing.EventType) bool) {
	for i := range page.Events {
		view := &page.Events[i]
		if c.bounded && c.lastRevision > 0 && view.Revision > c.lastRevision {
			c.atEnd, c.more = true, false
			c.advance()
			return
		}
		s := &step{position: store.FeedPosition(view.ID)}
		if wants == nil || wants(view.Type) {
			s.view = view
		} else {
			s.started, s.done = true, true
		}
		c.steps = append(c.steps, s)
		c.read = s.position
		if c.bounded && view.ID == c.lastID {
			c.atEnd, c.more = true, false
			c.advance()
			return
		}
	}
	if page.Next != c.read {
		c.steps = append(c.steps, &step{position: page.Next, started: true, done: true})
		c.read = page.Next
	}
	c.more = page.More
	c.atEnd = c.bounded && !page.More
	c.advance()
}

// peek returns the next step to start; nil: there is none, or it is too far ahead of the place.
func (c *cursor) peek() *step {
	for c.started < len(c.steps) && c.steps[c.started].started {
		c.started++
	}
	if c.started >= len(c.steps) || c.started >= maxAhead {
		return nil
	}
	return c.steps[c.started]
}

// start starts the step that peek returns, which must not be nil.
func (c *cursor) start() *step {
	s := c.peek()
	s.started = true
	c.started++
	return s
}

// unsent returns the number of steps that were read and not started.
func (c *cursor) unsent() int { return len(c.steps) - c.started }

// advance moves the place over the steps that are done, and reports whether it moved.
func (c *cursor) advance() (moved bool) {
	n := 0
	for n < len(c.steps) && c.steps[n].done {
		c.place = c.steps[n].position
		c.steps[n] = nil
		n++
	}
	c.steps, c.started = c.steps[n:], max(c.started-n, 0)
	return n > 0
}

// rewind discards the steps that were not started, as if they had not been read.
func (c *cursor) rewind() {
	c.generation, c.mayHaveMore = c.generation+1, true
	if c.peek(); c.started == len(c.steps) {
		return
	}
	c.steps = c.steps[:c.started]
	c.read = c.place
	if c.started > 0 {
		c.read = c.steps[c.started-1].position
	}
	c.more, c.atEnd = true, false
}

// skipToOldest resumes at the oldest event of the feed, since the feed no longer has the next events.
func (c *cursor) skipToOldest() {
	c.rewind()
	c.read, c.more = "", true
	if len(c.steps) == 0 {
		c.place = ""
	}
}

// done reports whether all steps of a replay are done.
func (c *cursor) done() bool { return c.atEnd && len(c.steps) == 0 }
