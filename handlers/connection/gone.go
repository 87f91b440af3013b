package connection

import (
	"errors"
	"os"
	"time"
)

// NotifyGone reads ahead in a new goroutine and closes gone when the client has closed the connection, or
// its half of it. Read returns the bytes of further requests later. Once readAhead is full,
// NotifyGone can't see the end of the connection any more, and its goroutine ends.
//
// stop ends the goroutine and waits for it. Between NotifyGone and stop, nothing else may read from the
// connection.
func (c *Conn) NotifyGone() (gone <-chan struct{}, stop func()) {
	// stop interrupts the read with a deadline in the past, which does no harm, also below TLS.
	if c.Conn.SetReadDeadline(time.Time{}) != nil {
		return nil, func() {}
	}
	c.filled = copy(c.readAhead[:], c.readAhead[c.next:c.filled])
	c.next = 0
	ended, done := make(chan struct{}), make(chan struct{})
	c.listener.cfg.Guard.Start("notice of a client's end", func() {
		defer close(done)
		for c.filled < len(c.readAhead) {
			n, err := c.Conn.Read(c.readAhead[c.filled:])
			c.filled += n
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			if err != nil {
				close(ended) // Read will get the same error
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
