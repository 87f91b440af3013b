package connection

import "time"

// A client must read writeChunk bytes of a long response within chunkTimeout, or the server closes the
// connection. The deadline of the whole response applies too. A response of writeChunk or less has only
// that deadline.
const (
	writeChunk   = 64 << 10
	chunkTimeout = 2 * time.Second
)

// Write implements net.Conn. After DiscardWrites, Write drops p and reports success.
func (c *Conn) Write(p []byte) (n int, err error) {
	if c.discard {
		return len(p), nil
	}
	if len(p) <= writeChunk {
		return c.writeChunk(p)
	}
	whole := c.writing.wanted
	defer func() { c.writing.wanted = whole }()
	for n < len(p) && err == nil {
		deadline := time.Now().Add(chunkTimeout)
		if whole.IsZero() || deadline.Before(whole) {
			c.writing.wanted = deadline
		} else {
			c.writing.wanted = whole
		}
		var wrote int
		wrote, err = c.writeChunk(p[n:min(n+writeChunk, len(p))])
		n += wrote
	}
	return n, err
}

func (c *Conn) writeChunk(p []byte) (int, error) {
	if err := c.writing.apply(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// AfterResponse makes the connection call done once, when the response to the current request has left,
// or when the connection has failed. done must be safe to call from any goroutine.
func (c *Conn) AfterResponse(done func()) {
	c.EndResponse()
	c.written.Store(&done)
}

// EndResponse calls the function of AfterResponse, if there is one. Package handlers calls EndResponse
// when it begins a request: fasthttp has written the response to the request before, and need not read
// between two requests that came together.
func (c *Conn) EndResponse() {
	if c.written.Load() == nil {
		return
	}
	if done := c.written.Swap(nil); done != nil {
		(*done)()
	}
}
