package handlers

import (
	"errors"
	"os"
	"time"

	"licet/guard"
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

// watch begins to read ahead, while nobody else reads from the connection: gone is closed when
// the peer has closed the connection, or its half of it. The bytes of further requests are kept for
// Read. Once as many have come as fit in c.ahead, the end can't be seen any more, and watch ends.
//
// stop ends the watch and waits for that. It must be called before anything else reads.
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
