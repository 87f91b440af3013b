package delivery

import (
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// maxOpen bounds how far a cursor reads and sends ahead of its place. It is what may
// be sent twice after a crash, where the event at the place takes its time.
const maxAhead = 500

// step is an event that lies behind a cursor's place, or only a position up to which
// there is nothing to send.
type step struct {
	position store.FeedPosition // behind it
	view     *service.EventView // until it has ended
	started  bool
	done     bool // what came of it is in a checkpoint
}

// cursor goes through a feed.
type cursor struct {
	place        store.FeedPosition // behind all that is settled
	read         store.FeedPosition // behind all that was read
	lastID       string             // of a replay: the last event that is wanted; empty: all that there are
	lastRevision int64              // its revision: it is never met if it was swept meanwhile
	bounded      bool               // it is of a replay
	atEnd        bool               // the last event was read
	steps        []*step            // between place and read
	started      int                // so many of them were begun, or need not be
	more         bool               // there is something behind read
	mayHaveMore  bool               // there may be by now
	// void is how often it was rewound: a page that was asked for before is none.
	generation int
}

// add takes a page that was read behind all others. wants is nil where the page has
// nothing else.
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

// peek is the next event that was not begun yet; nil: there is none, or it is too far
// ahead.
func (c *cursor) peek() *step {
	for c.started < len(c.steps) && c.steps[c.started].started {
		c.started++
	}
	if c.started >= len(c.steps) || c.started >= maxAhead {
		return nil
	}
	return c.steps[c.started]
}

func (c *cursor) start() *step {
	s := c.peek()
	s.started = true
	c.started++
	return s
}

// ahead is how many steps were read and not begun.
func (c *cursor) unsent() int { return len(c.steps) - c.started }

// advance moves the place over what is settled.
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

// rewind forgets what was not begun, as if it had not been read.
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

// skip goes on at the oldest event that is kept, where some are gone that were not
// read yet.
func (c *cursor) skipToOldest() {
	c.rewind()
	c.read, c.more = "", true
	if len(c.steps) == 0 {
		c.place = ""
	}
}

// done tells whether all up to the last event that is wanted is settled.
func (c *cursor) done() bool { return c.atEnd && len(c.steps) == 0 }
