package handlers

import (
	"errors"
	"os"
	"time"

	"licet/metrics/guard"
)

// watcher returns what watches the connection of a request while its handler waits; nil where
// the connection is none of ours.
func (s *Server) watcher(r *request) func() (gone <-chan struct{}, stop func()) {
	c, ours := r.fast.Conn().(*conn)
	if !ours {
		return nil
	}
	return func() (<-chan struct{}, func()) { return c.watch(s.guard) }
}

// watch begins to read ahead and closes gone when the peer has closed the connection, or its half
// of it. watch keeps the bytes of further requests for Read. Once c.ahead is full, watch can't see
// the end of the connection any more, and ends.
//
// stop ends the watch and returns when it has ended. Between watch and stop, nothing else may read
// from the connection.
func (c *conn) watch(g *guard.Guard) (gone <-chan struct{}, stop func()) {
	// A deadline that has passed interrupts a read without harm, also below TLS.
	if c.Conn.SetReadDeadline(time.Time{}) != nil {
		return nil, func() {}
	}
	c.filled = copy(c.ahead[:], c.ahead[c.next:c.filled])
	c.next = 0
	ended, done := make(chan struct{}), make(chan struct{})
	g.Start("watch of a connection", func() {
		defer close(done)
		for c.filled < len(c.ahead) {
			n, err := c.Conn.Read(c.ahead[c.filled:])
			c.filled += n
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			if err != nil {
				close(ended) // Read gets the same error
				return
			}
		}
	})
	return ended, func() {
		c.reading.applied = time.Unix(1, 0)
		_ = c.Conn.SetReadDeadline(c.reading.applied)
		<-done
	}
}
