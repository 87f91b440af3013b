package connection

import (
	"errors"
	"os"
	"time"
)

// Watch begins to read ahead and closes gone when the peer has closed the connection, or its half
// of it. Watch keeps the bytes of further requests for Read. Once c.ahead is full, Watch can't see
// the end of the connection any more, and ends.
//
// stop ends the watch and returns when it has ended. Between Watch and stop, nothing else may read
// from the connection.
func (c *Conn) Watch() (gone <-chan struct{}, stop func()) {
	// A deadline that has passed interrupts a read without harm, also below TLS.
	if c.Conn.SetReadDeadline(time.Time{}) != nil {
		return nil, func() {}
	}
	c.filled = copy(c.ahead[:], c.ahead[c.next:c.filled])
	c.next = 0
	ended, done := make(chan struct{}), make(chan struct{})
	c.listener.cfg.Guard.Start("watch of a connection", func() {
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
