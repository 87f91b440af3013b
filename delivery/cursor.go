package delivery

import (
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// maxOpen bounds how far a cursor reads and sends ahead of its place. It is what may
// be sent twice after a crash, where the event at the place takes its time.
const maxOpen = 500

// step is an event that lies behind a cursor's place, or only a position up to which
// there is nothing to send.
type step struct {
	at      store.FeedPosition // behind it
	view    *service.EventView // until it has ended
	begun   bool
	settled bool // what came of it is in a checkpoint
}

// cursor goes through a feed.
type cursor struct {
	place store.FeedPosition // behind all that is settled
	read  store.FeedPosition // behind all that was read
	last  string             // of a replay: the last event that is wanted; empty: all that there are
	until int64              // its revision: it is never met if it was swept meanwhile
	ends  bool               // it is of a replay
	ended bool               // the last event was read
	steps []*step            // between place and read
	begun int                // so many of them were begun, or need not be
	more  bool               // there is something behind read
	look  bool               // there may be by now
	// void is how often it was rewound: a page that was asked for before is none.
	void int
}

// add takes a page that was read behind all others. wants is nil where the page has
// nothing else.
func (c *cursor) add(page service.EventFeed, wants func(licensing.EventType) bool) {
	for i := range page.Events {
		view := &page.Events[i]
		if c.ends && c.until > 0 && view.Revision > c.until {
			c.ended, c.more = true, false
			c.advance()
			return
		}
		s := &step{at: store.FeedPosition(view.ID)}
		if wants == nil || wants(view.Type) {
			s.view = view
		} else {
			s.begun, s.settled = true, true
		}
		c.steps = append(c.steps, s)
		c.read = s.at
		if c.ends && view.ID == c.last {
			c.ended, c.more = true, false
			c.advance()
			return
		}
	}
	if page.Next != c.read {
		c.steps = append(c.steps, &step{at: page.Next, begun: true, settled: true})
		c.read = page.Next
	}
	c.more = page.More
	c.ended = c.ends && !page.More
	c.advance()
}

// peek is the next event that was not begun yet; nil: there is none, or it is too far
// ahead.
func (c *cursor) peek() *step {
	for c.begun < len(c.steps) && c.steps[c.begun].begun {
		c.begun++
	}
	if c.begun >= len(c.steps) || c.begun >= maxOpen {
		return nil
	}
	return c.steps[c.begun]
}

func (c *cursor) begin() *step {
	s := c.peek()
	s.begun = true
	c.begun++
	return s
}

// ahead is how many steps were read and not begun.
func (c *cursor) ahead() int { return len(c.steps) - c.begun }

// advance moves the place over what is settled.
func (c *cursor) advance() (moved bool) {
	n := 0
	for n < len(c.steps) && c.steps[n].settled {
		c.place = c.steps[n].at
		c.steps[n] = nil
		n++
	}
	c.steps, c.begun = c.steps[n:], max(c.begun-n, 0)
	return n > 0
}

// rewind forgets what was not begun, as if it had not been read.
func (c *cursor) rewind() {
	c.void, c.look = c.void+1, true
	if c.peek(); c.begun == len(c.steps) {
		return
	}
	c.steps = c.steps[:c.begun]
	c.read = c.place
	if c.begun > 0 {
		c.read = c.steps[c.begun-1].at
	}
	c.more, c.ended = true, false
}

// skip goes on at the oldest event that is kept, where some are gone that were not
// read yet.
func (c *cursor) skip() {
	c.rewind()
	c.read, c.more = "", true
	if len(c.steps) == 0 {
		c.place = ""
	}
}

// done tells whether all up to the last event that is wanted is settled.
func (c *cursor) done() bool { return c.ended && len(c.steps) == 0 }
